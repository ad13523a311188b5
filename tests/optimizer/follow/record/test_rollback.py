"""Rollback restores a recorded plan by a plan of its own, or says what no longer allows it."""

import base64
import gzip
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from dsf.api.untrusted_text import InvalidInput
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.port import Object
from optimizer.domain.settings import OptimizerSettings
from optimizer.follow.record.content import MAX_CONTENT_BYTES, MAX_CONTENT_CHARACTERS
from optimizer.follow.record.plan_views import plan_record
from optimizer.follow.record.recorded_plan import RecordedPlan, read_records, record_digest
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import verdict
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.annotations import PREFIX
from optimizer.wire.request import OptimizeRequest, RollbackRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.optimizer.build import NOW, guide, obj, request, score, workload
from tests.optimizer.follow.record.signing import sign
from tests.optimizer.hubs import bound, hub_of, names

PERFORMANCE = {"3g.48gb-worker01", "3g.48gb-worker02"}
POWER = {"2g.24gb-worker01", "2g.24gb-worker02"}


def optimizer(hub: EmbeddedHub) -> Optimizer:
    return Optimizer(hub, OptimizerSettings(), now=lambda: NOW)


async def planned(service: Optimizer, asked: OptimizeRequest) -> Plan:
    plan = await service.plan(asked)
    assert isinstance(plan, Plan), plan
    return plan


async def applied(service: Optimizer, plan: Plan) -> Applied:
    outcome = await service.apply(plan)
    assert isinstance(outcome, Applied), outcome
    assert outcome.failed == ()
    return outcome


async def two_plans() -> tuple[EmbeddedHub, Optimizer]:
    """The guide's fleet after performance, then power."""
    hub = await hub_of()
    service = optimizer(hub)
    for name in ("performance", "power"):
        await applied(service, await planned(service, request(name)))
    return hub, service


async def recorded(hub: EmbeddedHub) -> tuple[RecordedPlan, ...]:
    return read_records((await hub.list(kinds.PLACEMENT_PLAN, "default")).items)


def asked(**how: Any) -> RollbackRequest:
    return RollbackRequest(namespace="default", **how)


async def rolled_back(service: Optimizer, **how: Any) -> Plan:
    plan = await service.plan_rollback(asked(**how))
    assert isinstance(plan, Plan), plan
    await applied(service, plan)
    return plan


async def refusal(service: Optimizer, **how: Any) -> RequestProblem:
    refused = await service.plan_rollback(asked(**how))
    assert isinstance(refused, RequestProblem), refused
    return refused


async def test_the_plan_before_is_restored_by_a_plan_that_can_be_looked_at_first() -> None:
    hub = await hub_of()
    service = optimizer(hub)
    first = await planned(service, request("performance"))
    await applied(service, first)
    await applied(service, await planned(service, request("power")))
    before = (await hub.list(kinds.PLACEMENT)).resource_version

    plan = await service.plan_rollback(asked())
    assert isinstance(plan, Plan)
    assert (await hub.list(kinds.PLACEMENT)).resource_version == before
    assert plan.manifests == first.manifests
    assert plan.digest != first.digest
    assert plan.solution.objective_value == 115.0
    assert sorted(map(str, plan.changes)) == sorted(
        [
            *(
                f"delete PlacementBinding {name} in default"
                for name in await names(hub, kinds.PLACEMENT_BINDING)
            ),
            *(
                f"delete Placement {name} in default"
                for name in await names(hub, kinds.PLACEMENT)
                if name.startswith("placement-")
            ),
            *(
                f"create {item['kind']} {item['metadata']['name']} in default"
                for item in first.manifests
                if not item["metadata"]["name"].startswith("app")
            ),
        ]
    )

    outcome = await applied(service, plan)
    assert outcome.record == "default-3"
    assert await bound(hub) == PERFORMANCE
    newest, power, performance = await recorded(hub)
    assert newest.spec.rollback is not None
    assert (newest.spec.rollback.from_revision, newest.spec.rollback.to_revision) == (2, 1)
    assert [item.phase for item in (newest, power, performance)] == [
        "Applied",
        "RolledBack",
        "Superseded",
    ]


