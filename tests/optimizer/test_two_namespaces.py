"""Two namespaces want the same GPUs at once: one plan is applied, the other is refused."""

import asyncio
import itertools
import random
from collections import defaultdict
from datetime import timedelta

import pytest

from dsf.api.names import PLAN_DIGEST_ANNOTATION
from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden
from optimizer.plan.plan import Plan
from optimizer.service.namespace_lease import LEASE_NAME
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import WRITES, Call
from tests.optimizer.build import NOW, obj, request
from tests.optimizer.neighbours import TEAM, hub_of_two_teams, of_team, service
from tests.optimizer.service.test_namespace_lease import Slow

REQUESTS = (request("performance"), of_team("power"))
FOR_EVER = (
    {"holderIdentity": "x", "leaseDurationSeconds": 2**31 - 1},
    {"holderIdentity": "x", "renewTime": "2999-01-01T00:00:00.000000Z"},
)
"""What somebody writes into a Lease who never gives it back."""


async def plans() -> list[Plan]:
    """A plan of each team, made while nothing is placed."""
    hub = await hub_of_two_teams()
    made = [await service(hub).plan(asked) for asked in REQUESTS]
    assert all(isinstance(item, Plan) for item in made)
    return [item for item in made if isinstance(item, Plan)]


async def enforced(hub: EmbeddedHub) -> dict[str, set[tuple[str, str]]]:
    """The policies that generated bindings enforce, with their namespaces, by cluster."""
    found = defaultdict[str, set[tuple[str, str]]](set)
    for binding in (await hub.list(kinds.PLACEMENT_BINDING)).items:
        for subject in binding["subjects"]:
            cluster = subject["name"].rpartition("-")[2]
            found[cluster].add((binding["metadata"]["namespace"], subject["name"]))
    return found


async def race(made: list[Plan], seed: int) -> list[Applied | RequestProblem]:
    """Apply both plans at once on a new hub; return the outcomes."""
    random_ = random.Random(seed)  # noqa: S311 - a seeded schedule
    hub = await hub_of_two_teams()
    both = random_.sample(made, 2)
    outcomes = await asyncio.gather(
        *(Optimizer(Slow(hub, random_), now=lambda: NOW).apply(plan) for plan in both)
    )
    on = await enforced(hub)
    assert on
    assert all(len(policies) == 1 for policies in on.values()), on
    return list(outcomes)


def check(outcomes: list[Applied | RequestProblem]) -> None:
    (won,) = (item for item in outcomes if isinstance(item, Applied))
    (lost,) = (item for item in outcomes if isinstance(item, RequestProblem))
    assert won.failed == ()
    assert (lost.status, lost.reason) == (409, "HeldByOthers")
    assert "namespace default" in lost.detail
    assert "namespace team-b" in lost.detail


async def test_two_namespaces_never_enforce_contradicting_policies() -> None:
    made = await plans()
    for seed in range(5):
        check(await race(made, seed))


@pytest.mark.exhaustive
@pytest.mark.fire(
    "two namespaces never enforce contradicting policies",
    "races of two namespaces on an embedded hub with latency",
    count=100,
)
async def test_two_namespaces_never_enforce_contradicting_policies_in_100_races() -> None:
    made = await plans()
    for seed in range(100):
        check(await race(made, 1_000 + seed))


async def test_who_plans_again_gets_what_is_left() -> None:
    hub = await hub_of_two_teams()
    first = await service(hub).plan(request("performance", ["worker01"], ["mwrs-app01"]))
    second = await service(hub).plan(of_team("power"))
    assert isinstance(first, Plan)
    assert isinstance(second, Plan)
    assert isinstance(await service(hub).apply(first), Applied)
    assert isinstance(await service(hub).apply(second), RequestProblem)
    again = await service(hub).plan(of_team("power"))
    assert isinstance(again, Plan)
    assert set(again.policies) == {"worker02"}
    assert isinstance(await service(hub).apply(again), Applied)


@pytest.mark.parametrize("asked", REQUESTS, ids=["first", "last"])
async def test_a_writer_in_another_namespace_is_waited_for(asked: OptimizeRequest) -> None:
    hub = await hub_of_two_teams()
    other = TEAM if asked.namespace == "default" else "default"
    plan = await service(hub).plan(asked)
    assert isinstance(plan, Plan)
    await hold(hub, other, holderIdentity="somebody", leaseDurationSeconds=30)
    applying = asyncio.create_task(service(hub).apply(plan))
    await asyncio.sleep(0.5)
    assert await enforced(hub) == {}
    await hub.patch(kinds.LEASE, LEASE_NAME, {"spec": {"holderIdentity": ""}}, other)
    assert isinstance(await applying, Applied)


