"""Rollouts on the embedded hub and the simulated OCM: killed, paused, turned back, edited."""

import asyncio
import contextlib

import pytest

from dsf.api.names import HUB_NAMESPACE, PLAN_DIGEST_ANNOTATION, RECORD_KEY_SECRET, ROLLOUT_LABEL
from dsf.api.optimization import Optimization
from dsf.kube import kinds
from dsf.kube.errors import Forbidden, KubeError
from dsf.kube.port import Object
from optimizer.follow.record.content import packed
from optimizer.follow.record.recorded_plan import MAX_STEPS_CHARACTERS, record_digest
from optimizer.plan.plan import Plan
from optimizer.service.plan_writer import Writer
from optimizer.wire.plan_record import RolloutPlan
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from optimizer.wire.rollout import RolloutCommand
from tests.dsf.sim.builders import make
from tests.eventually import eventually
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call
from tests.optimizer.build import obj, policy
from tests.optimizer.follow.rollout.guide_rollout import PERFORMANCE, asked, guide_rollout, words
from tests.optimizer.inventoried_nodes import inventory, node, publish_nodes
from tests.optimizer.inventories import counted, publish
from tests.optimizer.service.test_namespace_lease import Killed, Mortal


async def test_the_guides_change_is_made_step_by_step() -> None:
    rollout = await guide_rollout()
    since = await rollout.mark()
    name = await rollout.begin()
    assert await rollout.running() == {"mwrs-app01 on worker01", "mwrs-app02 on worker02"}
    record = await rollout.finish(name)
    assert " ".join(words(record)) == (
        "-app01@1 -3g@1 +2g@1 +app02@1 -app02@2 -3g@2 +2g@2 +app02@2 -app02@1 +app01@1"
    )
    assert await rollout.running() == {"mwrs-app01 on worker01", "mwrs-app02 on worker02"}
    assert await rollout.condition(name) == ("True", "RolloutComplete")
    assert record.obj["status"]["phase"] == "Applied"
    written = (await rollout.hub.list(kinds.PLACEMENT_BINDING, "default")).items
    digests = {item["metadata"]["annotations"][PLAN_DIGEST_ANNOTATION] for item in written}
    assert digests == {record.digest}
    earlier = await rollout.hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    assert earlier["status"]["phase"] == "Superseded"
    uncovered = await rollout.check_history(since, name)
    assert set(uncovered) == {"mwrs-app01"}


async def test_a_step_waits_until_the_pods_of_what_it_started_are_ready() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin(progressDeadlineSeconds=600)
    await publish(rollout.hub, counted(0, 0, 2, name="mwrs-app02"), now=rollout.now)
    await rollout.until(name, "ProgressDeadlineExceeded")
    (wait,) = (await rollout.record(name)).progress.waiting_for
    assert wait.reason == "PodsPending"
    assert "0 of 2 Pods ready, 2 pending: Unschedulable" in wait.message
    assert "mwrs-app02 on worker02" in await rollout.running(), "it goes on until the other runs"
    await publish(rollout.hub, counted(2, 1, name="mwrs-app02"), now=rollout.now)
    await rollout.advance(name)
    (wait,) = (await rollout.record(name)).progress.waiting_for
    assert wait.reason == "PodsNotReady"
    await publish(rollout.hub, counted(2, 2, name="mwrs-app02"), now=rollout.now)
    await rollout.finish(name)
    assert await rollout.condition(name) == ("True", "RolloutComplete")


@pytest.mark.exhaustive
async def test_a_service_that_is_killed_after_each_write_loses_nothing() -> None:
    rollout = await guide_rollout()
    since = await rollout.mark()
    name = await rollout.begin()
    kills, writes = 0, 1
    while not (await rollout.record(name)).progress.ended:
        mortal = Mortal(rollout.hub, writes)
        with contextlib.suppress(Killed, BaseExceptionGroup):
            await rollout.service(mortal).rollouts.advance("default", name)
        kills += mortal.dead
        writes = writes + 1 if mortal.dead else 1
        await rollout.bury()
        if not mortal.dead:
            await rollout.play()
    await rollout.advance(name)
    assert await rollout.condition(name) == ("True", "RolloutComplete")
    assert set(await rollout.check_history(since, name)) == {"mwrs-app01"}
    assert kills > 20


