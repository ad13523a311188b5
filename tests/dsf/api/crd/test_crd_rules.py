"""The CRDs on the embedded hub: every constraint both ways, defaults, pruning."""

import pytest

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Invalid
from dsf.kube.kinds import PLACEMENT_PLAN, find
from tests.dsf.api.crd.crd_cases import ACCEPTED, CONSTRAINTS, REFUSED, declared
from tests.dsf.api.crd.crd_objects import (
    ADVICE_FOR_THE_ARTICLE,
    STORED,
    SYNCED,
    Object,
    defaulted,
    existing,
    ids,
    keeps,
    of_the_article,
    plan,
    with_status,
)

PLACE = "default"
EXISTING = tuple(existing())
DEFAULTED = tuple(defaulted())


@pytest.fixture(scope="module")
def hub() -> EmbeddedHub:
    """A hub that many tests share: each writes one object and deletes it."""
    return EmbeddedHub()


async def write(hub: EmbeddedHub, obj: Object) -> Object:
    """Create an object, give it its status, and delete it; return what was stored."""
    kind = find(obj)
    assert kind
    name = obj["metadata"]["name"]
    stored = await hub.create(kind, {**obj, "metadata": {"name": name, "namespace": PLACE}})
    try:
        if status := obj.get("status"):
            stored = await hub.patch(kind, name, {"status": status}, PLACE, subresource="status")
    finally:
        await hub.delete(kind, name, PLACE)
    return stored


def test_every_constraint_of_the_crds_is_tried() -> None:
    assert {case.name for case in CONSTRAINTS} == declared()


@pytest.mark.parametrize(("_", "obj"), ACCEPTED, ids=ids(ACCEPTED))
async def test_it_is_accepted(hub: EmbeddedHub, _: str, obj: Object) -> None:
    assert await write(hub, obj)


@pytest.mark.parametrize(("_", "obj"), EXISTING, ids=ids(EXISTING))
async def test_an_existing_manifest_is_accepted(hub: EmbeddedHub, _: str, obj: Object) -> None:
    stored = await write(hub, obj)
    assert keeps(stored.get("spec") or {}, obj.get("spec") or {})


@pytest.mark.parametrize(("_", "obj", "message"), REFUSED, ids=ids(REFUSED))
async def test_it_is_refused(hub: EmbeddedHub, _: str, obj: Object, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        await write(hub, obj)
    assert message in refused.value.message


@pytest.mark.parametrize(("_", "obj", "spec"), DEFAULTED, ids=ids(DEFAULTED))
async def test_it_is_stored_with_defaults_and_without_what_is_unknown(
    hub: EmbeddedHub, _: str, obj: Object, spec: Object
) -> None:
    assert (await write(hub, obj))["spec"] == spec


async def test_the_object_of_the_article_is_refused_with_all_that_is_to_be_changed(
    hub: EmbeddedHub,
) -> None:
    with pytest.raises(Invalid) as refused:
        await write(hub, of_the_article())
    said = refused.value.message
    assert [advice for advice in ADVICE_FOR_THE_ARTICLE if advice not in said] == []


async def test_the_last_synced_config_is_kept_whole(hub: EmbeddedHub) -> None:
    stored = await write(hub, with_status({"lastSyncedConfig": SYNCED, "surprise": 1}))
    assert stored["status"] == {"lastSyncedConfig": STORED}


async def test_the_spec_of_a_plan_is_never_changed(hub: EmbeddedHub) -> None:
    kind, written = PLACEMENT_PLAN, plan("kept", content="H4sI")
    await hub.create(kind, {**written, "metadata": {"name": "kept-1", "namespace": PLACE}})
    for changed in ({"objective": 116}, {"content": "H4sJ"}, {"content": None}, {"gap": 0}):
        with pytest.raises(Invalid, match="its spec can't be changed"):
            await hub.patch(kind, "kept-1", {"spec": changed}, PLACE)
    relabelled = await hub.patch(kind, "kept-1", {"metadata": {"labels": {"a": "b"}}}, PLACE)
    assert relabelled["spec"] == written["spec"]
    await hub.delete(kind, "kept-1", PLACE)
