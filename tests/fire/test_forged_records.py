"""Somebody who may write PlacementPlans, and has no key, makes the optimizer write nothing."""

import asyncio
import base64
import gzip
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsf.api.crd.placement_plan import PlanPhase
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import AlreadyExists, Invalid
from dsf.kube.port import Object
from optimizer.follow.record.recorded_plan import record_digest
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.recorded_plans import applied_before
from optimizer.operations.rollouts import rollout_status
from optimizer.plan.plan import Plan
from optimizer.service.observe_fleet import observe_fleets
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import RollbackRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from optimizer.wire.rollout import RolloutCommand
from tests.access_table.table import copy_of, hub_in
from tests.optimizer.build import NOW, request
from tests.optimizer.hubs import record_keys
from tests.optimizer.neighbours import TEAM

EXAMPLES = int(os.environ.get("FIRE_EXAMPLES", "100"))
RECORDS = ("default-1", "default-2", "default-3")
"""A plan that was replaced, the one in force, and a rollout from it that has begun."""
PACKED = ("content", "rollout")
OWN = {kinds.PLACEMENT_PLAN, kinds.LEASE, kinds.EVENT}
EVIL: Object = {
    "apiVersion": kinds.POLICY.api_version,
    "kind": "Policy",
    "metadata": {"name": "cluster-admin-for-everyone", "namespace": "default"},
    "spec": {"disabled": False},
}


class Forgery(NamedTuple):
    """A record that somebody makes of `model`, in its place or under another name.

    `swapped`: whose packed content it takes. `edits`: numbers that choose a place in what is packed
    or in the rest of the spec, and what is put there. `signature`: whose it carries. `spec` and
    `status`: what they say besides.
    """

    model: str
    swapped: str
    edits: list[tuple[str, int, Any]]
    signature: str
    digest_fits: bool
    namespace: str
    in_its_place: bool
    progress: list[tuple[int, Any]]
    revision: int = 9
    name: str = "default-9"
    spec: Mapping[str, Any] = MappingProxyType({})
    status: Mapping[str, Any] = MappingProxyType({})


VALUES = st.one_of(
    st.none(), st.integers(-2, 9), st.text(max_size=5), st.just(EVIL), st.just([EVIL]), st.just([])
)
FORGERIES = st.builds(
    Forgery,
    model=st.sampled_from(RECORDS),
    swapped=st.sampled_from(RECORDS),
    edits=st.lists(
        st.tuples(st.sampled_from((*PACKED, "spec")), st.integers(0, 10**6), VALUES), max_size=4
    ),
    signature=st.sampled_from((*RECORDS, "none", "other")),
    digest_fits=st.booleans(),
    namespace=st.sampled_from(("default", TEAM)),
    in_its_place=st.booleans(),
    progress=st.lists(st.tuples(st.integers(0, 10**6), VALUES), max_size=2),
    revision=st.just(9),
    name=st.just("default-9"),
    spec=st.just({}),
    status=st.just({}),
)


COPY = Forgery("default-2", "default-2", [], "none", True, "default", False, [])
BESIDE = st.builds(
    lambda forgery, revision, name, phase: forgery._replace(
        in_its_place=False, revision=revision, name=name, status=phase
    ),
    FORGERIES,
    st.one_of(st.integers(1, 9), st.sampled_from((2**31 - 2, 2**31 - 1, 2**62, 2**63 - 1))),
    st.sampled_from(("a", "default-3", "default-4", "zz")),
    st.sampled_from(get_args(PlanPhase)).map(lambda phase: {"phase": phase}),
)
"""Records beside those of the optimizer, of any revision and in any phase."""
KNOWN = {
    "another rollout": [COPY._replace(model="default-3", swapped="default-3")],
    "the last revision": [COPY._replace(revision=2**63 - 1)],
    "a taken name": [COPY._replace(name="default-3"), COPY._replace(name="default-4")],
    "the plan in force": [COPY],
    "the plan before it": [
        COPY._replace(model="default-1", swapped="default-1", status={"phase": "Applied"})
    ],
    "the plan before it, with its revision": [
        COPY._replace(model="default-1", swapped="default-1", revision=1)
    ],
    "two others": [
        COPY._replace(revision=number, name=f"a{number}", spec={"objectsDigest": "0" * 64})
        for number in (9, 10)
    ],
    "one that is applied for ever": [COPY._replace(status={"phase": "Applying"})],
}
"""Forgeries that misled a server once."""


@cache
def rolling() -> EmbeddedHub:
    """A hub with the records; each example has a copy."""
    return asyncio.run(hub_in("rolling"))


