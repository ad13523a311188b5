"""POST /optimize with GPUs instead of policies: policies are generated, chosen and deleted."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from dsf.api.names import GENERATED_LABEL
from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.placement import UNREACHABLE
from optimizer.domain.fleet import CandidatePolicy, NodeLayout
from optimizer.domain.settings import GUIDE, OptimizerSettings
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.object_readers import read_policy
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.optimizer.build import NOW, body, guide, managed_cluster, named, policy, score
from tests.optimizer.hubs import bound, hub_of, names

GPU = {"model": "H100-96GB", "node": "worker-node"}


def asking(
    *gpus: dict[str, Any], score_name: str = "performance", **changed: Any
) -> dict[str, Any]:
    """The guide's request, with GPUs instead of policies."""
    asked = body(score_name)
    for cluster in asked["clusters"]:
        del cluster["availablePolicies"]
        cluster["gpus"] = list(gpus or (GPU,))
    return {**asked, **changed}


async def planned(
    hub: EmbeddedHub, asked: dict[str, Any], settings: OptimizerSettings | None = None
) -> Plan:
    service = Optimizer(hub, settings or OptimizerSettings(), now=lambda: NOW)
    plan = await service.plan(OptimizeRequest.model_validate(asked))
    assert isinstance(plan, Plan), plan
    return plan


async def applied(hub: EmbeddedHub, plan: Plan) -> Applied:
    outcome = await Optimizer(hub, now=lambda: NOW).apply(plan)
    assert isinstance(outcome, Applied), outcome
    assert outcome.failed == ()
    return outcome


async def generated(hub: EmbeddedHub) -> list[dict[str, Any]]:
    found = await hub.list(kinds.POLICY, "default", labels=f"{GENERATED_LABEL}=true")
    return list(found.items)


def configs(policies: list[dict[str, Any]], label: str = "nvidia.com/mig.config") -> set[str]:
    return {
        node["objectDefinition"]["metadata"]["labels"][label]
        for item in policies
        for node in item["spec"]["policy-templates"][1]["objectDefinition"]["spec"][
            "object-templates"
        ]
    }


async def bare_hub() -> EmbeddedHub:
    return await hub_of(replace(guide(), policies=()))


async def test_the_guide_s_scenario_needs_no_hand_written_policy() -> None:
    hub = await bare_hub()
    plan = await planned(hub, asking())
    assert plan.solution.objective_value == 115.0
    assert plan.issues == ()
    await applied(hub, plan)
    assert await bound(hub) == set(plan.policies.values())
    assert {item["metadata"]["name"] for item in await generated(hub)} == await bound(hub)
    assert configs(await generated(hub)) == {"dsf-2x3g.48gb"}

    power = await planned(hub, asking(score_name="power"))
    assert power.solution.objective_value == 170.0
    await applied(hub, power)
    assert await bound(hub) == set(power.policies.values())
    assert len(await generated(hub)) == 2


async def test_nodes_of_pools_of_their_own_serve_a_workload_together() -> None:
    pools = [{**GPU, "node": name, "pool": name} for name in ("a", "b")]
    plan = await planned(await bare_hub(), asking(*pools))
    assert (plan.solution.status, plan.solution.objective_value) == ("Optimal", 160.0)
    assert {item.device for item in plan.placements} == {"all"}


async def test_generated_policies_add_to_what_a_cluster_has_anyway() -> None:
    asked = asking()
    for cluster in asked["clusters"]:
        cluster["allocatable"] = "gpu/all=1"
    plan = await planned(await bare_hub(), asked)
    assert (plan.solution.status, plan.solution.objective_value) == ("Optimal", 160.0)


async def test_applying_twice_changes_nothing_the_second_time() -> None:
    hub = await bare_hub()
    first = await applied(hub, await planned(hub, asking()))
    assert [change.kind for change in first.applied].index("Policy") == 0
    assert (await applied(hub, await planned(hub, asking()))).applied == ()


