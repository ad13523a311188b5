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


async def refusal(hub: EmbeddedHub, obj: Object) -> str:
    """Return why an object is refused, or nothing."""
    try:
        await write(hub, obj)
    except Invalid as refused:
        return refused.message
    return ""


async def test_what_keeps_the_rules_is_accepted(hub: EmbeddedHub) -> None:
    found = [(name, await refusal(hub, obj)) for name, obj in ACCEPTED]
    assert [case for case in found if case[1]] == []


async def test_existing_manifests_are_accepted_and_kept(hub: EmbeddedHub) -> None:
    changed = [
        name
        for name, obj in EXISTING
        if not keeps((await write(hub, obj)).get("spec") or {}, obj.get("spec") or {})
    ]
    assert changed == []


async def test_what_breaks_a_rule_is_refused_with_the_message_of_that_rule(
    hub: EmbeddedHub,
) -> None:
    found = [(name, message, await refusal(hub, obj)) for name, obj, message in REFUSED]
    assert [case for case in found if not case[2] or case[1] not in case[2]] == []


async def test_objects_are_stored_with_defaults_and_without_what_is_unknown(
    hub: EmbeddedHub,
) -> None:
    stored = {name: (await write(hub, obj))["spec"] for name, obj, _ in DEFAULTED}
    assert stored == {name: spec for name, _, spec in DEFAULTED}


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
