"""Every applied plan is on record: what it was, what became of it, and which objects it wrote."""

from dataclasses import replace

import pytest

from dsf.api.crd.definitions import crds
from dsf.api.names import (
    PLAN_DIGEST_ANNOTATION,
    PLAN_OBJECTIVE_ANNOTATION,
    REQUEST_DIGEST_ANNOTATION,
)
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, ServerError
from dsf.kube.port import Kube
from optimizer.domain.settings import OptimizerSettings
from optimizer.follow.record.content import RecordContent
from optimizer.follow.record.recorded_plan import RecordedPlan, read_records, record_digest
from optimizer.plan.plan import Plan
from optimizer.plan.plan import result as answer
from optimizer.service.optimizer import Optimizer
from optimizer.service.plan_writer import Writer
from optimizer.wire.result import Applied, ResetResult
from tests.earlier_release import charts
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call
from tests.objects_with_status import create_with_status
from tests.optimizer.build import NOW, guide, request
from tests.optimizer.hubs import bound, hub_of, names


def optimizer(hub: Kube, limit: int = 10) -> Optimizer:
    """An optimizer whose Lease expires after a second, so that nobody waits long for a dead one."""
    settings = OptimizerSettings(plan_history_limit=limit)
    return Optimizer(hub, settings, now=lambda: NOW, lease_seconds=1)


async def applied(service: Optimizer, score: str, user: str = "") -> tuple[Plan, Applied]:
    plan = await service.plan(request(score))
    assert isinstance(plan, Plan)
    outcome = await service.apply(plan, Writer(user=user))
    assert isinstance(outcome, Applied)
    return plan, outcome


async def recorded(hub: EmbeddedHub) -> tuple[RecordedPlan, ...]:
    return read_records((await hub.list(kinds.PLACEMENT_PLAN, "default")).items)


def said(record: RecordedPlan) -> list[tuple[str, str, str]]:
    return [(item.type, item.status, item.reason) for item in record.status.conditions or ()]


async def test_a_record_has_what_was_asked_decided_and_written() -> None:
    hub = await hub_of()
    plan, outcome = await applied(optimizer(hub), "performance", user="alice")

    assert (outcome.record, outcome.issues) == ("default-1", ())
    (record,) = await recorded(hub)
    spec = record.spec
    assert (spec.optimization, spec.revision, spec.digest) == ("default", 1, plan.digest)
    assert (spec.requested_by, spec.objective, spec.bound, spec.gap) == ("alice", 115, 115, 0)
    assert spec.changes is not None
    assert (spec.changes.create, spec.changes.patch, spec.changes.delete) == (6, 0, 0)
    assert spec.scores is not None
    assert spec.scores.count == 2
    assert [item.cluster for item in spec.scores.versions or ()] == ["worker01", "worker02"]
    score = await hub.get(kinds.ADD_ON_PLACEMENT_SCORE, "performance", "worker01")
    assert (spec.scores.versions or [])[0].resource_version == score["metadata"]["resourceVersion"]
    assert record.intact
    assert record.phase == "Applied"
    assert said(record) == [("Applied", "True", "Written")]

    content = record.content()
    assert isinstance(content, RecordContent)
    assert content.objects == plan.manifests
    assert content.decision == plan.solution.decision
    assert len(content.changes) == 6
    assert content.request["preference"]["addonPlacementScore"] == "performance"
    assert content.assumptions["policy 3g.48gb-worker01"] == "supplies 2 gpu of 3g.48gb"
    assert content.assumptions["workload mwrs-app01"] == "requests 2 gpu"


async def test_a_later_plan_supersedes_the_earlier_one_and_a_repetition_is_no_plan() -> None:
    hub = await hub_of()
    service = optimizer(hub)
    await applied(service, "performance")
    _, again = await applied(service, "performance")
    assert again.record == "default-1"
    await applied(service, "power")

    newer, older = await recorded(hub)
    assert (newer.spec.revision, newer.phase) == (2, "Applied")
    assert (older.spec.revision, older.phase) == (1, "Superseded")
    assert said(older)[-1] == ("Superseded", "True", "NewerPlan")


async def test_an_equal_decision_for_another_request_is_another_plan() -> None:
    hub = await hub_of()
    service = optimizer(hub)
    await applied(service, "performance")
    plan = await service.plan(request("performance", gap=0.5))
    assert isinstance(plan, Plan)
    assert plan.changes == ()
    await service.apply(plan)
    newer, older = await recorded(hub)
    assert newer.spec.objects_digest == older.spec.objects_digest
    assert newer.spec.request_digest != older.spec.request_digest


