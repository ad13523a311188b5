"""What a plan takes from others: all policies of a cluster have one claim, of all namespaces."""

import pytest

from dsf.api.names import CLUSTER_CLAIM, GROUP
from dsf.api.optimization import Optimization
from dsf.kube import kinds
from dsf.kube.access_reviews import ResourceAttributes, right
from dsf.kube.embedded import EmbeddedHub
from optimizer.operations.access.authorized_optimizer import Access, AuthorizedOptimizer
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.operations.access.rights import naming_rights
from optimizer.operations.planning import make_plan
from optimizer.operations.writes import apply_plan
from optimizer.plan.plan import Plan, result
from optimizer.service.plan_writer import Writer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied, ResetResult
from tests.dsf.sim.builders import config_map
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.optimizer.build import body, guide, obj, policy, request, workload
from tests.optimizer.follow.rollout.guide_rollout import GuideRollout, guide_rollout
from tests.optimizer.hubs import hub_of
from tests.optimizer.neighbours import (
    TEAM,
    applied,
    in_namespace,
    planned,
    service,
    uncovered_by_hand,
)
from tests.optimizer.operations.access.callers import TOKENS, WRITER, reads, writes

OWNER = f"optimization default of namespace {TEAM}"


async def second_pool(hub: EmbeddedHub, clusters: tuple[str, ...] = ("worker01",)) -> None:
    """A team whose workload runs on NPUs, the clusters' second pool, and waits for the claim."""
    await hub.create(kinds.NAMESPACE, obj(kinds.NAMESPACE, TEAM))
    for cluster in clusters:
        npu = policy(f"npu-{cluster}", "npu", 4, kind="npu")
        npu["metadata"]["annotations"] = {f"{GROUP}/pool": "npu"}
        await hub.create(kinds.POLICY, in_namespace(npu, TEAM))
        entry = {"status": {"scores": [{"name": "vision;npu", "value": 50}]}}
        score = obj(kinds.ADD_ON_PLACEMENT_SCORE, "npu", cluster)
        await hub.create(kinds.ADD_ON_PLACEMENT_SCORE, score)
        kind = kinds.ADD_ON_PLACEMENT_SCORE
        await hub.patch(kind, "npu", entry, cluster, subresource="status")
    vision = workload("vision", "vision", 2)
    vision["metadata"]["labels"]["resource-request-kind"] = "npu"
    await hub.create(kinds.MANIFEST_WORK_REPLICA_SET, in_namespace(vision, TEAM))
    await applied(hub, of_npus(clusters))


def of_npus(on: tuple[str, ...] = ("worker01",), **changed: object) -> OptimizeRequest:
    own = [{"name": item, "availablePolicies": [{"name": f"npu-{item}"}]} for item in on]
    replicas = [{"name": "vision", "replicas": len(on)}]
    asked = {"namespace": TEAM, "clusters": own, "targetWorkloads": replicas}
    return OptimizeRequest.model_validate({**body("npu"), **asked, **changed})


async def test_a_plan_names_the_workloads_of_others_that_lose_their_claim() -> None:
    hub = await hub_of()
    await second_pool(hub)
    plan = await planned(hub, request("performance"))
    (found,) = result(plan, None).uncovers_others
    assert (found.cluster, found.owner, found.namespace) == ("worker01", OWNER, TEAM)
    assert (found.workloads, found.count) == (("vision",), 1)
    (issue,) = [item for item in plan.issues if item.reason == "UncoversOthers"]
    assert issue.message == (
        f"cluster worker01: OCM stops vision of {OWNER} until all policies there are compliant"
        " again, because the plan changes the policies"
    )
    await applied(hub, request("performance"))
    assert (await planned(hub, request("performance"))).uncovers == {}
    assert "worker01" in (await planned(hub, request("power"))).uncovers


async def test_a_plan_that_changes_no_policy_there_uncovers_nobody() -> None:
    hub = await hub_of()
    await second_pool(hub)
    plan = await planned(hub, request("performance", ["worker02"], ["mwrs-app01"]))
    assert (plan.changes != (), plan.uncovers) == (True, {})


async def test_who_stops_enforcing_one_of_several_policies_uncovers_nobody() -> None:
    hub = await hub_of()
    await second_pool(hub)
    await applied(hub, request("performance", ["worker01"], ["mwrs-app01"]))
    plan = await planned(hub, request("performance", ["worker02"], ["mwrs-app01"]))
    assert [item.cluster for item in plan.enforcement_changes] == ["worker01", "worker02"]
    assert plan.uncovers == {}