async def test_who_waits_in_turn_for_many_writers_is_told_of_one() -> None:
    hub, waits = await hub_of_two_teams(), 0.2
    plan = await service(hub).plan(request())
    assert isinstance(plan, Plan)
    applying = asyncio.create_task(Optimizer(hub, now=lambda: NOW, lease_seconds=waits).apply(plan))
    for number in range(100):
        name = f"team-{number}"
        await hub.create(kinds.NAMESPACE, obj(kinds.NAMESPACE, name))
        await hold(hub, name, holderIdentity="somebody", leaseDurationSeconds=30)
        await asyncio.wait({applying}, timeout=waits)
        await hub.patch(kinds.LEASE, LEASE_NAME, {"spec": {"holderIdentity": ""}}, name)
        if applying.done():
            break
    refused = await applying
    assert isinstance(refused, RequestProblem)
    assert (refused.status, refused.reason) == (409, "AnotherWriter")
    assert f"namespace {name}: plan abc" in refused.detail
    assert await enforced(hub) == {}


@pytest.mark.fire(
    "a Lease that somebody holds for ever stops no writer",
    "Leases in namespaces before and after the writer's, as one would forge them",
)
@pytest.mark.parametrize("renewed", [False, True], ids=["forgotten", "renewed"])
@pytest.mark.parametrize("holder", ["evil", "a"], ids=["later", "earlier"])
@pytest.mark.parametrize("spec", FOR_EVER)
async def test_a_lease_that_is_held_for_ever_stops_nobody_elsewhere(
    spec: dict[str, object], holder: str, renewed: bool
) -> None:
    hub, lease_seconds = await hub_of_two_teams(), 0.5
    await hub.create(kinds.NAMESPACE, obj(kinds.NAMESPACE, holder))
    await hold(hub, holder, **spec)
    attack = asyncio.create_task(renew(hub, holder)) if renewed else None
    writer, took = Optimizer(hub, now=lambda: NOW, lease_seconds=lease_seconds), list[float]()
    for score in ("performance", "power", "performance"):
        plan = await writer.plan(request(score))
        assert isinstance(plan, Plan)
        began = asyncio.get_running_loop().time()
        assert isinstance(await writer.apply(plan), Applied)
        took.append(asyncio.get_running_loop().time() - began)
    if attack:
        attack.cancel()
    assert lease_seconds < took[0]
    assert max(took[1:]) < took[0]


async def test_a_lease_that_is_held_for_ever_does_not_stop_its_own_namespace() -> None:
    hub = await hub_of_two_teams()
    plan = await service(hub).plan(request())
    assert isinstance(plan, Plan)
    await hold(hub, "default", **FOR_EVER[0])
    writer = Optimizer(hub, now=lambda: NOW, lease_seconds=1)
    assert isinstance(await writer.apply(plan), Applied)


async def renew(hub: EmbeddedHub, namespace: str) -> None:
    """Renew a Lease for ever, and in between give it back for a moment."""
    for number in itertools.count():
        await asyncio.sleep(0.25)
        renewed = {"renewTime": rfc3339(NOW + timedelta(seconds=number))}
        for identity in ("", f"x{number}") if number % 4 == 0 else (f"x{number}",):
            body = {"spec": {**renewed, "holderIdentity": identity}}
            await hub.patch(kinds.LEASE, LEASE_NAME, body, namespace)


async def hold(hub: EmbeddedHub, namespace: str, **spec: object) -> None:
    """Hold the Lease of a namespace."""
    lease = obj(kinds.LEASE, LEASE_NAME, namespace)
    lease["metadata"]["annotations"] = {PLAN_DIGEST_ANNOTATION: "abc"}
    await hub.create(kinds.LEASE, {**lease, "spec": spec})


def _no_leases_elsewhere(call: Call) -> Fault | None:
    hidden = call.verb == "list" and call.kind == kinds.LEASE
    return Fault(Forbidden("not in all namespaces")) if hidden else None


async def test_who_sees_others_objects_but_not_their_leases_is_refused() -> None:
    hub = await hub_of_two_teams()
    writes = list[Call]()

    def faults(call: Call) -> Fault | None:
        if call.verb in WRITES and call.kind != kinds.LEASE:
            writes.append(call)
        return _no_leases_elsewhere(call)

    blind = Optimizer(Faulty(hub, faults), now=lambda: NOW)
    plan = await blind.plan(request())
    assert isinstance(plan, Plan)
    with pytest.raises(Forbidden):
        await blind.apply(plan)
    assert writes == []


async def test_who_may_list_nothing_elsewhere_applies_as_before() -> None:
    def faults(call: Call) -> Fault | None:
        own = call.kind not in {kinds.POLICY, kinds.LEASE} or call.namespace
        return None if own or call.verb != "list" else Fault(Forbidden("not in all namespaces"))

    alone = Optimizer(Faulty(await hub_of_two_teams(), faults), now=lambda: NOW)
    plan = await alone.plan(request())
    assert isinstance(plan, Plan)
    assert isinstance(await alone.apply(plan), Applied)
