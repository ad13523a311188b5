"""Replacing objects, and patching them."""

import pytest

from dsf.kube.errors import ApiError, Conflict, Invalid, NotFound
from dsf.kube.kinds import CONFIG_MAP, DYNAMIC_SCORER, LEASE
from dsf.kube.port import Kube, Object
from tests.dsf.kube.contract.objects import GADGET, WIDGET, config_map, gadget, scorer, widget

MODIFIED = (
    'Operation cannot be fulfilled on widgets.contract.example.com "first": the object has been '
    "modified; please apply your changes to the latest version and try again"
)


async def test_an_update_replaces_everything(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace, size=1, code="ab"))
    created["spec"] = {"size": 2}
    updated = await kube.update(WIDGET, created)
    assert updated["spec"]["size"] == 2
    assert "code" not in updated["spec"]
    assert updated["metadata"]["resourceVersion"] != created["metadata"]["resourceVersion"]
    assert await kube.get(WIDGET, "first", namespace) == updated


async def test_an_old_version_is_a_conflict(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace))
    await kube.patch(WIDGET, "first", {"spec": {"size": 1}}, namespace)
    with pytest.raises(Conflict) as refused:
        await kube.update(WIDGET, created)
    assert refused.value.message == MODIFIED
    assert refused.value.status()["reason"] == "Conflict"
    assert refused.value.retryable


async def test_custom_kinds_must_say_which_version_they_replace(kube: Kube, namespace: str) -> None:
    await kube.create(WIDGET, widget(namespace))
    with pytest.raises(Invalid, match=r"metadata\.resourceVersion: .*must be specified"):
        await kube.update(WIDGET, widget(namespace, size=1))


async def test_config_maps_need_not(kube: Kube, namespace: str) -> None:
    await kube.create(CONFIG_MAP, config_map(namespace))
    obj = config_map(namespace)
    obj["data"] = {"colour": "red"}
    assert (await kube.update(CONFIG_MAP, obj))["data"] == {"colour": "red"}


async def test_what_does_not_exist_can_not_be_updated(kube: Kube, namespace: str) -> None:
    with pytest.raises(NotFound):
        await kube.update(WIDGET, widget(namespace))
    with pytest.raises(NotFound):
        await kube.patch(WIDGET, "first", {"spec": {}}, namespace)


async def test_another_uid_is_a_conflict(kube: Kube, namespace: str) -> None:
    created = await kube.create(CONFIG_MAP, config_map(namespace))
    created["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition"):
        await kube.update(CONFIG_MAP, created)


async def test_an_equal_object_is_not_written(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace, size=1))
    assert await kube.update(WIDGET, created) == created
    assert await kube.patch(WIDGET, "first", {"spec": {"size": 1}}, namespace) == created
    assert await kube.patch(WIDGET, "first", {}, namespace) == created


async def test_the_generation_counts_changes_of_the_content(kube: Kube, namespace: str) -> None:
    await kube.create(WIDGET, widget(namespace))
    labelled = await kube.patch(WIDGET, "first", {"metadata": {"labels": {"a": "b"}}}, namespace)
    assert labelled["metadata"]["generation"] == 1
    changed = await kube.patch(WIDGET, "first", {"spec": {"size": 1}}, namespace)
    assert changed["metadata"]["generation"] == 2


async def test_without_a_status_subresource_the_status_is_content(
    kube: Kube, namespace: str
) -> None:
    name = f"gadget-{namespace}"
    await kube.create(GADGET, gadget(name))
    changed = await kube.patch(GADGET, name, {"status": {"seen": 1}})
    assert changed["status"] == {"seen": 1}
    assert changed["metadata"]["generation"] == 2
    await kube.delete(GADGET, name)


@pytest.mark.parametrize(
    "metadata", [{"generation": 9}, {"creationTimestamp": "2001-01-01T00:00:00Z"}]
)
async def test_what_the_server_counts_can_not_be_written(
    kube: Kube, namespace: str, metadata: Object
) -> None:
    created = await kube.create(WIDGET, widget(namespace))
    assert await kube.patch(WIDGET, "first", {"metadata": metadata}, namespace) == created


