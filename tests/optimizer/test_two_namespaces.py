"""Two namespaces want the same GPUs at once: one plan is applied, the other is refused."""

import asyncio
import random
from collections import defaultdict

import pytest

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden
from optimizer.plan.plan import Plan
from optimizer.service import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import WRITES, Call
from tests.optimizer.build import NOW, obj, request
from tests.optimizer.neighbours import TEAM, hub_of_two_teams, of_team, service
from tests.optimizer.test_namespace_lease import Slow

REQUESTS = (request("performance"), of_team("power"))


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
async def test_a_writer_in_another_namespace_is_named_if_it_takes_long(
    asked: OptimizeRequest,
) -> None:
    hub = await hub_of_two_teams()
    other = TEAM if asked.namespace == "default" else "default"
    plan = await service(hub).plan(asked)
    assert isinstance(plan, Plan)
    lease = obj(kinds.LEASE, "dynamic-scoring-optimizer", other)
    annotations = {"dynamic-scoring.open-cluster-management.io/plan-digest": "abc"}
    lease["metadata"]["annotations"] = annotations
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 30}
    await hub.create(kinds.LEASE, {**lease, "spec": spec})
    refused = await Optimizer(hub, now=lambda: NOW, lease_seconds=0.2).apply(plan)
    assert isinstance(refused, RequestProblem)
    assert (refused.status, refused.reason) == (409, "AnotherWriter")
    assert f"namespace {other}: plan abc" in refused.detail
    assert await enforced(hub) == {}


async def test_the_lease_of_a_process_that_died_elsewhere_holds_nobody_up_for_ever() -> None:
    hub = await hub_of_two_teams()
    plan = await service(hub).plan(request())
    assert isinstance(plan, Plan)
    lease = obj(kinds.LEASE, "dynamic-scoring-optimizer", TEAM)
    spec = {"holderIdentity": "dead", "leaseDurationSeconds": 1}
    await hub.create(kinds.LEASE, {**lease, "spec": spec})
    assert isinstance(await service(hub).apply(plan), Applied)


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