async def test_a_rollout_is_paused_resumed_and_turned_back_and_others_are_refused() -> None:
    rollout = await guide_rollout()
    since = await rollout.mark()
    name = await rollout.begin()
    await rollout.advance(name)
    await rollout.advance(name)
    await rollout.play()
    await rollout.command("pause")
    assert await rollout.condition(name) == ("Unknown", "RolloutPaused")
    held = await rollout.running()
    for _ in range(3):
        assert not await rollout.advance(name)
        await rollout.play()
    assert await rollout.running() == held
    status = await rollout.service().placement_status("default")
    assert [item.reason for item in status.drift] == []

    refused = await rollout.refused(rollout="AllAtOnce")
    assert (refused.status, refused.reason) == (409, "RolloutInProgress")
    assert "dsf rollout" in refused.detail
    again = await rollout.refused()
    assert again.reason == "RolloutInProgress"
    await rollout.add_workload("mwrs-app03")
    only = [{"name": "mwrs-app03"}]
    other = await rollout.refused(rollout="AllAtOnce", optimization="other", targetWorkloads=only)
    assert (other.status, other.reason) == (409, "RolloutInProgress")
    assert "optimization default is rolled out on worker01" in other.detail
    reset = await rollout.service().reset("default")
    assert isinstance(reset, RequestProblem)
    assert reset.reason == "RolloutInProgress"

    await rollout.command("resume")
    await rollout.until(name, "StepWaiting")
    await rollout.command("undo")
    twice = await rollout.service().rollouts.command("default", "default", "undo")
    assert isinstance(twice, RequestProblem)
    assert twice.reason == "AlreadyTurningBack"
    record = await rollout.finish(name)
    assert await rollout.condition(name) == ("False", "RolloutTurnedBack")
    assert record.obj["status"]["phase"] == "RolledBack"
    earlier = await rollout.hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    assert earlier["status"]["phase"] == "Applied"
    assert await rollout.running() == {"mwrs-app01 on worker01", "mwrs-app02 on worker02"}
    await rollout.check_history(since, name)
    late = await rollout.service().rollouts.command("default", "default", "pause")
    assert isinstance(late, RequestProblem)
    assert late.reason == "RolloutEnded"


async def test_a_cluster_that_is_tainted_or_leaves_while_a_step_waits_is_named() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin(progressDeadlineSeconds=300)
    while "2g-worker01" not in str(await rollout.bound()):
        await rollout.advance(name)
        await rollout.play(mig=False)
    taint = {"key": "maintenance", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}
    await rollout.hub.patch(kinds.MANAGED_CLUSTER, "worker01", {"spec": {"taints": [taint]}})
    await rollout.until(name, "ProgressDeadlineExceeded", mig=False)
    record = await rollout.record(name)
    assert record.progress.waiting_for[0].reason == "ClusterTainted"
    assert "waits for longer than its deadline" in str(record.obj["status"]["conditions"])
    await rollout.hub.delete(kinds.MANAGED_CLUSTER, "worker01")
    await rollout.advance(name)
    assert (await rollout.record(name)).progress.waiting_for[0].reason == "ClusterLeft"
    await rollout.command("cancel")
    await rollout.advance(name)
    assert await rollout.condition(name) == ("False", "RolloutCancelled")
    assert (await rollout.record(name)).obj["status"]["phase"] == "Failed"


@pytest.mark.parametrize(
    ("begun", "command", "phase", "reason"),
    [
        (True, "cancel", "Failed", "RolloutCancelled"),
        (False, "undo", "RolledBack", "RolloutTurnedBack"),
    ],
)
async def test_a_rollout_that_somebody_ended_is_no_dead_writer_to_the_next_plan(
    begun: bool, command: RolloutCommand, phase: str, reason: str
) -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    if begun:
        await rollout.advance(name)
    await rollout.command(command)
    if command == "undo":
        with contextlib.suppress(Killed, BaseExceptionGroup):
            await rollout.service(Mortal(rollout.hub, 1)).rollouts.advance("default", name)
        await rollout.bury()
    assert (await rollout.record(name)).progress.ended
    assert (await rollout.record(name)).obj["status"]["phase"] == "Applying"
    await rollout.begin(PERFORMANCE)
    status = (await rollout.record(name)).obj["status"]
    assert status["phase"] == phase
    assert reason in {item["reason"] for item in status["conditions"]}