async def test_a_rollback_is_made_step_by_step_if_that_is_asked_for() -> None:
    hub, service = await two_plans()
    plan = await service.plan_rollback(asked(rollout="Stepwise"))
    assert isinstance(plan, Plan)
    assert plan.rollout
    outcome = await applied(service, plan)
    assert (outcome.record, outcome.applied) == ("default-3", ())
    assert await bound(hub) == POWER
    newest = (await recorded(hub))[0]
    assert (newest.phase, newest.spec.rollback is not None) == ("Applying", True)
    refused = await service.apply(plan)
    assert isinstance(refused, RequestProblem)
    assert (refused.status, refused.reason) == (409, "RolloutInProgress")


async def test_a_second_rollback_goes_back_to_what_the_first_one_left() -> None:
    hub, service = await two_plans()
    await rolled_back(service)
    await rolled_back(service)
    assert await bound(hub) == POWER


async def test_any_kept_plan_is_restored_by_revision_or_digest() -> None:
    hub, service = await two_plans()
    await rolled_back(service, to_revision=1)
    assert await bound(hub) == PERFORMANCE
    power = (await recorded(hub))[1]
    await rolled_back(service, digest=power.spec.digest)
    assert await bound(hub) == POWER


async def test_after_a_reset_the_last_plan_is_restored() -> None:
    hub, service = await two_plans()
    await service.reset("default")
    await rolled_back(service)
    assert await bound(hub) == POWER


async def test_a_rollback_needs_no_scores() -> None:
    hub, service = await two_plans()
    for item in guide().scores:
        metadata = item["metadata"]
        await hub.delete(kinds.ADD_ON_PLACEMENT_SCORE, metadata["name"], metadata["namespace"])
    plan = await rolled_back(service)
    assert await bound(hub) == PERFORMANCE
    assert {issue.reason for issue in plan.issues} == {"MissingScoreObject"}


@pytest.mark.parametrize("how", [{}, {"workload": "mwrs-app01"}])
async def test_what_has_no_place_keeps_the_reason_of_the_record(how: dict[str, str]) -> None:
    observation = guide()
    third = workload("mwrs-app03", "app03", 1)
    hub = await hub_of(replace(observation, workloads=(*observation.workloads, third)))
    service, named = optimizer(hub), [item.name for item in request().target_workloads]
    for score_name in ("performance", "power"):
        targets = [{"name": name} for name in (*named, "mwrs-app03")]
        await applied(service, await planned(service, request(score_name, targetWorkloads=targets)))
    restored = await service.plan_rollback(asked(**how))
    assert isinstance(restored, Plan)
    assert [(item.workload, item.reason) for item in restored.unplaced] == [
        ("mwrs-app03", "NoUsableScore")
    ]
    assert [item.why for item in restored.moves if item.action == "waits"] == ["NoUsableScore"]


async def test_a_plan_of_a_hub_without_an_earlier_one_says_so() -> None:
    hub = await hub_of()
    service = optimizer(hub)
    nothing = await refusal(service)
    assert (nothing.status, nothing.reason) == (404, "UnknownPlan")
    await applied(service, await planned(service, request("performance")))
    alone = await refusal(service)
    assert (alone.status, alone.reason) == (409, "NoEarlierPlan")
    assert "kept are revisions 1" in alone.detail


async def test_a_plan_that_is_not_kept_is_a_404_that_says_which_are() -> None:
    _, service = await two_plans()
    unknown = await refusal(service, to_revision=7)
    assert (unknown.status, unknown.reason) == (404, "UnknownPlan")
    assert "no plan of revision 7; kept are revisions 2, 1" in unknown.detail
    assert (await refusal(service, digest="0" * 64)).status == 404
    assert (await refusal(service, optimization="other")).status == 404