@cache
def replaced() -> tuple[EmbeddedHub, list[Any]]:
    """A hub without the rollout, and how an optimizer of either of the two behaves."""
    hub = asyncio.run(hub_in("replaced"))
    return hub, asyncio.run(_behaves([], hub, rolling()))


@pytest.mark.parametrize("forged", KNOWN.values(), ids=KNOWN)
def test_a_record_of_somebody_else_changes_nothing(forged: list[Forgery]) -> None:
    without, behaviour = replaced()
    assert asyncio.run(_behaves(forged, without, rolling())) == behaviour


@pytest.mark.exhaustive
@pytest.mark.fire(
    "the optimizer's own plans behave as without records of others",
    "random records of others: status, repetition, next plan, rollbacks, rollout and commands",
)
@settings(max_examples=max(1, EXAMPLES // 4), deadline=None)
@given(st.lists(BESIDE, min_size=1, max_size=3, unique_by=lambda forgery: forgery.name))
def test_records_of_others_change_nothing(forged: list[Forgery]) -> None:
    without, behaviour = replaced()
    assert asyncio.run(_behaves(forged, without, rolling())) == behaviour


async def _behaves(forged: list[Forgery], without: EmbeddedHub, rolling_out: EmbeddedHub) -> Any:
    """Return what an optimizer says and does on copies of both hubs with forged records."""
    signed = {
        name: await rolling_out.get(kinds.PLACEMENT_PLAN, name, "default") for name in RECORDS
    }

    async def optimizer(state: EmbeddedHub) -> tuple[EmbeddedHub, Optimizer]:
        hub = await copy_of(state)
        for forgery in forged:
            with suppress(AlreadyExists):  # A name of the optimizer's own.
                await forge(hub, forgery, signed)
        return hub, Optimizer(hub, now=lambda: NOW)

    hub, service = await optimizer(without)
    said: list[Any] = [(await service.placement_status("default")).drift]
    fleets = await observe_fleets(hub, keys=record_keys(hub), now=lambda: NOW)
    said += [item.status.drift for item in fleets if item.namespace == "default"]
    for asked in ({}, {"digest": signed["default-1"]["spec"]["digest"]}, {"to_revision": 1}):
        plan = await service.plan_rollback(RollbackRequest(namespace="default", **asked))
        said.append(plan.rollback if isinstance(plan, Plan) else plan.reason)
    again = await service.plan(request("power"))
    assert isinstance(again, Plan)
    said.append(await service.apply(again))
    before = applied_before(AuthorizedOptimizer(service), signed["default-2"]["spec"]["digest"])
    said.append(await before)
    following = await service.plan(request("performance"))
    assert isinstance(following, Plan)
    applied = await service.apply(following)
    assert isinstance(applied, Applied)
    record = await hub.get(kinds.PLACEMENT_PLAN, applied.record, "default")
    taken = any(item.name in ("default-3", "default-4") for item in forged)
    revision = record["spec"]["revision"]
    said.append(3 if taken and 3 < revision < 6 else revision)

    hub, service = await optimizer(rolling_out)
    said.append(await rollout_status(AuthorizedOptimizer(service), "default", "default"))
    for command in get_args(RolloutCommand):
        hub, service = await optimizer(rolling_out)
        changed = await service.rollouts.command("default", "default", command)
        own = await hub.get(kinds.PLACEMENT_PLAN, "default-3", "default")
        said.append((changed, own["status"].get("rollout", {})))
    return said


@pytest.mark.exhaustive
@pytest.mark.fire(
    "a record that somebody else made is not restored, not rolled out, and writes nothing",
    "random edits of signed records, their steps, signatures, names and namespaces",
)
@settings(max_examples=EXAMPLES, deadline=None)
@given(FORGERIES)
def test_a_forged_record_writes_nothing(forgery: Forgery) -> None:
    asyncio.run(_tried(rolling(), forgery))


@pytest.mark.exhaustive
def test_what_the_optimizer_recorded_is_restored_and_rolled_out() -> None:
    """So the test above would notice a write."""

    async def tried(state: EmbeddedHub) -> None:
        hub = await copy_of(state)
        before = await written(hub)
        await followed(hub, "default", "default-3")
        assert await written(hub) != before
        hub = await copy_of(state)
        await hub.delete(kinds.PLACEMENT_PLAN, "default-3", "default")
        assert await restored(hub, "default", 1)
        assert await written(hub) != before

    asyncio.run(tried(rolling()))


async def _tried(state: EmbeddedHub, forgery: Forgery) -> None:
    hub = await copy_of(state)
    signed = {name: await hub.get(kinds.PLACEMENT_PLAN, name, "default") for name in RECORDS}
    namespace, name = await forge(hub, forgery, signed)
    before = await written(hub)
    revision = (await hub.get(kinds.PLACEMENT_PLAN, name, namespace))["spec"]["revision"]
    await followed(hub, namespace, name)
    assert await written(hub) == before
    if (namespace, name) != ("default", "default-3"):  # A rollout would refuse each rollback.
        await hub.delete(kinds.PLACEMENT_PLAN, "default-3", "default")
    assert not await restored(hub, namespace, revision)
    assert await written(hub) == before


async def forge(
    hub: EmbeddedHub, forgery: Forgery, signed: Mapping[str, Object]
) -> tuple[str, str]:
    """Put the record on the hub, as far as the API server takes it; return its place."""
    model, other = signed[forgery.model], signed[forgery.swapped]
    spec = {**edited(model["spec"], other["spec"], forgery), **forgery.spec}
    namespace = forgery.namespace
    name = forgery.model if forgery.in_its_place else forgery.name
    if forgery.in_its_place and namespace == "default":
        await hub.delete(kinds.PLACEMENT_PLAN, name, "default")
    else:
        spec["revision"] = forgery.revision
    if forgery.digest_fits:
        spec["recordDigest"] = record_digest(spec)
    labels = model["metadata"]["labels"]
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    record = {**model, "metadata": metadata}
    try:
        await hub.create(kinds.PLACEMENT_PLAN, {**record, "spec": spec})
    except Invalid:  # What the schema refuses, somebody writes as it was.
        copied = {**model["spec"], "revision": forgery.revision}
        copied["recordDigest"] = record_digest(copied)
        await hub.create(kinds.PLACEMENT_PLAN, {**record, "spec": copied})
    status = {**deepcopy(signed.get(forgery.signature, model)["status"]), **forgery.status}
    if forgery.signature in ("none", "other"):
        status["signature"] = "" if forgery.signature == "none" else "f" * 64
    for number, value in forgery.progress:
        put(status.setdefault("rollout", {}), number, value)
    try:
        await hub.patch(
            kinds.PLACEMENT_PLAN, name, {"status": status}, namespace, subresource="status"
        )
    except Invalid:
        status = {"status": {"phase": "Applied", "signature": "f" * 64, **forgery.status}}
        await hub.patch(kinds.PLACEMENT_PLAN, name, status, namespace, subresource="status")
    return namespace, name


def edited(spec: Object, other: Object, forgery: Forgery) -> Object:
    """Return a spec with what another record has packed, and with edits in it."""
    parts: dict[str, Any] = {"spec": {k: deepcopy(v) for k, v in spec.items() if k not in PACKED}}
    for name in PACKED:
        if text := other.get(name) or spec.get(name):
            parts[name] = json.loads(gzip.decompress(base64.b64decode(text)))
    for where, number, value in forgery.edits:
        put(parts.get(where) or {}, number, value)
    found = dict(parts.pop("spec"))
    for name, part in parts.items():
        packed = gzip.compress(json.dumps(part).encode(), mtime=0)
        found[name] = base64.b64encode(packed).decode()
    return found


def put(part: Any, number: int, value: Any) -> None:
    """Put a value at a place of a document, or at the end of a list."""
    places = list(_places(part))
    if places:
        where, key = places[number % len(places)]
        if isinstance(where, list) and number % 2:
            where.append(deepcopy(value))
        else:
            where[key] = deepcopy(value)


def _places(part: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(part, dict | list):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield part, key
            yield from _places(value)


async def followed(hub: EmbeddedHub, namespace: str, name: str) -> None:
    """Let new processes follow a record, and look at what is in force."""
    for _ in range(3):
        service = Optimizer(hub, now=lambda: NOW)
        await service.rollouts.advance(namespace, name)
        await service.placement_status(namespace)


async def restored(hub: EmbeddedHub, namespace: str, revision: int) -> bool:
    """Ask for a rollback to a record; return whether it was applied."""
    service = Optimizer(hub, now=lambda: NOW)
    asked = RollbackRequest(namespace=namespace, to_revision=revision)
    plan = await service.plan_rollback(asked)
    if not isinstance(plan, Plan):
        return False
    return not isinstance(await service.apply(plan), RequestProblem)


async def written(hub: EmbeddedHub) -> list[Object]:
    """All objects but those in which the optimizer writes down what it does."""
    every = (item for item in hub.server.catalog.all() if not item.review)
    return [
        obj for item in every if item.kind not in OWN for obj in (await hub.list(item.kind)).items
    ]