async def test_the_own_workload_that_keeps_its_pool_is_uncovered_by_a_change_of_another() -> None:
    hub = await hub_of()
    npu = policy("npu-worker01", "npu", 4, kind="npu")
    npu["metadata"]["annotations"] = {f"{GROUP}/pool": "npu"}
    await hub.create(kinds.POLICY, npu)
    vision = workload("vision", "app01", 2, "vision-placement")
    vision["metadata"]["labels"]["resource-request-kind"] = "npu"
    await hub.create(kinds.MANIFEST_WORK_REPLICA_SET, vision)
    score = obj(kinds.ADD_ON_PLACEMENT_SCORE, "both", "worker01")
    await hub.create(kinds.ADD_ON_PLACEMENT_SCORE, score)
    entries = [{"name": f"app01;{name}", "value": 9} for name in ("npu", "3g.48gb")]
    status = {"status": {"scores": entries}}
    await hub.patch(kinds.ADD_ON_PLACEMENT_SCORE, "both", status, "worker01", subresource="status")
    asked = body("both", ["worker01"], ["mwrs-app01"])
    await applied(hub, OptimizeRequest.model_validate(asked))
    asked["clusters"][0]["availablePolicies"].append({"name": "npu-worker01"})
    asked["targetWorkloads"].append({"name": "vision"})
    plan = await planned(hub, OptimizeRequest.model_validate(asked))
    assert {item.workload: (item.action, item.uncovered) for item in plan.moves} == {
        "mwrs-app01": ("stays", True),
        "vision": ("starts", False),
    }


async def test_a_placement_by_hand_that_requires_the_claim_is_named() -> None:
    hub = await hub_of()
    await uncovered_by_hand(hub, "worker01")
    (found,) = result(await planned(hub, request("performance")), None).uncovers_others
    assert (found.cluster, found.workloads) == ("worker01", ("alone",))


async def test_kept_workloads_of_the_own_optimization_are_named() -> None:
    hub = await hub_of()
    await second_pool(hub)
    more = workload("more", "vision", 1, "more-placement")
    more["metadata"]["labels"]["resource-request-kind"] = "npu"
    await hub.create(kinds.MANIFEST_WORK_REPLICA_SET, in_namespace(more, TEAM))
    other = policy("other-worker01", "npu", 3, kind="npu")
    other["metadata"]["annotations"] = {f"{GROUP}/pool": "other"}
    await hub.create(kinds.POLICY, in_namespace(other, TEAM))
    clusters = [{"name": "worker01", "availablePolicies": [{"name": "other-worker01"}]}]
    asked = of_npus(targetWorkloads=[{"name": "more"}], clusters=clusters, prune=False)
    plan = await planned(hub, asked)
    (found,) = result(plan, None).uncovers_others
    assert (found.workloads, "and kept without" in found.owner) == (("vision",), True)


async def test_who_may_not_name_others_sees_how_many_lose_their_claim() -> None:
    hub = await hub_of()
    await second_pool(hub)
    plan = await service(hub).plan(request("performance"), name_others=False)
    assert isinstance(plan, Plan)
    (found,) = result(plan, None).uncovers_others
    assert (found.namespace, found.workloads, found.count) == ("", (), 1)
    assert "OCM stops 1 workload of another namespace" in str(plan.issues)
    assert TEAM not in str(plan)
    assert "vision" not in str(plan)


async def test_a_plan_that_would_uncover_more_than_it_announced_is_refused() -> None:
    hub = await hub_of()
    plan = await planned(hub, request("performance"))
    await second_pool(hub)
    refused = await service(hub).apply(plan)
    assert isinstance(refused, RequestProblem)
    assert (refused.status, refused.reason) == (409, "StalePlan")
    assert f"worker01: vision of {OWNER}" in refused.detail
    hidden = await service(hub).apply(plan, Writer(name_others=False))
    assert isinstance(hidden, RequestProblem)
    assert "worker01: a workload of another namespace" in hidden.detail
    assert TEAM not in hidden.detail
    assert plan.digest != (await planned(hub, request("performance"))).digest


