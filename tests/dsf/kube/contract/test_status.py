"""The status subresource."""

import pytest

from dsf.kube.errors import Conflict, Invalid, NotFound
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, CONFIG_MAP, DYNAMIC_SCORER
from dsf.kube.port import Kube
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


async def test_a_status_write_is_no_new_generation(kube: Kube, namespace: str) -> None:
    await kube.create(WIDGET, widget(namespace))
    written = await kube.patch(
        WIDGET, "first", {"status": {"seen": 1}}, namespace, subresource="status"
    )
    assert written["metadata"]["generation"] == 1


async def test_an_equal_status_is_not_written(kube: Kube, namespace: str) -> None:
    await kube.create(WIDGET, widget(namespace))
    patch = {"status": {"seen": 1}}
    first = await kube.patch(WIDGET, "first", patch, namespace, subresource="status")
    assert await kube.patch(WIDGET, "first", patch, namespace, subresource="status") == first


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


async def test_a_status_is_validated(kube: Kube, namespace: str) -> None:
    await kube.create(DYNAMIC_SCORER, scorer(namespace))
    patch = {"status": {"healthStatus": "Excellent"}}
    with pytest.raises(Invalid, match=r"status\.healthStatus: Unsupported value"):
        await kube.patch(DYNAMIC_SCORER, "latency", patch, namespace, subresource="status")


async def test_unknown_fields_of_a_status_are_dropped(kube: Kube, namespace: str) -> None:
    await kube.create(WIDGET, widget(namespace))
    patch = {"status": {"seen": 1, "other": 2}}
    written = await kube.patch(WIDGET, "first", patch, namespace, subresource="status")
    assert written["status"] == {"seen": 1}


async def test_what_does_not_exist_has_no_status(kube: Kube, namespace: str) -> None:
    with pytest.raises(NotFound):
        await kube.patch(WIDGET, "first", {"status": {}}, namespace, subresource="status")


async def test_kinds_without_the_subresource_refuse_it(kube: Kube, namespace: str) -> None:
    await kube.create(CONFIG_MAP, config_map(namespace))
    with pytest.raises(NotFound):
        await kube.patch(CONFIG_MAP, "settings", {"status": {}}, namespace, subresource="status")


async def test_finalizers_can_not_be_removed_through_the_status(kube: Kube, namespace: str) -> None:
    obj = widget(namespace)
    obj["metadata"]["finalizers"] = ["contract.example.com/keep"]
    created = await kube.create(WIDGET, obj)
    created["metadata"]["finalizers"] = []
    created["status"] = {"seen": 1}
    written = await kube.update(WIDGET, created, subresource="status")
    assert written["metadata"]["finalizers"] == ["contract.example.com/keep"]
    await kube.patch(WIDGET, "first", {"metadata": {"finalizers": None}}, namespace)


@pytest.mark.parametrize("value", [-101, 101])
async def test_a_score_is_between_minus_100_and_100(kube: Kube, namespace: str, value: int) -> None:
    await kube.create(
        ADD_ON_PLACEMENT_SCORE, {"metadata": {"name": "latency", "namespace": namespace}}
    )
    patch = {"status": {"scores": [{"name": "a", "value": value}]}}
    with pytest.raises(Invalid, match=r"status\.scores\[0\]\.value: Invalid value: -?101"):
        await kube.patch(ADD_ON_PLACEMENT_SCORE, "latency", patch, namespace, subresource="status")


async def test_the_names_of_scores_are_unique(kube: Kube, namespace: str) -> None:
    await kube.create(
        ADD_ON_PLACEMENT_SCORE, {"metadata": {"name": "latency", "namespace": namespace}}
    )
    patch = {"status": {"scores": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]}}
    with pytest.raises(Invalid, match=r'status\.scores\[1\]: Duplicate value: \{"name":"a"\}'):
        await kube.patch(ADD_ON_PLACEMENT_SCORE, "latency", patch, namespace, subresource="status")