async def test_a_dry_run_writes_no_policy() -> None:
    hub = await bare_hub()
    plan = await planned(hub, asking())
    assert await names(hub, kinds.POLICY) == []
    kinds_shown = [item["kind"] for item in yaml.safe_load_all(plan.output_yaml)]
    assert kinds_shown.count("Policy") == 2


async def test_the_way_from_a_policy_that_is_not_generated_again_names_its_gpus() -> None:
    """Nobody asks for what the policy in force supplies any more, so it is not a candidate."""
    hub = await bare_hub()
    node = {**GPU, "count": 2}
    await applied(hub, await planned(hub, asking(node)))
    before = await bound(hub)
    for name in ("worker01", "worker02"):
        status = {"status": {"scores": [{"name": "app01;1g.12gb", "value": 9}]}}
        await hub.patch(
            kinds.ADD_ON_PLACEMENT_SCORE, "performance", status, name, subresource="status"
        )
    plan = await planned(hub, asking(node, explain=True))
    assert plan.explanation is not None
    way = plan.explanation.transition
    assert way is not None
    released = {item.policy for step in way.steps for item in step.release}
    drained = [item for step in way.steps for item in step.draining]
    assert released
    assert released <= before - set(plan.policies.values())
    assert {item.policy for item in drained} == released
    assert all(item.gpus for item in drained)


async def test_reset_deletes_generated_policies_alone() -> None:
    hub = await hub_of()
    await applied(hub, await planned(hub, asking()))
    await Optimizer(hub, now=lambda: NOW).reset("default")
    assert await generated(hub) == []
    assert len(await names(hub, kinds.POLICY)) == 6


async def test_a_request_without_gpus_cleans_up_what_was_generated_before() -> None:
    hub = await hub_of()
    await applied(hub, await planned(hub, asking()))
    await applied(hub, await planned(hub, body()))
    assert await generated(hub) == []
    assert await bound(hub) == {"3g.48gb-worker01", "3g.48gb-worker02"}


@pytest.mark.parametrize(("seconds", "stays"), [(60, True), (301, False)])
async def test_a_generated_policy_stays_through_a_short_loss_of_its_cluster(
    seconds: int, stays: bool
) -> None:
    hub = await hub_of()
    before = await planned(hub, asking())
    await applied(hub, before)
    since = rfc3339(NOW - timedelta(seconds=seconds))
    taint = {"key": UNREACHABLE, "effect": "NoSelect", "timeAdded": since}
    await hub.patch(kinds.MANAGED_CLUSTER, "worker02", {"spec": {"taints": [taint]}})
    after = await planned(hub, asking(score_name="power"))
    assert (after.policies.get("worker02") == before.policies["worker02"]) == stays
    assert after.policies["worker01"] != before.policies["worker01"]


async def test_a_policy_of_somebody_else_is_never_overwritten() -> None:
    hub = await bare_hub()
    plan = await planned(hub, asking())
    name = next(iter(plan.policies.values()))
    await hub.create(kinds.POLICY, policy(name))
    refused = await Optimizer(hub, now=lambda: NOW).plan(OptimizeRequest.model_validate(asking()))
    assert isinstance(refused, RequestProblem)
    assert refused.reason == "NotGenerated"
    assert name in refused.detail
    late = await Optimizer(hub, now=lambda: NOW).apply(plan)
    assert isinstance(late, RequestProblem)


async def test_generated_candidates_compete_with_listed_ones() -> None:
    hub = await hub_of()
    asked = asking()
    for cluster in asked["clusters"]:
        cluster["availablePolicies"] = [{"name": f"2g.24gb-{cluster['name']}"}]
    assert not set((await planned(hub, asked)).policies.values()) & set(
        await names(hub, kinds.POLICY)
    )
    asked["preference"]["addonPlacementScore"] = "power"
    assert set((await planned(hub, asked)).policies.values()) == {
        "2g.24gb-worker01",
        "2g.24gb-worker02",
    }