async def test_deleted_policies_are_named() -> None:
    hub, service = await two_plans()
    await hub.delete(kinds.POLICY, "3g.48gb-worker01", "default")
    refused = await refusal(service)
    assert (refused.status, refused.reason) == (409, "RollbackRefused")
    assert "no policy in namespace default is named 3g.48gb-worker01" in refused.detail
    assert "name another revision, or plan again" in refused.detail
    assert await bound(hub) == POWER


async def test_a_workload_and_a_cluster_that_are_gone_are_named() -> None:
    hub, service = await two_plans()
    await hub.delete(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", "default")
    assert "is named mwrs-app01" in (await refusal(service)).detail
    await hub.delete(kinds.MANAGED_CLUSTER, "worker02")
    assert "no managed cluster is named worker02" in (await refusal(service)).detail


async def test_what_the_plan_names_and_does_not_use_may_be_gone() -> None:
    hub = await hub_of()
    service = optimizer(hub)
    one = request("performance", targetWorkloads=[{"name": "mwrs-app01"}])
    first = await planned(service, one)
    [used] = {item.cluster for item in first.placements}
    await applied(service, first)
    again = [{"name": used, "availablePolicies": [{"name": f"2g.24gb-{used}"}]}]
    await applied(service, await planned(service, one.model_copy(update=_clusters(again))))
    [unused] = {"worker01", "worker02"} - {used}
    await hub.delete(kinds.MANAGED_CLUSTER, unused)
    await hub.delete(kinds.POLICY, f"all-{used}", "default")
    await rolled_back(service)
    assert await bound(hub) == {f"3g.48gb-{used}"}


def _clusters(asked: list[dict[str, Any]]) -> dict[str, Any]:
    return {"clusters": request("performance", clusters=asked).clusters}


async def test_a_policy_that_supplies_less_is_named_with_what_it_supplied() -> None:
    hub, service = await two_plans()
    labels = {"metadata": {"labels": {"resource-supply-amount": "1"}}}
    await hub.patch(kinds.POLICY, "3g.48gb-worker01", labels, "default")
    refused = await refusal(service)
    assert refused.reason == "RollbackRefused"
    changed = "policy 3g.48gb-worker01 supplies 1 gpu of 3g.48gb now; when the plan was made:"
    assert f'{changed} "supplies 2 gpu of 3g.48gb"' in refused.detail


async def test_a_workload_that_requests_more_is_named() -> None:
    hub, service = await two_plans()
    labels = {"metadata": {"labels": {"resource-request-amount": "3"}}}
    await hub.patch(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", labels, "default")
    refused = await refusal(service)
    assert [error.field for error in refused.errors] == ["workload mwrs-app01"] * 2
    assert "NoSupply" in refused.errors[0].message
    assert "requests 3 gpu now" in refused.errors[1].message


async def test_a_change_that_the_decision_survives_is_allowed() -> None:
    hub, service = await two_plans()
    labels = {"metadata": {"labels": {"resource-supply-amount": "4"}}}
    await hub.patch(kinds.POLICY, "3g.48gb-worker01", labels, "default")
    await rolled_back(service)
    assert await bound(hub) == PERFORMANCE


async def test_a_cluster_that_ocm_can_not_select_any_more_is_named() -> None:
    hub, service = await two_plans()
    taint = {"key": "broken", "effect": "NoSelect", "timeAdded": "2026-11-20T11:00:00Z"}
    await hub.patch(kinds.MANAGED_CLUSTER, "worker02", {"spec": {"taints": [taint]}})
    refused = await refusal(service)
    assert refused.reason == "RollbackRefused"
    assert "can't be enforced on cluster worker02" in refused.detail
    assert "broken" in refused.detail
    assert await bound(hub) == POWER


async def test_a_record_that_was_edited_by_hand_is_refused() -> None:
    hub, service = await two_plans()
    found = await hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    await replaced(hub, found, {**found["spec"], "objective": 999})
    refused = await refusal(service)
    assert (refused.status, refused.reason) == (409, "UnusableRecord")
    assert "default-1: someone edited it" in refused.detail


def zipped(document: object) -> str:
    return base64.b64encode(gzip.compress(json.dumps(document).encode(), mtime=0)).decode()


@pytest.mark.parametrize(
    "content",
    ["", "no base64", "H4sI", "bm90IGd6aXA=", "x" * 99, zipped({"kind": "none"}), zipped([[]] * 9)],
)
async def test_a_content_that_can_not_be_read_is_refused(content: str) -> None:
    """Even where the digest was made to match."""
    hub, service = await two_plans()
    found = await hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    spec = {**found["spec"], "content": content}
    await replaced(hub, found, {**spec, "recordDigest": record_digest(spec)})
    refused = await refusal(service)
    assert (refused.status, refused.reason) == (409, "UnusableRecord")


async def replaced(hub: EmbeddedHub, found: Object, spec: Object) -> None:
    """Delete a record and make another of its name: its spec can't be changed in place."""
    await hub.delete(kinds.PLACEMENT_PLAN, "default-1", "default")
    metadata = {key: found["metadata"][key] for key in ("name", "namespace", "labels")}
    await hub.create(kinds.PLACEMENT_PLAN, {**found, "metadata": metadata, "spec": spec})
    status = {"status": found["status"]}
    await hub.patch(kinds.PLACEMENT_PLAN, "default-1", status, "default", subresource="status")
    await sign(hub, "default-1")


async def test_a_forged_record_of_a_legal_decision_is_not_restored() -> None:
    """Its digests fit, and it has name, labels and status of a plan that was applied."""
    hub, service = await two_plans()
    found = await hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    forged = {**found["spec"], "requestedBy": "system:admin"}
    await replaced(hub, found, {**forged, "recordDigest": record_digest(forged)})
    status = {"status": {"signature": found["status"]["signature"]}}
    await hub.patch(kinds.PLACEMENT_PLAN, "default-1", status, "default", subresource="status")
    refused = await refusal(service)
    assert (refused.status, refused.reason) == (409, "UnusableRecord")
    assert "default-1: it is not signed" in refused.detail


async def test_a_copy_of_a_signed_record_is_not_signed() -> None:
    hub, service = await two_plans()
    found = await hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    await replaced(hub, found, found["spec"])
    assert isinstance(await service.plan_rollback(asked()), Plan)
    status = {"status": {"signature": found["status"]["signature"]}}
    await hub.patch(kinds.PLACEMENT_PLAN, "default-1", status, "default", subresource="status")
    assert "not signed" in (await refusal(service)).detail


async def test_a_content_that_unpacks_to_too_much_is_not_unpacked() -> None:
    await test_a_content_that_can_not_be_read_is_refused(zipped(" " * MAX_CONTENT_BYTES))


async def test_a_plan_whose_content_was_too_large_to_keep_can_not_be_restored() -> None:
    hub = await hub_of()
    service = optimizer(hub)
    plan = await planned(service, request("performance"))
    noise = random.Random(1).randbytes(MAX_CONTENT_CHARACTERS).hex()  # noqa: S311 - incompressible
    outcome = await applied(service, replace(plan, assumptions={"workload app": noise}))
    assert [issue.reason for issue in outcome.issues] == ["PlanTooLargeToKeep"]
    assert (await recorded(hub))[0].phase == "Applied"
    await applied(service, await planned(service, request("power")))
    refused = await refusal(service)
    assert (refused.status, refused.reason) == (409, "UnusableRecord")
    assert "too large for the hub" in refused.detail


async def test_a_set_binding_that_vanishes_between_plan_and_apply_stops_the_plan() -> None:
    sets = (
        obj(
            kinds.MANAGED_CLUSTER_SET,
            "gpu",
            spec={"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}},
        ),
    )
    hub = await hub_of()
    for item in sets:
        await hub.create(kinds.MANAGED_CLUSTER_SET, item)
    binding = obj(kinds.MANAGED_CLUSTER_SET_BINDING, "gpu", "default", spec={"clusterSet": "gpu"})
    await hub.create(kinds.MANAGED_CLUSTER_SET_BINDING, binding)
    service = optimizer(hub)
    for name in ("performance", "power"):
        await applied(service, await planned(service, request(name)))
    plan = await service.plan_rollback(asked())
    assert isinstance(plan, Plan)
    await hub.delete(kinds.MANAGED_CLUSTER_SET_BINDING, "gpu", "default")
    stopped = await service.apply(plan)
    assert isinstance(stopped, RequestProblem)
    assert (stopped.status, stopped.reason) == (409, "StalePlan")
    assert await bound(hub) == POWER
    (first, second) = (await refusal(service)).errors
    assert "can't be enforced on cluster worker01" in first.message
    assert "bind cluster set gpu" in second.message


async def test_a_placement_binding_that_vanishes_between_plan_and_apply_stops_the_plan() -> None:
    hub, service = await two_plans()
    plan = await service.plan_rollback(asked())
    assert isinstance(plan, Plan)
    (name, *_) = await names(hub, kinds.PLACEMENT_BINDING)
    await hub.delete(kinds.PLACEMENT_BINDING, name, "default")
    stopped = await service.apply(plan)
    assert isinstance(stopped, RequestProblem)
    assert (stopped.status, stopped.reason) == (409, "StalePlan")


async def test_generated_policies_are_restored() -> None:
    observation = guide(("worker01",))
    devices = {"app01;3g.48gb": 60, "app02;3g.48gb": 55, "app01;2g.24gb": 10, "app02;2g.24gb": 15}
    power = {"app01;3g.48gb": 6, "app02;3g.48gb": 5, "app01;2g.24gb": 80, "app02;2g.24gb": 90}
    hub = await hub_of(
        replace(
            observation,
            policies=(),
            scores=(score("worker01", "performance", devices), score("worker01", "power", power)),
            workloads=(workload("mwrs-app01", "app01", 1), workload("mwrs-app02", "app02", 1)),
        )
    )
    service = optimizer(hub)
    made = []
    for name in ("performance", "power"):
        gpus = [{"model": "H100-96GB", "node": "node1"}]
        whole = {**request(name, ("worker01",)).model_dump(by_alias=True, exclude_defaults=True)}
        whole["clusters"] = [{"name": "worker01", "gpus": gpus}]
        plan = await planned(service, OptimizeRequest.model_validate(whole))
        await applied(service, plan)
        made.append(plan)
    first, second = ([item for item in plan.manifests if item["kind"] == "Policy"] for plan in made)
    assert first
    assert first != second
    restored = await rolled_back(service)
    assert [item for item in restored.manifests if item["kind"] == "Policy"] == first
    assert restored.manifests == made[0].manifests


async def test_one_move_is_undone_and_all_others_stay() -> None:
    hub, service = await two_plans()
    power = (await planned(service, request("power"))).solution.decision.assignments
    moved, other = (item for item in power)
    then = (await recorded(hub))[1].content().assignments  # type: ignore[union-attr]
    plan = await service.plan_rollback(asked(workload=moved.workload))
    assert isinstance(plan, Plan)
    assert await bound(hub) == POWER
    changed = {item.workload for item in plan.moves if item.action != "stays"}
    assert changed == {moved.workload}
    assert {*plan.solution.decision.assignments} == {
        other,
        *(item for item in then if item.workload == moved.workload),
    }
    assert "back where revision 1 of optimization default had it; all others stay" in verdict(plan)
    await applied(service, plan)
    newest, before, _ = await recorded(hub)
    assert newest.spec.rollback is not None
    assert newest.spec.rollback.workload == moved.workload
    latest = before.latest
    assert latest is not None
    assert (before.phase, latest.message) == (
        "Superseded",
        f"revision 3 restored workload {moved.workload} of revision 1",
    )
    # What the plan was asked for stays that of the plan in force.
    assert plan.request.preference.add_on_placement_score == "power"
    again = await service.plan_rollback(asked(workload=moved.workload))
    assert isinstance(again, Plan)
    assert {*again.solution.decision.assignments} == {*power}
    [shown, *_] = await recorded(hub)
    told = plan_record(shown, await recorded(hub)).moved
    assert [item.workload for item in told or ()] == [moved.workload]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"workload": "mwrs-app03"}, "no plan that is kept had workload mwrs-app03 elsewhere than"),
        (
            {"to_revision": 2},
            "revision 2 had workload mwrs-app01 nowhere, or where the plan in force",
        ),
        ({"to_revision": 7}, "no plan of revision 7; kept are revisions 2, 1"),
        ({"digest": "0" * 64}, "no plan of this digest; kept are revisions 2, 1"),
    ],
)
async def test_a_move_that_was_not_made_is_not_undone(how: dict[str, Any], said: str) -> None:
    _, service = await two_plans()
    assert said in (await refusal(service, **{"workload": "mwrs-app01", **how})).detail


