"""Objects of files are listed as on a hub that has no others."""

import pytest

from dsf.kube import kinds
from dsf.kube.errors import AlreadyExists, BadRequest
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from optimizer.cli.object_files import ListedObjects

NOW = "2026-11-20T12:00:00Z"


def obj(kind: Kind, name: str, **fields: object) -> Object:
    metadata = {"name": name, **dict(fields.pop("metadata", {}))}  # type: ignore[call-overload]
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


@pytest.fixture
def found() -> ListedObjects:
    listed = ListedObjects(NOW)
    for name, namespace in (("b", "two"), ("a", "two"), ("c", None)):
        of = {"labels": {"app": name}, **({"namespace": namespace} if namespace else {})}
        listed.add(kinds.PLACEMENT, obj(kinds.PLACEMENT, name, metadata=of, spec={}))
    return listed


async def names(listed: ListedObjects, namespace: str | None = None, **how: str) -> list[str]:
    page = await listed.list(kinds.PLACEMENT, namespace, **how)
    assert page.continue_token == ""
    return [item["metadata"]["name"] for item in page.items]


async def test_they_are_listed_by_namespace_and_name(found: ListedObjects) -> None:
    assert await names(found) == ["c", "a", "b"]
    assert await names(found, "default") == ["c"]
    assert await names(found, "two") == ["a", "b"]
    assert await names(found, "three") == []
    assert (await found.list(kinds.MANIFEST_WORK)).items == ()


async def test_selectors_choose(found: ListedObjects) -> None:
    assert await names(found, labels="app in (a, c)") == ["c", "a"]
    assert await names(found, labels="!app") == []
    assert await names(found, fields="metadata.name=b") == ["b"]
    assert await names(found, fields="metadata.namespace!=two") == ["c"]
    for how in ({"labels": "a in"}, {"fields": "a"}):
        with pytest.raises(BadRequest):
            await names(found, **how)


async def test_a_caller_owns_what_is_listed(found: ListedObjects) -> None:
    (listed, *_) = (await found.list(kinds.PLACEMENT)).items
    listed["metadata"]["labels"]["app"] = "changed"
    assert await names(found, labels="app=c") == ["c"]


async def test_what_another_hub_assigned_is_not_kept() -> None:
    listed = ListedObjects(NOW)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}
    said = {"uid": "x", "resourceVersion": "5", "generation": 3, "ownerReferences": [owner]}
    status = {"decisions": [{"clusterName": "a", "reason": ""}]}
    listed.add(
        kinds.PLACEMENT_DECISION, obj(kinds.PLACEMENT_DECISION, "d", metadata=said, status=status)
    )
    (stored,) = (await listed.list(kinds.PLACEMENT_DECISION, "default")).items
    assert stored["status"] == status
    assert stored["metadata"] == {
        "name": "d",
        "namespace": "default",
        "ownerReferences": [owner],
        "creationTimestamp": NOW,
        "generation": 1,
    }


async def test_an_object_is_there_once(found: ListedObjects) -> None:
    again = obj(kinds.PLACEMENT, "c", metadata={"namespace": "default"}, spec={})
    with pytest.raises(AlreadyExists, match=r'placements\.cluster.* "c" already exists'):
        found.add(kinds.PLACEMENT, again)


async def test_unknown_fields_are_left_out_and_named(found: ListedObjects) -> None:
    odd = obj(kinds.PLACEMENT, "d", spec={"extra": 1, "clusterSets": None})
    assert list(map(str, found.add(kinds.PLACEMENT, odd))) == ['unknown field "spec.extra"']
    (stored,) = (await found.list(kinds.PLACEMENT, fields="metadata.name=d")).items
    assert stored["spec"] == {}