async def test_edits_by_hand_are_put_back_and_an_edited_record_writes_nothing() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    await rollout.until(name, "StepWaiting")
    placement = (await rollout.hub.get(kinds.PLACEMENT, "app02-placement", "default"))["spec"]
    edited = {"spec": {"numberOfClusters": 7}}
    await rollout.hub.patch(kinds.PLACEMENT, "app02-placement", edited, "default")
    await rollout.until(name, "StepWaiting")
    assert (await rollout.hub.get(kinds.PLACEMENT, "app02-placement", "default"))["spec"] == (
        placement
    )

    await rollout.replace_record(name, {"objective": 1})
    versions = await rollout.versions()
    await rollout.advance(name)
    assert await rollout.condition(name) == ("False", "RecordEdited")
    assert await rollout.versions() == versions
    refused = await rollout.service().rollouts.command("default", "default", "cancel")
    assert isinstance(refused, RequestProblem)
    assert refused.reason == "RecordEdited"


async def test_a_progress_that_somebody_else_wrote_is_not_followed() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    await rollout.until(name, "StepWaiting")
    versions = await rollout.versions()
    wrong = {"status": {"rollout": {"source": 2, "target": 2, "turningBack": True}}}
    await rollout.hub.patch(kinds.PLACEMENT_PLAN, name, wrong, "default", subresource="status")
    await rollout.advance(name)
    assert await rollout.condition(name) == ("False", "RecordNotSigned")
    assert await rollout.versions() == versions
    labels = (await rollout.record(name)).obj["metadata"]["labels"]
    assert ROLLOUT_LABEL not in labels, "looked at once more"


@pytest.mark.parametrize("status", [{}, {"phase": "Applying"}], ids=["none", "copied"])
async def test_what_a_forged_record_wants_written_is_not_written(status: dict[str, str]) -> None:
    """Its digest fits; a step writes a policy that gives everyone all rights."""
    rollout = await guide_rollout()
    name = await rollout.begin()
    await rollout.until(name, "StepWaiting")
    record = await rollout.record(name)
    assert isinstance(record.plan, RolloutPlan)
    evil = make(kinds.POLICY, "evil", "default", spec={"disabled": False})
    labels = record.plan.objects[0]["metadata"]["labels"]
    evil["metadata"]["labels"] = labels
    step = record.plan.steps[0]
    steps = (step.model_copy(update={"write": (*step.write, evil)}), *record.plan.steps[1:])
    forged = packed(record.plan.model_copy(update={"steps": steps}), MAX_STEPS_CHARACTERS)
    spec = {**record.obj["spec"], "rollout": forged}
    changed = {"rollout": forged, "recordDigest": record_digest(spec)}
    found = await rollout.replace_record(name, changed)
    if status:
        body = {"status": {**status, **{f: found["status"][f] for f in ("signature", "rollout")}}}
        await rollout.hub.patch(kinds.PLACEMENT_PLAN, name, body, "default", subresource="status")
    for _ in range(5):
        await rollout.advance(name)
    assert "evil" not in await rollout.names(kinds.POLICY)
    assert await rollout.condition(name) == ("False", "RecordNotSigned")
    assert not await rollout.service().rollouts.records.in_progress("default"), "it holds nobody up"


async def test_each_write_of_a_rollout_leaves_a_line_in_the_audit_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rollout = await guide_rollout()
    with caplog.at_level("INFO", logger="audit"):
        planned = await rollout.plan()
        applied = await rollout.service().apply(planned, Writer(user="jane"))
        assert isinstance(applied, Applied)
        await rollout.finish(applied.record)
    lines = [vars(item) for item in caplog.records if item.name == "audit"]
    assert {(line["user"], line["plan"], line["outcome"]) for line in lines} == {
        ("jane", applied.record, "done")
    }
    assert {line["step"] for line in lines} == set(range(1, applied.steps + 1))