@pytest.mark.parametrize(
    ("metadata", "codes", "problem"),
    [
        ({"uid": "00000000-0000-0000-0000-000000000000"}, {409, 422}, "."),
        ({"name": "second"}, {400}, "does not match the name on the URL"),
        ({"namespace": "default"}, {400}, "namespace"),
        (
            {"deletionTimestamp": "2001-01-01T00:00:00Z"},
            {422},
            r"metadata\.deletionTimestamp: .*field is immutable",
        ),
    ],
)
async def test_what_an_object_is_can_not_be_patched(
    kube: Kube, namespace: str, metadata: Object, codes: set[int], problem: str
) -> None:
    created = await kube.create(WIDGET, widget(namespace))
    with pytest.raises(ApiError, match=problem) as refused:
        await kube.patch(WIDGET, "first", {"metadata": metadata}, namespace)
    assert refused.value.actual_code in codes
    assert await kube.get(WIDGET, "first", namespace) == created


async def test_a_patch_merges(kube: Kube, namespace: str) -> None:
    await kube.create(WIDGET, widget(namespace, size=1, code="ab", tags=["a", "b"]))
    patch = {"spec": {"size": 2, "code": None, "tags": ["c"]}}
    patched = await kube.patch(WIDGET, "first", patch, namespace)
    assert patched["spec"]["size"] == 2
    assert "code" not in patched["spec"]
    assert patched["spec"]["tags"] == ["c"]


async def test_a_version_in_a_patch_is_a_precondition(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace))
    old = created["metadata"]["resourceVersion"]
    changed = await kube.patch(
        WIDGET, "first", {"metadata": {"resourceVersion": old}, "spec": {"size": 1}}, namespace
    )
    assert changed["spec"]["size"] == 1
    with pytest.raises(Conflict) as refused:
        await kube.patch(
            WIDGET, "first", {"metadata": {"resourceVersion": old}, "spec": {"size": 2}}, namespace
        )
    assert refused.value.message == MODIFIED


@pytest.mark.parametrize("version", ["", None])
async def test_a_patch_can_not_remove_the_version_of_a_custom_kind(
    kube: Kube, namespace: str, version: str | None
) -> None:
    await kube.create(WIDGET, widget(namespace))
    with pytest.raises(Invalid, match="must be specified for an update"):
        await kube.patch(WIDGET, "first", {"metadata": {"resourceVersion": version}}, namespace)


async def test_a_patch_that_leaves_no_readable_object_is_invalid(
    kube: Kube, namespace: str
) -> None:
    await kube.create(WIDGET, widget(namespace))
    with pytest.raises(Invalid) as refused:
        await kube.patch(WIDGET, "first", {"metadata": {"labels": 1}}, namespace)
    assert [cause["field"] for cause in refused.value.details["causes"]] == ["patch"]


async def test_a_patch_is_validated(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace, size=1))
    with pytest.raises(Invalid, match=r"spec\.size"):
        await kube.patch(WIDGET, "first", {"spec": {"size": 11}}, namespace)
    assert await kube.get(WIDGET, "first", namespace) == created


async def test_empty_labels_are_no_labels(kube: Kube, namespace: str) -> None:
    await kube.create(CONFIG_MAP, config_map(namespace, labels={"a": "b"}))
    patched = await kube.patch(
        CONFIG_MAP, "settings", {"metadata": {"labels": {"a": None}}}, namespace
    )
    assert "labels" not in patched["metadata"]


async def test_an_immutable_config_map_stays_as_it_is(kube: Kube, namespace: str) -> None:
    await kube.create(CONFIG_MAP, {**config_map(namespace), "immutable": True})
    with pytest.raises(Invalid, match="field is immutable when `immutable` is set"):
        await kube.patch(CONFIG_MAP, "settings", {"data": {"colour": "red"}}, namespace)


async def test_a_lease_is_created_by_an_update(kube: Kube, namespace: str) -> None:
    lease = {
        "metadata": {"name": "leader", "namespace": namespace},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
    }
    assert (await kube.update(LEASE, lease))["metadata"]["uid"]


async def test_writers_that_read_the_same_version_can_not_both_win(
    kube: Kube, namespace: str
) -> None:
    await kube.create(DYNAMIC_SCORER, scorer(namespace))
    first = await kube.get(DYNAMIC_SCORER, "latency", namespace)
    second = await kube.get(DYNAMIC_SCORER, "latency", namespace)
    first["spec"]["description"], second["spec"]["description"] = "one", "two"
    await kube.update(DYNAMIC_SCORER, first)
    with pytest.raises(Conflict):
        await kube.update(DYNAMIC_SCORER, second)
    found = await kube.get(DYNAMIC_SCORER, "latency", namespace)
    assert found["spec"]["description"] == "one"
