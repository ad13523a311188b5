from dataclasses import replace
from typing import Any

import pytest

from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import moves
from optimizer.service.optimizer import Optimizer
from optimizer.wire.result import Unplaced
from tests.optimizer.build import NOW, body, guide, request, workload
from tests.optimizer.hubs import hub_of
from tests.optimizer.neighbours import run_by_hand


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


PINNED = [{"name": "mwrs-app01", "clusters": "worker02"}]
ONLY_3G = [
    body()["clusters"][0],
    {"name": "worker02", "availablePolicies": [{"name": "3g.48gb-worker02"}]},
]
ELSEWHERE = "it may run only on worker02, and 2 places elsewhere would fit it alone"


async def test_where_it_is_pinned_to_is_full_is_the_reason() -> None:
    hub = await hub_of()
    await run_by_hand(hub, "by-hand", "worker02", 3)
    question = [{"cluster": "worker01", "workload": "mwrs-app01"}]
    made = await Optimizer(hub, now=lambda: NOW).plan(
        request(targetWorkloads=PINNED, whyNot=question)
    )
    assert isinstance(made, Plan)
    (issue,), (found,) = made.issues, made.unplaced
    assert (found.reason, found.message) == (
        "NoSupply",
        (
            "workload mwrs-app01: it requests 2 gpu, and no cluster that it names has gpu free;"
            f" {ELSEWHERE}; {issue.message}"
        ),
    )
    assert made.explanation is not None
    (answer,) = made.explanation.why_not
    assert answer.message.startswith("NotPinned: ")
    assert answer.message.endswith(
        "On cluster worker02, which it names, it has no place: cluster worker02 has no gpu free."
        f" {issue.message}"
    )


async def test_who_has_the_cluster_that_it_is_pinned_to_is_told() -> None:
    both = [*PINNED, {"name": "mwrs-app02", "clusters": "worker02", "priority": 1}]
    question = [{"cluster": "worker01", "workload": "mwrs-app01"}]
    service = Optimizer(await hub_of(), now=lambda: NOW)
    made = await service.plan(request(clusters=ONLY_3G, targetWorkloads=both, whyNot=question))
    assert isinstance(made, Plan)
    assert made.unplaced[0].message.endswith(f"has mwrs-app02; {ELSEWHERE}")
    assert made.explanation is not None
    assert made.explanation.why_not[0].message.endswith(
        "On cluster worker02, which it names, it has no place: this plan has mwrs-app02 there"
    )


async def test_what_bars_the_cluster_that_it_is_pinned_to_is_the_reason() -> None:
    asked = [{**PINNED[0], "devices": "all"}]
    service = Optimizer(await hub_of(), now=lambda: NOW)
    made = await service.plan(request(clusters=ONLY_3G, targetWorkloads=asked))
    assert isinstance(made, Plan)
    assert made.unplaced[0].reason == "OtherDevice"


async def test_what_stays_without_a_place_says_why_and_what_is_drained() -> None:
    service, asked = Optimizer(await hub_of(), now=lambda: NOW), body()
    first = await service.plan(request())
    assert isinstance(first, Plan)
    await service.apply(first)
    asked["clusters"][0]["drain"] = {}
    one, other = asked["targetWorkloads"]
    one["togetherWith"], other["togetherWith"] = ["mwrs-app02"], ["mwrs-app01"]
    found = await service.plan(request(**asked))
    assert isinstance(found, Plan)
    assert moves(found) == [
        "mwrs-app01 stays on 3g.48gb on worker01: NoRoomLeft.",
        "mwrs-app02 stays on 3g.48gb on worker02: NoRoomLeft.",
    ]
    assert all(item.message.endswith("; drained: worker01") for item in found.unplaced)


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


@pytest.mark.parametrize("field", ["apartFrom", "togetherWith"])
async def test_a_constraint_to_other_workloads_is_named_as_it_was_stated(field: str) -> None:
    wide = [{"name": "mwrs-app02", "excludedClusters": "worker01"}]
    clusters = body(clusters=["worker02"])["clusters"]
    if field == "togetherWith":
        clusters, wide = body()["clusters"], [{"name": "mwrs-app02", "clusters": "worker02"}]
    first = {"name": "mwrs-app01", field: "mwrs-app02", "clusters": clusters[0]["name"]}
    service = Optimizer(await hub_of(), now=lambda: NOW)
    plan = await service.plan(request(clusters=clusters, targetWorkloads=[first, *wide]))
    assert isinstance(plan, Plan)
    assert any(f"or {field} forbids it" in item.message for item in plan.unplaced)


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


@pytest.mark.parametrize("amount", [2, 3])
async def test_clusters_with_room_but_no_usable_score_are_named(amount: int) -> None:
    """The first request has no place elsewhere, the second is also too large for most devices."""
    observation = guide(["worker01", "worker02", "worker03"])
    scored = tuple(i for i in observation.scores if i["metadata"]["namespace"] == "worker01")
    wanted = (workload("mwrs-app01", "app01", amount), workload("mwrs-app02", "app02"))
    changed = replace(observation, scores=scored, workloads=wanted)
    service = Optimizer(await hub_of(changed), now=lambda: NOW)
    asked = request(
        "performance",
        ["worker01", "worker02", "worker03"],
        targetWorkloads=[
            {"name": "mwrs-app01", "excludedClusters": "worker03"},
            {"name": "mwrs-app02", "priority": 1},
        ],
    )
    plan = await service.plan(asked)
    assert isinstance(plan, Plan)
    (found,) = plan.unplaced
    assert found.message.endswith(
        "; on 1 cluster (worker02) there is enough for it in sum, but no usable score (see the"
        " issues)"
    ), found.message