async def test_without_the_key_no_rollout_begins_or_goes_on() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    await rollout.until(name, "StepWaiting")
    await rollout.hub.delete(kinds.SECRET, RECORD_KEY_SECRET, HUB_NAMESPACE)
    versions = await rollout.versions()
    with pytest.raises(KubeError, match=RECORD_KEY_SECRET):
        await rollout.advance(name)
    refused = await rollout.service().rollouts.command("default", "default", "undo")
    assert isinstance(refused, RequestProblem)
    assert refused.reason == "RecordNotSigned"
    assert await rollout.versions() == versions


async def test_a_binding_that_vanishes_is_restored_before_the_rollout_goes_on() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    await rollout.until(name, "StepWaiting")
    (binding,) = [i for i in await rollout.names(kinds.PLACEMENT_BINDING) if "worker02" in i]
    await rollout.hub.delete(kinds.PLACEMENT_BINDING, binding, "default")
    await rollout.finish(name)
    assert await rollout.condition(name) == ("True", "RolloutComplete")


async def test_a_policy_that_is_deleted_during_a_rollout_is_waited_for_by_name() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin(progressDeadlineSeconds=300)
    gone = "policy-enable-mig-2g-worker02"
    made = await rollout.hub.get(kinds.POLICY, gone, "default")
    await rollout.hub.delete(kinds.POLICY, gone, "default")
    await rollout.until(name, "ProgressDeadlineExceeded")
    (wait,) = (await rollout.record(name)).progress.waiting_for
    assert (gone in wait.message, wait.reason) == (True, "NotReported")
    await rollout.hub.create(kinds.POLICY, {**made, "metadata": _own(made["metadata"])})
    await rollout.finish(name)
    assert await rollout.condition(name) == ("True", "RolloutComplete")


def _own(metadata: Object) -> Object:
    kept = ("name", "namespace", "labels", "annotations")
    return {key: metadata[key] for key in kept if key in metadata}


async def test_what_is_not_pruned_stays_as_it_is_during_a_rollout() -> None:
    """Only app02 is asked for; app01 keeps running where it is."""
    rollout = await guide_rollout()
    since = await rollout.mark()
    only = [{"name": "mwrs-app02"}]
    name = await rollout.begin(targetWorkloads=only, prune=False, missingScore=0.0)
    await rollout.finish(name)
    assert "mwrs-app01 on worker01" in await rollout.running()
    assert set(await rollout.check_history(since, name)) <= {"mwrs-app02"}


async def test_a_step_waits_while_others_enforce_a_contradicting_policy() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    labels = dict(Optimization("default", "other").labels)
    selector = {"labelSelector": {"matchLabels": {"cluster-name": "worker02"}}}
    spec = {"numberOfClusters": 1, "predicates": [{"requiredClusterSelector": selector}]}
    placement = obj(kinds.PLACEMENT, "theirs", "default", labels=labels, spec=spec)
    reference = {"name": "theirs", "kind": "Placement", "apiGroup": kinds.PLACEMENT.group}
    await rollout.hub.create(kinds.POLICY, policy("theirs"))
    subject = {"name": "theirs", "kind": "Policy", "apiGroup": kinds.POLICY.group}
    binding = obj(
        kinds.PLACEMENT_BINDING,
        "theirs",
        "default",
        labels=labels,
        placementRef=reference,
        subjects=[subject],
    )
    await rollout.hub.create(kinds.PLACEMENT, placement)
    await rollout.hub.create(kinds.PLACEMENT_BINDING, binding)
    for _ in range(30):
        await rollout.advance(name)
        held = (await rollout.record(name)).progress.waiting_for
        if held and held[0].reason == "HeldByOthers":
            break
        await rollout.play()
    (wait,) = held
    assert wait.reason == "HeldByOthers"
    assert "optimization other of namespace default enforces policy theirs" in wait.message
    assert "policy-enable-mig-2g-worker02" not in await rollout.bound()

    await rollout.hub.delete(kinds.PLACEMENT_BINDING, "theirs", "default")
    await rollout.hub.delete(kinds.PLACEMENT, "theirs", "default")
    await rollout.finish(name)
    assert "policy-enable-mig-2g-worker02" in await rollout.bound()
    assert await rollout.condition(name) == ("True", "RolloutComplete")