async def test_the_oldest_records_are_deleted() -> None:
    hub = await hub_of()
    service = optimizer(hub, limit=2)
    for score in ("performance", "power", "performance", "power"):
        await applied(service, score)
    assert [record.name for record in await recorded(hub)] == ["default-4", "default-3"]


async def test_objects_say_which_plan_wrote_them_last_and_that_is_no_difference() -> None:
    hub = await hub_of()
    service = optimizer(hub)
    first, _ = await applied(service, "performance")
    written = await hub.get(kinds.PLACEMENT, "app01-placement", "default")
    annotations = written["metadata"]["annotations"]
    (record,) = await recorded(hub)
    assert annotations == {
        PLAN_DIGEST_ANNOTATION: first.digest,
        PLAN_OBJECTIVE_ANNOTATION: "115",
        REQUEST_DIGEST_ANNOTATION: record.spec.request_digest,
    }
    assert "annotations" not in first.output_yaml

    second, _ = await applied(service, "performance")
    assert second.digest != first.digest
    assert second.changes == ()
    assert await hub.get(kinds.PLACEMENT, "app01-placement", "default") == written


async def test_a_refused_write_makes_the_plan_failed_and_the_next_one_whole() -> None:
    hub = await hub_of()

    def refuse(call: Call) -> Fault | None:
        wanted = (call.verb, call.kind) == ("create", kinds.PLACEMENT_BINDING)
        return Fault(Forbidden("no more bindings")) if wanted else None

    _, outcome = await applied(optimizer(Faulty(hub, refuse)), "performance")
    assert len(outcome.failed) == 2
    (record,) = await recorded(hub)
    assert record.phase == "Failed"
    assert said(record) == [("Applied", "False", "HubRefused")]
    (condition,) = record.status.conditions or ()
    assert "no more bindings" in condition.message
    assert outcome.failed[0].name in condition.message

    await applied(optimizer(hub), "performance")
    assert await bound(hub) == {"3g.48gb-worker01", "3g.48gb-worker02"}
    newer, older = await recorded(hub)
    assert (newer.phase, older.phase) == ("Applied", "Failed")


async def test_a_reset_ends_the_plan_in_force() -> None:
    hub = await hub_of()
    service = optimizer(hub)
    await applied(service, "performance")
    await service.reset("default")
    (record,) = await recorded(hub)
    assert record.phase == "Superseded"
    assert said(record)[-1] == ("Superseded", "True", "Reset")


async def test_a_plan_without_placements_is_not_recorded() -> None:
    hub = await hub_of(replace(guide(), scores=()))
    for score in guide().scores:
        late = {**score, "status": {"scores": [], "validUntil": "2026-11-20T11:00:00Z"}}
        await hub.create(kinds.ADD_ON_PLACEMENT_SCORE, late)
    _, outcome = await applied(optimizer(hub), "performance")
    assert outcome.record == ""
    assert await recorded(hub) == ()


async def test_without_the_crd_a_plan_is_applied_and_says_that_it_is_not_recorded() -> None:
    own = [crd for crd in crds() if crd["spec"]["names"]["plural"] != "placementplans"]
    full, hub = await hub_of(), EmbeddedHub(crds=own, now=lambda: NOW)
    for kind in (
        kinds.NAMESPACE,
        kinds.MANAGED_CLUSTER,
        kinds.POLICY,
        kinds.MANIFEST_WORK_REPLICA_SET,
        kinds.ADD_ON_PLACEMENT_SCORE,
    ):
        for item in (await full.list(kind)).items:
            if kind is not kinds.NAMESPACE or item["metadata"]["name"].startswith("worker"):
                await copy(hub, kind, item)
    plan, outcome = await applied(optimizer(hub), "performance")
    assert len(await names(hub, kinds.PLACEMENT)) == 4
    assert [issue.reason for issue in outcome.issues] == ["PlanNotRecorded"]
    assert "dsf crds placementplans" in answer(plan, outcome).gaps[-1].message
    assert (await optimizer(hub).reset("default")).deleted  # type: ignore[union-attr]


async def copy(hub: EmbeddedHub, kind: kinds.Kind, item: dict) -> None:  # type: ignore[type-arg]
    metadata = {
        k: item["metadata"][k] for k in ("name", "namespace", "labels") if k in item["metadata"]
    }
    await create_with_status(hub, kind, {**item, "metadata": metadata})