async def test_a_generated_policy_can_be_listed_later() -> None:
    hub = await bare_hub()
    plan = await planned(hub, asking())
    await applied(hub, plan)
    asked = body()
    for cluster in asked["clusters"]:
        cluster["availablePolicies"] = [{"name": plan.policies[cluster["name"]]}]
    again = await planned(hub, asked)
    assert again.solution.objective_value == 115.0
    assert (await applied(hub, again)).applied == ()
    assert len(await generated(hub)) == 2


async def test_scores_may_move_between_planning_and_applying() -> None:
    hub = await bare_hub()
    plan = await planned(hub, asking())
    await hub.patch(
        kinds.ADD_ON_PLACEMENT_SCORE,
        "performance",
        {"status": score("worker01", "performance", {"app01;2g.24gb": 99})["status"]},
        "worker01",
        subresource="status",
    )
    await applied(hub, plan)


async def test_mixed_layouts_serve_several_devices() -> None:
    hub = await hub_of(
        replace(
            guide(["worker01"]),
            policies=(),
            scores=(
                score(
                    "worker01",
                    "performance",
                    named({("app01", "3g.48gb"): 60, ("app02", "2g.24gb"): 50}),
                ),
            ),
        )
    )
    for name, amount in (("mwrs-app01", "1"), ("mwrs-app02", "2")):
        labels = {"metadata": {"labels": {"resource-request-amount": amount}}}
        await hub.patch(kinds.MANIFEST_WORK_REPLICA_SET, name, labels, "default")
    asked = asking()
    del asked["clusters"][1]
    plan = await planned(hub, asked)
    assert plan.solution.objective_value == 110.0
    (made,) = [item for item in plan.manifests if item["kind"] == "Policy"]
    assert configs([made]) == {"dsf-2x2g.24gb-1x3g.48gb"}
    assert made["metadata"]["annotations"] == {
        "dynamic-scoring.open-cluster-management.io/cluster": "worker01",
        "dynamic-scoring.open-cluster-management.io/supplies": "gpu/2g.24gb=2,gpu/3g.48gb=1",
        "dynamic-scoring.open-cluster-management.io/layouts": "worker-node/0=2x2g.24gb-1x3g.48gb",
    }
    read = read_policy(made, "worker01")
    assert isinstance(read, CandidatePolicy)
    assert read.declared_layouts == (
        NodeLayout("worker-node", ((("2g.24gb", 2), ("3g.48gb", 1)),)),
    )


async def test_a_whole_gpu_that_a_target_workload_uses_stays_whole_and_counts() -> None:
    hub = await hub_of()
    whole = [{"profile": "all", "gpu": gpu, "workload": "mwrs-app01"} for gpu in (0, 1)]
    used = {**GPU, "count": 2, "instances": whole}
    for score_name in ("performance", "power"):
        plan = await planned(hub, asking(used, score_name=score_name))
        assert {item.device for item in plan.placements} == {"all"}


async def test_a_busy_gpu_is_left_alone_and_an_instance_of_a_target_workload_counts() -> None:
    hub = await bare_hub()
    held = [{"profile": "3g.48gb", "start": 0}, {"profile": "3g.48gb", "start": 4}]
    mine = [{**item, "workload": "mwrs-app01"} for item in held]
    others = [{**item, "busy": True} for item in held]
    free = await planned(hub, asking({**GPU, "instances": mine}))
    assert free.solution.objective_value == 115.0
    taken = await planned(hub, asking({**GPU, "instances": others}))
    assert taken.solution.objective_value == 0.0
    assert {issue.reason for issue in taken.issues} == {"NoGpuDemand"}
    drain = {"reconfigure": "drain", "drainCost": 10, "reconfigureCost": 1}
    asked = asking({**GPU, "instances": others}, score_name="power", mig=drain)
    drained = await planned(hub, asked)
    assert drained.solution.objective_value == 170.0 - 2 * (2 * 10 + 1)
    assert {item.device for item in drained.placements} == {"2g.24gb"}