async def test_a_step_waits_while_the_nodes_lack_what_it_starts() -> None:
    """A stranger takes a device between two steps, and gives it back."""
    rollout = await guide_rollout()
    name = await rollout.begin(progressDeadlineSeconds=600)
    works = {"mwrs-app01": {"nvidia.com/mig-3g.48gb": 2}}
    devices = {"nvidia.com/mig-2g.24gb": 3, **works["mwrs-app01"]}
    stranger = {"nvidia.com/mig-2g.24gb": 2}
    nodes = [node(devices, stranger, works)]
    await publish_nodes(rollout.hub, inventory("worker02", nodes))
    await rollout.until(name, "ProgressDeadlineExceeded")
    (wait,) = (await rollout.record(name)).progress.waiting_for
    assert wait.reason == "NodesTaken"
    assert wait.message.startswith("managed cluster worker02: not true: gpu 2g.24gb of cluster")
    assert "; not true: workload mwrs-app02 has 2g.24gb on cluster worker02: wait" in wait.message
    assert "mwrs-app02 on worker02" not in await rollout.running()
    nodes = [node(devices, {}, works)]
    await publish_nodes(rollout.hub, inventory("worker02", nodes))
    await rollout.finish(name)
    assert await rollout.condition(name) == ("True", "RolloutComplete")


async def test_a_plan_is_written_at_once_where_rollouts_can_not_be_listed() -> None:
    rollout = await guide_rollout()

    said = (
        'placementplans is forbidden: User "optimizer" cannot list resource "placementplans" in API'
        ' group "dynamic-scoring.open-cluster-management.io" in the namespace "default"'
    )

    def forbidden(call: Call) -> Fault | None:
        listed = (call.verb, call.kind) == ("list", kinds.PLACEMENT_PLAN)
        return Fault(Forbidden(said)) if listed else None

    service = rollout.service(Faulty(rollout.hub, forbidden))
    stepwise = await service.plan(asked())
    assert isinstance(stepwise, Plan)
    refused = await service.apply(stepwise)
    assert isinstance(refused, RequestProblem)
    assert refused.reason == "StepwiseNeedsRecord"
    plan = await service.plan(asked(rollout="AllAtOnce"))
    assert isinstance(plan, Plan)
    assert isinstance(await service.apply(plan), Applied)


async def test_a_rollout_that_may_not_read_the_hub_says_that_it_waits_for_this() -> None:
    rollout = await guide_rollout()
    name = await rollout.begin()
    await rollout.advance(name)
    forbidden = True
    said = (
        'policies is forbidden: User "optimizer" cannot list resource "policies" in API group'
        ' "policy.open-cluster-management.io"'
    )

    def refuse(call: Call) -> Fault | None:
        refused = forbidden and (call.verb, call.kind) == ("list", kinds.POLICY)
        return Fault(Forbidden(said)) if refused else None

    rollouts = rollout.service(Faulty(rollout.hub, refuse)).rollouts
    running = asyncio.create_task(rollouts.run())

    async def told() -> bool:
        waits = (await rollout.record(name)).progress.waiting_for
        return [(item.reason, said in item.message) for item in waits] == [("HubRefused", True)]

    async def gone() -> bool:
        rollouts.nudge()
        return not await told()

    await eventually(told)
    forbidden = False
    await eventually(gone)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("ticks", range(4))
async def test_who_is_woken_and_cancelled_at_once_ends(ticks: int) -> None:
    rollouts = (await guide_rollout()).service().rollouts
    running = asyncio.create_task(rollouts.run())
    await asyncio.sleep(0.5)
    running.cancel()
    for _ in range(ticks):
        await asyncio.sleep(0)
    rollouts.nudge()
    done, _ = await asyncio.wait({running}, timeout=10)
    running.cancel()
    assert done
