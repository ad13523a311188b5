"""Constraints and preferences, from the request to the generated objects, on an embedded hub."""

from dataclasses import replace
from typing import Any

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.port import Object
from optimizer.plan.plan import Plan, result
from optimizer.plan.text.tables import render
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.annotations import PREFIX
from optimizer.snapshot.observation import Observation
from optimizer.wire.result import Applied
from tests.optimizer.build import NOW, PERFORMANCE, guide, named, policy, request, score, workload
from tests.optimizer.hubs import bound, hub_of

BETTER_ON_SECOND = {**PERFORMANCE, ("app01", "3g.48gb"): 65}


def with_annotations(obj: Object, **texts: str) -> Object:
    annotations = {PREFIX + key.replace("_", "-"): text for key, text in texts.items()}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def annotated(**texts: str) -> Observation:
    observation = guide()
    first, second = observation.workloads
    return replace(observation, workloads=(with_annotations(first, **texts), second))


async def planned(hub: EmbeddedHub, **changed: Any) -> Plan:
    plan = await Optimizer(hub, now=lambda: NOW).plan(request(**changed))
    assert isinstance(plan, Plan)
    return plan


async def apply(hub: EmbeddedHub, plan: Plan) -> None:
    applied = await Optimizer(hub, now=lambda: NOW).apply(plan)
    assert isinstance(applied, Applied)
    assert applied.failed == ()


def where(plan: Plan) -> list[tuple[str, str]]:
    return [(item.workload, item.cluster) for item in plan.placements]


async def test_a_workload_of_two_replicas_has_one_placement_of_both_clusters() -> None:
    hub = await hub_of(annotated(replicas="2"))
    plan = await planned(hub)
    assert where(plan) == [("mwrs-app01", "worker01"), ("mwrs-app01", "worker02")]
    assert plan.solution.objective_value == 120.0
    await apply(hub, plan)
    placement = await hub.get(kinds.PLACEMENT, "app01-placement", "default")
    assert placement["spec"]["numberOfClusters"] == 2
    assert (await planned(hub)).changes == ()


async def test_a_higher_priority_never_loses_to_a_lower_one() -> None:
    hub = await hub_of(annotated(replicas="2"))
    prioritised = [{"name": "mwrs-app01"}, {"name": "mwrs-app02", "priority": 1}]
    plan = await planned(hub, targetWorkloads=prioritised)
    assert ("mwrs-app02", "worker02") in where(plan) or ("mwrs-app02", "worker01") in where(plan)
    answer = result(plan, None)
    assert [(item.priority, item.value) for item in answer.priorities] == [(1, 55.0), (0, 60.0)]
    assert answer.objective_value == 115.0


async def test_a_workload_moves_only_where_that_is_worth_its_cost() -> None:
    hub = await hub_of()
    one = [{"name": "mwrs-app01"}]
    first = await planned(hub, targetWorkloads=one)
    assert where(first) == [("mwrs-app01", "worker01")]
    await apply(hub, first)
    scores = score("worker02", "performance", named(BETTER_ON_SECOND))["status"]
    kind = kinds.ADD_ON_PLACEMENT_SCORE
    await hub.patch(kind, "performance", {"status": scores}, "worker02", subresource="status")

    free = await planned(hub, targetWorkloads=one)
    cheap = await planned(hub, targetWorkloads=[{"name": "mwrs-app01", "moveCost": 3}])
    dear = await planned(hub, targetWorkloads=[{"name": "mwrs-app01", "moveCost": 10}])
    assert (where(free), free.solution.objective_value) == ([("mwrs-app01", "worker02")], 65.0)
    assert (where(cheap), cheap.solution.objective_value) == ([("mwrs-app01", "worker02")], 62.0)
    costs = "objective 62 = 65 of scores - 3 of moves and changes"
    assert costs in render(cheap)
    assert "of scores" not in render(free)
    assert (where(dear), dear.solution.objective_value) == ([("mwrs-app01", "worker01")], 60.0)
    assert dear.placements[0].score == 60.0
    assert dear.changes == ()


async def test_policies_of_two_pools_are_both_enforced() -> None:
    observation = guide(["worker01"])
    second = policy("second-pool", "3g.48gb", 2)
    second["metadata"]["labels"][PREFIX + "pool"] = "second"
    observation = replace(observation, policies=(*observation.policies, second))
    hub = await hub_of(observation)
    policies = [{"name": f"{device}-worker01"} for device in ("2g.24gb", "3g.48gb", "all")]
    clusters = [{"name": "worker01", "availablePolicies": [*policies, {"name": "second-pool"}]}]
    plan = await planned(hub, clusters=clusters)
    assert plan.policies == {"worker01": "3g.48gb-worker01, second-pool"}
    assert len(plan.placements) == 2
    await apply(hub, plan)
    assert await bound(hub) == {"3g.48gb-worker01", "second-pool"}