async def test_an_old_place_that_is_gone_full_or_changed_is_named() -> None:
    hub, service = await two_plans()
    which = {"workload": "mwrs-app01"}
    content = (await recorded(hub))[1].content()
    assert not isinstance(content, InvalidInput)
    [place] = (item for item in content.assignments if item.workload == "mwrs-app01")
    policy = f"3g.48gb-{place.cluster}"
    labels = {"metadata": {"labels": {"resource-supply-amount": "1"}}}
    await hub.patch(kinds.POLICY, policy, labels, "default")
    full = (await refusal(service, **which)).detail
    assert "workload mwrs-app01 of revision 1 of optimization default can't be restored" in full
    assert f'policy {policy} supplies 1 gpu of 3g.48gb now; when the plan was made: "sup' in full
    taint = {"key": "broken", "effect": "NoSelect", "timeAdded": "2026-11-20T11:00:00Z"}
    await hub.patch(kinds.MANAGED_CLUSTER, place.cluster, {"spec": {"taints": [taint]}})
    assert "can't be enforced on cluster" in (await refusal(service, **which)).detail
    await hub.delete(kinds.POLICY, policy, "default")
    assert f"is named {policy}" in (await refusal(service, **which)).detail
    assert await bound(hub) == POWER


async def test_a_rule_that_an_old_place_would_break_is_not_told_as_a_fact() -> None:
    hub, service = await two_plans()
    near = {"metadata": {"annotations": {f"{PREFIX}workload-affinity": "app=app02"}}}
    await hub.patch(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", near, "default")
    said = (await refusal(service)).detail
    rule = "workload mwrs-app01 runs near mwrs-app02 on cluster worker01"
    assert f"can't be restored: it would not hold that {rule}; restore" in said


async def test_a_plan_for_others_leaves_a_workload_where_it_was() -> None:
    """A plan that names one workload neither moved the other, nor hides where it was before."""
    hub, service = await two_plans()
    one = [{"name": "mwrs-app01"}]
    partly = request("performance", targetWorkloads=one, prune=False)
    await applied(service, await planned(service, partly))
    records = await recorded(hub)
    told = plan_record(records[0], records).moved
    assert told is not None
    assert {item.workload for item in told} <= {"mwrs-app01"}
    plan = await service.plan_rollback(asked(workload="mwrs-app02"))
    if isinstance(plan, RequestProblem):
        assert plan.reason == "RollbackRefused"
    else:
        assert {i.workload for i in plan.moves if i.action != "stays"} == {"mwrs-app02"}
    await hub.delete(kinds.PLACEMENT_PLAN, "default-1", "default")
    await hub.delete(kinds.PLACEMENT_PLAN, "default-2", "default")
    [left] = await recorded(hub)
    assert plan_record(left, [left]).moved is None
