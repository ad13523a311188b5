"""The status subresource."""

import pytest

from dsf.api.scoring.placement_scores import status_written
from dsf.kube.errors import Conflict, Invalid, NotFound
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE as SCORE
from dsf.kube.kinds import CONFIG_MAP, DYNAMIC_SCORER, Kind
from dsf.kube.port import Kube, Object
from tests.dsf.kube.contract.objects import WIDGET, config_map, scorer, widget


async def test_a_status_write_changes_the_status_only(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace, size=1))
    sent = {
        **created,
        "metadata": {**created["metadata"], "labels": {"a": "b"}},
        "spec": {"size": 2},
        "status": {"phase": "Good"},
    }
    updated = await kube.update(WIDGET, sent, subresource="status")
    assert updated["status"] == {"phase": "Good"}
    assert updated["spec"]["size"] == 1
    assert "labels" not in updated["metadata"]


async def test_a_write_of_the_object_leaves_the_status_alone(kube: Kube, namespace: str) -> None:
    await kube.create(WIDGET, widget(namespace))
    await kube.patch(WIDGET, "first", {"status": {"seen": 1}}, namespace, subresource="status")
    patch = {"spec": {"size": 1}, "status": {"seen": 2}}
    patched = await kube.patch(WIDGET, "first", patch, namespace)
    assert patched["status"] == {"seen": 1}
    del patched["status"]
    assert (await kube.update(WIDGET, patched))["status"] == {"seen": 1}


async def test_managed_fields_tell_when_the_status_was_written(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace))
    assert status_written(created) is None
    body = {"status": {"seen": 1}}
    written = await kube.patch(WIDGET, "first", body, namespace, subresource="status")
    assert status_written(written) is not None
    edited = await kube.patch(WIDGET, "first", {"spec": {"size": 1}}, namespace)
    assert status_written(edited) == status_written(written)


async def test_a_status_is_removed_by_a_write_without_one(kube: Kube, namespace: str) -> None:
    await kube.create(WIDGET, widget(namespace))
    written = await kube.patch(
        WIDGET, "first", {"status": {"seen": 1}}, namespace, subresource="status"
    )
    del written["status"]
    assert "status" not in await kube.update(WIDGET, written, subresource="status")


async def test_an_old_version_is_a_conflict(kube: Kube, namespace: str) -> None:
    created = await kube.create(WIDGET, widget(namespace))
    await kube.patch(WIDGET, "first", {"spec": {"size": 1}}, namespace)
    with pytest.raises(Conflict):
        await kube.update(WIDGET, {**created, "status": {"seen": 1}}, subresource="status")


async def test_finalizers_can_not_be_removed_through_the_status(kube: Kube, namespace: str) -> None:
    obj = widget(namespace)
    obj["metadata"]["finalizers"] = ["contract.example.com/keep"]
    created = await kube.create(WIDGET, obj)
    created["metadata"]["finalizers"] = []
    created["status"] = {"seen": 1}
    written = await kube.update(WIDGET, created, subresource="status")
    assert written["metadata"]["finalizers"] == ["contract.example.com/keep"]
    await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, namespace)


async def test_an_equal_status_is_not_written_and_no_status_counts_as_a_generation(
    kube: Kube, namespace: str
) -> None:
    await kube.create(WIDGET, widget(namespace))
    patch = {"status": {"seen": 1, "unknown": 2}}
    first = await kube.patch(WIDGET, "first", patch, namespace, subresource="status")
    assert first["status"] == {"seen": 1}
    assert first["metadata"]["generation"] == 1
    assert await kube.patch(WIDGET, "first", patch, namespace, subresource="status") == first


async def test_what_has_no_status_takes_none(kube: Kube, namespace: str) -> None:
    await kube.create(CONFIG_MAP, config_map(namespace))
    for kind, name in ((CONFIG_MAP, "settings"), (WIDGET, "missing")):
        with pytest.raises(NotFound):
            await kube.patch(kind, name, {"status": {}}, namespace, subresource="status")


TWICE = [{"name": "a", "value": 1}, {"name": "a", "value": 2}]
REFUSED: list[tuple[Kind, Object, str]] = [
    (DYNAMIC_SCORER, {"healthStatus": "Excellent"}, r"status\.healthStatus: Unsupported value"),
    (SCORE, {"scores": [{"name": "a", "value": -101}]}, r"\.value: Invalid value: -101"),
    (SCORE, {"scores": [{"name": "a", "value": 101}]}, r"scores\[0\]\.value: Invalid value: 101"),
    (SCORE, {"scores": TWICE}, r'status\.scores\[1\]: Duplicate value: \{"name":"a"\}'),
]


@pytest.mark.parametrize(("kind", "status", "problem"), REFUSED)
async def test_a_status_is_validated(
    kube: Kube, namespace: str, kind: Kind, status: Object, problem: str
) -> None:
    obj = scorer(namespace) if kind == DYNAMIC_SCORER else config_map(namespace, "latency")
    await kube.create(kind, {**obj, "apiVersion": kind.api_version, "kind": kind.kind})
    with pytest.raises(Invalid, match=problem):
        await kube.patch(kind, "latency", {"status": status}, namespace, subresource="status")
