from dataclasses import replace
from typing import Any

import pytest

from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.result import Unplaced
from tests.optimizer.build import NOW, body, guide, request, workload
from tests.optimizer.hubs import hub_of


async def planned(*, constraints: dict[str, Any], **changed: Any) -> Plan:
    """The plan of the guide's request where the first workload has constraints."""
    service = Optimizer(await hub_of(), now=lambda: NOW)
    first, *others = body()["targetWorkloads"]
    plan = await service.plan(
        request(targetWorkloads=[{**first, **constraints}, *others], **changed)
    )
    assert isinstance(plan, Plan)
    return plan


async def unplaced(**constraints: Any) -> Unplaced:
    found = (await planned(constraints=constraints)).unplaced
    return next(item for item in found if item.workload == "mwrs-app01")


@pytest.mark.parametrize(
    ("constraints", "reason", "said"),
    [
        ({"clusters": "worker09"}, "NotPinned", "are on clusters that it does not name"),
        ({"excludedClusters": "worker01,worker02"}, "Excluded", "clusters that it excludes"),
        ({"affinity": "gpu=a100"}, "Affinity", "don't match its affinity"),
        ({"antiAffinity": "!gpu"}, "AntiAffinity", "its anti-affinity forbids"),
        ({"minimumScore": 61}, "BelowMinimumScore", "less than its minimum score"),
    ],
)
async def test_an_unmet_constraint_is_the_reason(
    constraints: dict[str, Any], reason: str, said: str
) -> None:
    found = await unplaced(**constraints)
    assert (found.reason, said in found.message) == (reason, True)


async def test_obstacles_that_only_together_leave_no_place_are_all_named() -> None:
    found = await unplaced(clusters="worker02", minimumScore=61)
    assert found.message.startswith("workload mwrs-app01: of the 6 devices with gpu, 3 are on")
    assert "worth less than its minimum score" in found.message


async def test_what_it_requests_and_the_most_there_is_are_named_among_obstacles() -> None:
    observation = replace(guide(), workloads=(workload("mwrs-app01", "app01", 3),))
    service = Optimizer(await hub_of(observation), now=lambda: NOW)
    wanted = [{"name": "mwrs-app01", "minimumScore": 11}]
    plan = await service.plan(request(targetWorkloads=wanted))
    assert isinstance(plan, Plan)
    assert plan.unplaced[0].message.endswith(
        "never have enough for it, 2 are worth less than its minimum score; it requests 3 gpu, and"
        " the most that a cluster can have is 3 of 2g.24gb (cluster worker01)"
    )


async def test_too_little_of_a_further_kind_is_the_reason() -> None:
    clusters = [{**item, "allocatable": "cpu=2"} for item in body()["clusters"]]
    plan = await planned(constraints={"requests": "cpu=4"}, clusters=clusters)
    assert [item.reason for item in plan.unplaced] == ["NoExtraSupply"]


async def test_a_limit_that_leaves_no_room_is_among_the_reasons() -> None:
    limit = {"name": "power", "maximum": 0, "uses": "watts"}
    plan = await planned(constraints={"uses": "watts=1"}, limits=[limit])
    (found,) = plan.unplaced
    assert (found.reason, "or a limit forbids it" in found.message) == ("NoRoomLeft", True)


async def test_a_workload_that_runs_on_fewer_clusters_than_asked_for_says_why() -> None:
    found = await unplaced(replicas=3)
    assert (found.reason, found.message) == (
        "FewerReplicas",
        "workload mwrs-app01: it runs on 2 of 3 clusters, and can run on no other",
    )


async def test_what_others_took_is_why_it_runs_on_fewer_clusters() -> None:
    observation = replace(
        guide(), workloads=(workload("mwrs-app01", "app01"), workload("mwrs-app02", "app02"))
    )
    service = Optimizer(await hub_of(observation), now=lambda: NOW)
    first, second = body()["targetWorkloads"]
    wanted = [{**first, "replicas": 2}, {**second, "priority": 1}]
    plan = await service.plan(request(targetWorkloads=wanted))
    assert isinstance(plan, Plan)
    (found,) = plan.unplaced
    assert found.message.startswith("workload mwrs-app01: it runs on 1 of 2 clusters; elsewhere 2")