async def test_what_reconfiguring_costs_is_weighed() -> None:
    hub = await bare_hub()
    held = [{"profile": "2g.24gb", "start": start} for start in (0, 2, 4)]
    cheap = await planned(hub, asking({**GPU, "instances": held}, mig={"reconfigureCost": 1}))
    assert cheap.solution.objective_value == 113.0
    dear = await planned(hub, asking({**GPU, "instances": held}, mig={"reconfigureCost": 60}))
    assert dear.solution.objective_value == 25.0


async def test_the_policy_in_force_costs_nothing_where_the_layout_is_not_known() -> None:
    hub = await bare_hub()
    asked = asking(mig={"reconfigureCost": 5})
    first = await planned(hub, asked)
    assert first.solution.objective_value == 115.0 - 2 * 5
    await applied(hub, first)
    assert (await planned(hub, asked)).solution.objective_value == 115.0


async def test_the_guide_s_labels_are_a_setting() -> None:
    plan = await planned(await bare_hub(), asking(), OptimizerSettings(mig=GUIDE))
    made = [item for item in plan.manifests if item["kind"] == "Policy"]
    assert configs(made, "migsettinglabel") == {"dsf-2x3g.48gb"}


async def test_gpus_are_discovered_where_the_request_says_so() -> None:
    facts = {"nvidia.com/gpu.product": "NVIDIA-GH200-480GB", "nvidia.com/gpu.count": "1"}
    first = managed_cluster("worker01", cluster_name="worker01")
    first["metadata"]["labels"] |= facts
    second = managed_cluster("worker02", cluster_name="worker02")
    second["status"] = {
        "clusterClaims": [{"name": "gpu-product.nvidia.com", "value": "NVIDIA-L40S"}]
    }
    hub = await hub_of(replace(guide(), policies=(), managed_clusters=(first, second)))
    asked = asking(mig={"discover": True})
    for cluster in asked["clusters"]:
        del cluster["gpus"]
    plan = await planned(hub, asked)
    assert plan.solution.objective_value == 60.0
    assert (plan.issues[0].reason, plan.issues[0].cluster) == ("UnknownGpus", "worker02")
    assert "NVIDIA-L40S" in plan.issues[0].message
    del asked["mig"]
    assert (await planned(hub, asked)).solution.objective_value == 0.0


@pytest.mark.parametrize(
    ("fact", "text", "stale"),
    [
        ("gpu.count", "2", True),
        ("gpu.product", "NVIDIA-A100-SXM4-40GB", True),
        ("mig.config", "all-disabled", False),
    ],
)
async def test_a_plan_is_refused_when_the_gpus_are_others(
    fact: str, text: str, stale: bool
) -> None:
    cluster = managed_cluster("worker01", cluster_name="worker01")
    cluster["metadata"]["labels"] |= {"nvidia.com/gpu.product": "NVIDIA-GH200-480GB"}
    hub = await hub_of(replace(guide(["worker01"]), policies=(), managed_clusters=(cluster,)))
    asked = asking(mig={"discover": True})
    asked["clusters"] = [{"name": "worker01"}]
    plan = await planned(hub, asked)
    assert plan.changes
    patch = {"metadata": {"labels": {f"nvidia.com/{fact}": text}}}
    await hub.patch(kinds.MANAGED_CLUSTER, "worker01", patch)
    outcome = await Optimizer(hub, now=lambda: NOW).apply(plan)
    assert isinstance(outcome, RequestProblem) is stale
    if isinstance(outcome, RequestProblem):
        assert outcome.reason == "StalePlan"


async def test_too_few_candidates_are_told_with_what_they_can_cost() -> None:
    """One candidate each: the best for both workloads on one GPU, which serves app01 alone."""
    partly = named({("app01", "3g.48gb"): 60, ("app02", "2g.24gb"): 50})
    scores = tuple(score(name, "performance", partly) for name in ("worker01", "worker02"))
    hub = await hub_of(replace(guide(), policies=(), scores=scores))
    plan = await planned(hub, asking(mig={"maxCandidates": 1}))
    gaps = [issue for issue in plan.issues if issue.reason == "FewerLayouts"]
    assert [issue.cluster for issue in gaps] == ["worker01", "worker02"]
    assert "up to 50 more; raise mig.maxCandidates" in gaps[0].message
    assert (plan.solution.status, plan.solution.objective_value) == ("Feasible", 60.0)
    assert plan.solution.bound == pytest.approx(110.0, rel=1e-4)
    everything = await planned(hub, asking())
    assert (everything.solution.status, everything.solution.objective_value) == ("Optimal", 110.0)