async def test_a_record_that_can_not_be_written_stops_the_plan_before_its_first_write() -> None:
    hub = await hub_of()

    def fail(call: Call) -> Fault | None:
        wanted = (call.verb, call.kind) == ("create", kinds.PLACEMENT_PLAN)
        return Fault(ServerError("etcd is full")) if wanted else None

    with pytest.raises(ServerError, match="etcd is full"):
        await applied(optimizer(Faulty(hub, fail)), "performance")
    assert await names(hub, kinds.PLACEMENT) == []


async def test_a_status_that_can_not_be_written_is_named_and_completed_by_the_next_plan() -> None:
    hub, patches = await hub_of(), set[int]()

    def fail(call: Call) -> Fault | None:
        if (call.verb, call.kind) == ("patch", kinds.PLACEMENT_PLAN):
            patches.add(call.number)
        return Fault(ServerError("down")) if call.number in patches and len(patches) > 1 else None

    _, outcome = await applied(optimizer(Faulty(hub, fail)), "performance")
    assert outcome.failed == ()
    assert [issue.reason for issue in outcome.issues] == ["RecordIncomplete"]
    assert [record.phase for record in await recorded(hub)] == ["Applying"]

    await applied(optimizer(hub), "power")
    newer, older = await recorded(hub)
    assert (newer.phase, older.phase) == ("Applied", "Superseded")


@pytest.mark.parametrize(
    ("last", "reason", "left"),
    [
        (kinds.PLACEMENT_BINDING, "Interrupted", "2 objects differ: PlacementBinding "),
        (kinds.PLACEMENT, "NothingWritten", "6 objects differ: Placement "),
    ],
)
async def test_the_next_plan_names_what_a_dead_writer_left_unwritten(
    last: kinds.Kind, reason: str, left: str
) -> None:
    hub, dead = await hub_of(), False

    def die(call: Call) -> Fault | None:
        nonlocal dead
        dead = dead or (call.verb, call.kind) == ("create", last)
        return Fault(ServerError("gone")) if dead else None

    await applied(optimizer(Faulty(hub, die)), "performance")
    assert [record.phase for record in await recorded(hub)] == ["Applying"]
    await applied(optimizer(hub), "power")
    _, older = await recorded(hub)
    assert older.phase == "Failed"
    (condition,) = older.status.conditions or ()
    assert condition.reason == reason
    assert left in condition.message


async def test_an_interrupted_record_without_content_is_not_taken_for_applied() -> None:
    hub = await hub_of()
    await applied(optimizer(hub), "performance")
    found = await hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    await hub.delete(kinds.PLACEMENT_PLAN, "default-1", "default")
    spec = {key: value for key, value in found["spec"].items() if key != "content"}
    metadata = {"name": "default-1", "namespace": "default"}
    without = {**spec, "recordDigest": record_digest(spec)}
    await hub.create(kinds.PLACEMENT_PLAN, {**found, "metadata": metadata, "spec": without})
    await applied(optimizer(hub), "power")
    older = (await recorded(hub))[1]
    assert older.phase == "Failed"
    assert "no usable content" in (older.status.conditions or [])[0].message


async def test_a_reset_that_can_not_be_recorded_is_made_nevertheless() -> None:
    hub = await hub_of()
    await applied(optimizer(hub), "performance")

    def fail(call: Call) -> Fault | None:
        wanted = (call.verb, call.kind) == ("patch", kinds.PLACEMENT_PLAN)
        return Fault(ServerError("down")) if wanted else None

    result = await optimizer(Faulty(hub, fail)).reset("default")
    assert isinstance(result, ResetResult)
    assert len(result.deleted) == 6


def test_a_record_of_a_newer_release_counts_as_edited_once_a_crd_has_dropped_its_fields() -> None:
    [plan] = [obj for obj in charts.objects() if obj["kind"] == "PlacementPlan"]
    spec = {**plan["spec"], "reviewedBy": {"of": "a newer release"}}
    spec["recordDigest"] = record_digest(spec)
    dropped = {name: value for name, value in spec.items() if name != "reviewedBy"}
    (whole,) = read_records([{**plan, "spec": spec}])
    (cut,) = read_records([{**plan, "spec": dropped}])
    assert (whole.intact, cut.intact) == (True, False)
    assert whole.spec == cut.spec