async def test_a_spread_that_is_said_twice_holds_once() -> None:
    rule = {"key": "metadata.name", "most": 1}
    asked = [{"name": "mwrs-app01", "spread": [rule, rule]}, {"name": "mwrs-app02"}]
    plan = await planned(await hub_of(), targetWorkloads=asked)
    assert (plan.solution.status, len(plan.placements)) == ("Optimal", 2)


async def test_a_mixed_policy_serves_two_devices() -> None:
    observation = guide(["worker01"])
    mixed = with_annotations(policy("mixed"), supplies="gpu/3g.48gb=2,gpu/all=2")
    hub = await hub_of(replace(observation, policies=(mixed,)))
    clusters = [{"name": "worker01", "availablePolicies": [{"name": "mixed"}]}]
    plan = await planned(hub, clusters=clusters)
    assert {(item.workload, item.device) for item in plan.placements} == {
        ("mwrs-app01", "3g.48gb"),
        ("mwrs-app02", "all"),
    }
    assert plan.solution.objective_value == 140.0


async def test_further_kinds_come_from_what_the_cluster_has() -> None:
    observation = annotated(requests="cpu=4,memory=8Gi")
    first, second = observation.managed_clusters
    small = {**first, "status": {"allocatable": {"cpu": "2", "memory": "64Gi"}}}
    large = {**second, "status": {"allocatable": {"cpu": "16", "memory": "64Gi"}}}
    hub = await hub_of(replace(observation, managed_clusters=(small, large)))
    for cluster in (small, large):
        body = {"status": cluster["status"]}
        name = cluster["metadata"]["name"]
        await hub.patch(kinds.MANAGED_CLUSTER, name, body, subresource="status")
    plan = await planned(hub)
    assert ("mwrs-app01", "worker02") in where(plan)


async def test_two_scores_weigh_against_each_other() -> None:
    hub = await hub_of()
    power = {"addonPlacementScore": "power", "weight": 1, "minimum": 0, "maximum": 100}
    plan = await planned(hub, objectives=[power])
    assert {(item.workload, item.device) for item in plan.placements} == {
        ("mwrs-app01", "2g.24gb"),
        ("mwrs-app02", "3g.48gb"),
    }
    assert plan.solution.objective_value == (10 + 80) + (55 + 55)


async def test_a_budget_keeps_the_sum_of_a_score_down() -> None:
    hub = await hub_of()
    budget = {"name": "power", "maximum": 50, "score": {"addonPlacementScore": "power"}}
    plan = await planned(hub, limits=[budget])
    assert where(plan) == [("mwrs-app01", "worker01")]
    (unplaced,) = plan.unplaced
    assert unplaced.workload == "mwrs-app02"


async def test_a_site_has_a_power_cap() -> None:
    observation = guide()
    labelled = []
    for cluster in observation.managed_clusters:
        labels = {**cluster["metadata"]["labels"], "site": "one"}
        labelled.append({**cluster, "metadata": {**cluster["metadata"], "labels": labels}})
    hungry = tuple(with_annotations(item, uses="watts=300") for item in observation.policies)
    hub = await hub_of(replace(observation, managed_clusters=tuple(labelled), policies=hungry))
    cap = {"name": "power", "maximum": 500, "uses": "watts", "per": "site"}
    assert len((await planned(hub, limits=[cap])).policies) == 1
    assert len((await planned(hub, limits=[{**cap, "maximum": 600}])).policies) == 2


async def test_workloads_apart_take_different_clusters() -> None:
    entries = {**PERFORMANCE, ("app02", "2g.24gb"): 95, ("app01", "2g.24gb"): 95}
    observation = annotated(workload_anti_affinity="app=app02")
    roomy = tuple(policy(item["metadata"]["name"], "2g.24gb", 4) for item in observation.policies)
    scores = tuple(score(name, "performance", named(entries)) for name in ("worker01", "worker02"))
    hub = await hub_of(replace(observation, policies=roomy, scores=scores))
    plan = await planned(hub)
    assert len({cluster for _, cluster in where(plan)}) == 2


async def test_a_pinned_workload_stays_out_of_other_clusters() -> None:
    hub = await hub_of(annotated(clusters="worker02"))
    assert where(await planned(hub)) == [("mwrs-app01", "worker02"), ("mwrs-app02", "worker01")]


async def test_an_unacceptable_score_leaves_a_workload_out() -> None:
    two = (
        workload("mwrs-app01", "app01"),
        with_annotations(workload("mwrs-app02", "app02"), minimum_score="90"),
    )
    plan = await planned(await hub_of(replace(guide(), workloads=two)))
    assert [item.workload for item in plan.unplaced] == ["mwrs-app02"]