async def test_candidates_left_out_that_nothing_asked_for_could_use_cost_nothing() -> None:
    hub = await bare_hub()
    plan = await planned(hub, asking({**GPU, "count": 4}, mig={"maxCandidates": 1}))
    assert not [issue for issue in plan.issues if issue.reason == "FewerLayouts"]
    assert plan.solution.status == "Optimal"
    everything = await planned(hub, asking({**GPU, "count": 4}))
    assert everything.solution.objective_value == plan.solution.objective_value


@pytest.mark.parametrize(
    ("gpu", "why"),
    [
        ({"model": "L40S"}, 'no MIG geometry is known for GPU "L40S"'),
        ({"instances": [{"profile": "5g.5gb"}]}, 'H100-96GB has no profile "5g.5gb"'),
        ({"instances": [{"profile": "1g.12gb", "gpu": 3}]}, "GPU 3 is not one of 1"),
        (
            {"instances": [{"profile": "3g.48gb", "start": 1}]},
            "3g.48gb can't start at 1, only at 0, 4",
        ),
        (
            {"instances": [{"profile": "7g.96gb"}, {"profile": "1g.12gb"}]},
            "a H100-96GB has no room",
        ),
        ({"instances": [{"profile": "all"}, {"profile": "1g.12gb"}]}, "whole and divided"),
        (
            {"instances": [{"profile": "1g.12gb", "start": 0}, {"profile": "1g.12gb"}]},
            "state the start of every instance, or of none",
        ),
    ],
)
def test_gpus_that_cannot_be_are_refused(gpu: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        OptimizeRequest.model_validate(asking({**GPU, **gpu}))
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("gpus", "why"),
    [
        ([GPU, GPU], "node worker-node is named twice"),
        ([GPU, {"model": "A30"}], "each must name its node"),
    ],
)
def test_a_node_has_one_configuration(gpus: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        OptimizeRequest.model_validate(asking(*gpus))
    assert why in str(caught.value)


async def test_pools_are_chosen_independently_and_share_one_file_of_layouts() -> None:
    hub = await bare_hub()
    asked = asking({**GPU, "node": "n1", "pool": "first"}, {**GPU, "node": "n2", "pool": "second"})
    del asked["clusters"][1]
    plan = await planned(hub, asked)
    assert plan.solution.objective_value == 115.0
    made = [item for item in plan.manifests if item["kind"] == "Policy"]
    assert len(made) == 2
    files = {
        item["spec"]["policy-templates"][0]["objectDefinition"]["spec"]["object-templates"][0][
            "objectDefinition"
        ]["data"]["config.yaml"]
        for item in made
    }
    assert len(files) == 1
    pools = {
        item["metadata"]["labels"]["dynamic-scoring.open-cluster-management.io/pool"]
        for item in made
    }
    assert pools == {"first", "second"}


async def test_only_devices_that_somebody_asks_for_lack_scores() -> None:
    partly = {("app01", "3g.48gb"): 60, ("app02", "3g.48gb"): 50, ("app01", "2g.24gb"): 9}
    scores = tuple(score(name, "performance", named(partly)) for name in ("worker01", "worker02"))
    hub = await hub_of(replace(guide(), policies=(), scores=scores))
    plan = await planned(hub, asking())
    assert [(issue.reason, issue.cluster, issue.device) for issue in plan.issues] == [
        ("MissingScore", "worker01", "2g.24gb"),
        ("MissingScore", "worker02", "2g.24gb"),
    ]