@pytest.mark.parametrize(
    ("more", "allowed"),
    [
        ([], False),
        (writes(TEAM), False),
        ([*writes(TEAM), *naming_rights()], True),
        ([right(verb, kinds.PLACEMENT) for verb in ("create", "delete")], True),
    ],
    ids=["none", "unknown namespace", "named namespace", "everywhere"],
)
async def test_uncovering_others_needs_the_right_to_write_their_placements(
    more: list[ResourceAttributes], allowed: bool
) -> None:
    rights = {WRITER.name: [*reads("default"), *writes("default"), *more]}
    hub = await hub_of(guide(), AccessTable(TOKENS, rights))
    await second_pool(hub)
    writer = AuthorizedOptimizer(service(hub), WRITER, Access(DelegatedAuth(hub)))
    plan = await make_plan(writer, request("performance"))
    assert isinstance(plan, Plan)
    outcome = await apply_plan(writer, plan)
    if allowed:
        assert isinstance(outcome, Applied), outcome
    else:
        assert isinstance(outcome, RequestProblem)
        assert (outcome.status, TEAM in outcome.detail) == (403, False)
        assert "create placements.cluster.open-cluster-management.io" in outcome.detail


async def test_a_reset_names_who_loses_the_last_policys_claim() -> None:
    hub = await hub_of()
    await second_pool(hub)
    await uncovered_by_hand(hub, "worker01")
    done = await service(hub).reset(TEAM)
    assert isinstance(done, ResetResult)
    assert [(item.cluster, item.workloads) for item in done.uncovers_others] == [
        ("worker01", ("alone",))
    ]


async def test_a_rollout_uncovers_one_replica_of_others_after_another() -> None:
    hub = await hub_of()
    await second_pool(hub, ("worker01", "worker02"))
    plan = await planned(hub, request("performance", rollout="Stepwise"))
    uncovering = [
        [item.cluster for item in step.uncovers_others] for step in result(plan, None).rollout_steps
    ]
    assert [found for found in uncovering if found] == [["worker01"], ["worker02"]]


async def alone(rollout: GuideRollout, *, optimization: str = "") -> None:
    """Let somebody, or an optimization, run a workload wherever policies are compliant."""
    own = workload("alone", "alone", 0)
    own["spec"]["manifestWorkTemplate"]["workload"]["manifests"] = [config_map("alone")]
    await rollout.hub.create(kinds.MANIFEST_WORK_REPLICA_SET, own)
    required = {"key": CLUSTER_CLAIM, "operator": "In", "values": ["compliant"]}
    selector = {"claimSelector": {"matchExpressions": [required]}}
    labels = Optimization("default", optimization).labels if optimization else {}
    placed = obj(kinds.PLACEMENT, "alone-placement", "default", labels=labels)
    names = {"key": "cluster-name", "operator": "In", "values": ["worker01", "worker02"]}
    selector["labelSelector"] = {"matchExpressions": [names]}
    spec = {"predicates": [{"requiredClusterSelector": selector}]}
    await rollout.hub.create(kinds.PLACEMENT, {**placed, "spec": spec})
    await rollout.play()
    assert {"alone on worker01", "alone on worker02"} <= await rollout.running()


async def test_a_rollout_stops_others_on_one_cluster_after_another() -> None:
    rollout = await guide_rollout()
    await alone(rollout)
    name = await rollout.begin()
    seen = list[set[str]]()
    while not (await rollout.record(name)).progress.ended:
        await rollout.advance(name)
        await rollout.play()
        seen.append({item for item in await rollout.running() if item.startswith("alone")})
        assert seen[-1], "no replica runs"
    assert (await rollout.record(name)).progress.phase == "Complete"
    assert seen[-1] == {"alone on worker01", "alone on worker02"}


async def test_a_rollout_waits_until_others_run_again() -> None:
    rollout = await guide_rollout()
    await alone(rollout, optimization="other")
    name = await rollout.begin()
    for count, ended in ((1, False), (2, True)):
        spec = {"spec": {"numberOfClusters": count}}
        await rollout.hub.patch(kinds.PLACEMENT, "alone-placement", spec, "default")
        for _ in range(30):
            await rollout.play()
            await rollout.advance(name)
        progress = (await rollout.record(name)).progress
        assert progress.ended == ended
        reasons = {item.reason for item in progress.waiting_for}
        assert reasons == (set() if ended else {"OthersNotRunning"})


async def test_a_rollout_does_not_uncover_who_came_since() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    await alone(rollout)
    for _ in range(20):
        await rollout.advance(name)
        await rollout.play()
    waits = (await rollout.record(name)).progress.waiting_for
    assert {item.reason for item in waits} == {"UncoversOthers"}
    assert {"alone on worker01", "alone on worker02"} <= await rollout.running()
    await rollout.command("undo")
    assert (await rollout.finish(name)).progress.phase == "TurnedBack"
