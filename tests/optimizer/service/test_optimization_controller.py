"""What a PlacementOptimization declares is planned and kept, whoever is killed meanwhile."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from dsf.api.names import HUB_NAMESPACE, PLAN_REQUESTED_ANNOTATION
from dsf.kube import kinds
from dsf.kube.kinds import PLACEMENT_OPTIMIZATION
from optimizer.plan.plan import Plan
from optimizer.service import optimization_controller
from optimizer.service.optimization_controller import LEASE, OptimizationController
from optimizer.wire.result import Applied
from tests.eventually import eventually
from tests.optimizer.build import PERFORMANCE, obj, request, workload
from tests.optimizer.follow.rollout.guide_rollout import PERFORMANCE as PERFORMANCE_SCORE
from tests.optimizer.follow.rollout.guide_rollout import guide_rollout
from tests.optimizer.service.kept_fleet import (
    MIG_2G,
    MIG_3G,
    POWER,
    KeptFleet,
    kept_fleet,
    message,
    said,
)
from tests.optimizer.service.test_namespace_lease import Killed, Mortal


async def test_a_plan_is_only_told_unless_the_mode_says_more() -> None:
    fleet = await kept_fleet(rollout="AllAtOnce")
    found = await fleet.look()
    assert said(found) == {
        "Ready": "True Kept",
        "Planned": "True Optimal",
        "Applied": "False PlanOnly",
        "Satisfied": "False NotApplied",
    }
    assert found["status"]["plan"]["objective"] == 115
    assert found["status"]["plan"]["changes"] == {"create": 6, "patch": 0, "delete": 0}
    assert "set spec.mode to Approve or Apply" in message(found, "Applied")
    assert await fleet.all(kinds.PLACEMENT) == ()


async def test_what_is_declared_is_applied_and_stays_as_it_is() -> None:
    fleet = await kept_fleet(mode="Apply")
    found = await fleet.look()
    assert said(found)["Applied"] == "True UpToDate"
    assert await fleet.bound() == MIG_3G
    (record,) = await fleet.all(kinds.PLACEMENT_PLAN)
    assert record["spec"]["requestedBy"] == "PlacementOptimization default/kept"
    assert found["status"]["plan"]["digest"] == record["spec"]["objectsDigest"]
    assert [item["reason"] for item in found["status"]["history"]] == ["Applied"]
    fleet.later(minutes=5)
    assert await fleet.look(times=3) == await fleet.look()
    assert len(await fleet.all(kinds.PLACEMENT_PLAN)) == 1


async def test_a_look_at_what_is_as_planned_and_the_manifest_again_write_nothing() -> None:
    fleet = await kept_fleet(mode="Apply", budgets=[{"moves": 5}], triggers={"scoreChange": 1})
    await fleet.look(times=2)
    before = (await fleet.hub.list(kinds.NAMESPACE)).resource_version
    await fleet.look()
    assert (await fleet.hub.list(kinds.NAMESPACE)).resource_version == before
    await fleet.declare(mode="Apply", budgets=[{"moves": 5}], triggers={"scoreChange": 1})
    await fleet.look()
    assert (await fleet.hub.list(kinds.NAMESPACE)).resource_version == before


async def test_a_changed_score_moves_and_an_edited_placement_is_written_again() -> None:
    fleet = await kept_fleet(mode="Apply")
    await fleet.look()
    for cluster in ("worker01", "worker02"):
        table = {**PERFORMANCE, ("app01", "2g.24gb"): 90, ("app02", "2g.24gb"): 90}
        await fleet.score(cluster, "performance", table)
    await fleet.look()
    assert await fleet.bound() == MIG_2G
    (placement, *_) = await fleet.all(kinds.PLACEMENT)
    await fleet.hub.delete(kinds.PLACEMENT, placement["metadata"]["name"], "default")
    await fleet.look()
    names = [item["metadata"]["name"] for item in await fleet.all(kinds.PLACEMENT)]
    assert placement["metadata"]["name"] in names


async def test_a_plan_waits_until_exactly_its_digest_is_approved() -> None:
    fleet = await kept_fleet(mode="Approve")
    found = await fleet.look()
    digest = found["status"]["plan"]["digest"]
    assert said(found)["Applied"] == "False AwaitingApproval"
    assert f"approved-digest={digest}`" in message(found, "Applied")
    await fleet.approve("0" * 64)
    found = await fleet.look()
    assert said(found)["Applied"] == "False StaleApproval"
    assert await fleet.all(kinds.PLACEMENT) == ()
    await fleet.approve(digest)
    found = await fleet.look()
    assert said(found)["Applied"] == "True UpToDate"
    assert await fleet.bound() == MIG_3G
    await fleet.declare(mode="Approve", preference=POWER)
    found = await fleet.look()
    assert said(found)["Applied"] == "False AwaitingApproval", "what was approved was applied"
    assert await fleet.bound() == MIG_3G


async def test_the_plan_that_was_approved_is_applied_although_scores_have_changed() -> None:
    fleet = await kept_fleet(mode="Approve")
    controller = fleet.controller()
    await controller.look("default", "kept")
    digest = (await fleet.get())["status"]["plan"]["digest"]
    for cluster in ("worker01", "worker02"):
        await fleet.score(cluster, "performance", {("app01", "2g.24gb"): 90, ("app02", "all"): 90})
    await fleet.approve(digest)
    await controller.look("default", "kept")
    assert await fleet.bound() == MIG_3G


async def test_a_selector_selects_and_says_if_it_selects_nothing() -> None:
    fleet = await kept_fleet(mode="Apply", workloadSelector="app=app01")
    await fleet.look()
    names = {item["metadata"]["name"] for item in await fleet.all(kinds.PLACEMENT)}
    assert "app01-placement" in names
    assert "app02-placement" not in names
    await fleet.declare(mode="Apply", workloadSelector="app=nope")
    found = await fleet.look()
    assert said(found)["Ready"] == "False NoWorkloads"
    assert "app01-placement" in names, "what was placed stays"
    await fleet.declare(mode="Apply", workloadSelector="", clusterSelector="zone=nowhere")
    assert said(await fleet.look())["Ready"] == "False NoClusters"
    await fleet.declare(mode="Apply", workloadSelector="a in b", clusterSelector="")
    assert said(await fleet.look())["Ready"] == "False InvalidRequest"


async def test_a_workload_that_gets_the_labels_is_placed() -> None:
    fleet = await kept_fleet(mode="Apply")
    await fleet.look()
    await fleet.hub.create(kinds.MANIFEST_WORK_REPLICA_SET, workload("mwrs-app03", "app01", 1))
    found = await fleet.look()
    assert found["status"]["plan"]["workloads"] == 3


async def test_clusters_are_those_of_the_sets_that_the_namespace_is_bound_to() -> None:
    fleet = await kept_fleet(mode="Plan")
    spec = {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}
    everything = obj(kinds.MANAGED_CLUSTER_SET, "global", spec=spec)
    await fleet.hub.create(kinds.MANAGED_CLUSTER_SET, everything)
    found = await fleet.look()
    assert said(found)["Ready"] == "False NoClusters"
    assert "clusteradm clusterset bind SET --namespace default" in message(found, "Ready")
    bound = obj(
        kinds.MANAGED_CLUSTER_SET_BINDING, "global", "default", spec={"clusterSet": "global"}
    )
    await fleet.hub.create(kinds.MANAGED_CLUSTER_SET_BINDING, bound)
    assert said(await fleet.look())["Planned"] == "True Optimal"


async def test_of_two_that_claim_a_workload_the_younger_does_nothing() -> None:
    fleet = await kept_fleet(mode="Apply")
    await fleet.declare("later", mode="Apply", workloadSelector="app=app02")
    found = await fleet.look("later")
    assert said(found)["Ready"] == "False WorkloadClaimed"
    assert "PlacementOptimization kept, which is older, claims mwrs-app02" in message(
        found, "Ready"
    )
    assert await fleet.all(kinds.PLACEMENT) == ()
    await fleet.declare("kept", mode="Apply", workloadSelector="app=app01")
    await fleet.look("kept")
    assert said(await fleet.look("later"))["Ready"] == "True Kept"


async def test_the_younger_takes_over_as_soon_as_the_older_is_gone() -> None:
    fleet = await kept_fleet(mode="Apply")
    await fleet.declare("later")

    async def ready(status: str) -> bool:
        return said(await fleet.get("later")).get("Ready") == status

    async with running(fleet):
        await eventually(lambda: ready("False WorkloadClaimed"))
        await fleet.hub.delete(PLACEMENT_OPTIMIZATION, "kept", "default")
        await eventually(lambda: ready("True Kept"))


async def test_what_a_request_placed_is_kept_under_the_name_of_its_optimization() -> None:
    fleet = await kept_fleet()
    service = fleet.service()
    plan = await service.plan(request("performance"), to_apply=True)
    assert isinstance(plan, Plan), plan
    assert isinstance(await service.apply(plan), Applied)
    await fleet.declare("kept", mode="Apply")
    assert said(await fleet.look("kept"))["Planned"] == "False OtherOptimization"
    await fleet.hub.delete(PLACEMENT_OPTIMIZATION, "kept", "default")
    await fleet.declare("default", mode="Apply")
    assert said(await fleet.look("default"))["Applied"] == "True UpToDate"


async def test_what_is_suspended_is_left_alone() -> None:
    fleet = await kept_fleet(mode="Apply", suspend=True)
    found = await fleet.look()
    assert said(found)["Ready"] == "False Suspended"
    assert await fleet.all(kinds.PLACEMENT) == ()


async def test_what_was_moved_while_it_was_suspended_is_not_moved_back() -> None:
    fleet = await kept_fleet(mode="Apply", hysteresis={})
    controller, service = fleet.controller(), fleet.service()
    await controller.look("default", "kept")
    await fleet.declare(mode="Apply", hysteresis={}, suspend=True)
    await controller.look("default", "kept")
    await fleet.shift()
    plan = await service.plan(request("performance", optimization="kept"), to_apply=True)
    assert isinstance(plan, Plan), plan
    assert isinstance(await service.apply(plan), Applied)
    fleet.later(hours=2)
    await fleet.declare(mode="Apply", hysteresis={}, suspend=False)
    await controller.look("default", "kept")
    assert await fleet.bound() == MIG_2G


async def test_a_read_only_server_plans_and_says_how_it_may_apply() -> None:
    fleet = await kept_fleet(mode="Apply", deletionPolicy="Reset")
    fleet.read_only = True
    found = await fleet.look()
    assert said(found)["Applied"] == "False ReadOnly"
    assert "allowWrites" in message(found, "Applied")
    assert "finalizers" not in found["metadata"]


async def test_placements_outlive_what_declared_them_unless_it_says_reset() -> None:
    fleet = await kept_fleet(mode="Apply")
    await fleet.look()
    await fleet.hub.delete(PLACEMENT_OPTIMIZATION, "kept", "default")
    await fleet.controller().look("default", "kept")
    assert await fleet.bound() == MIG_3G
    await fleet.declare(mode="Apply", deletionPolicy="Reset")
    await fleet.look()
    await fleet.hub.delete(PLACEMENT_OPTIMIZATION, "kept", "default")
    assert (await fleet.get())["metadata"]["deletionTimestamp"]
    await fleet.controller().look("default", "kept")
    assert await fleet.all(PLACEMENT_OPTIMIZATION) == ()
    assert await fleet.all(kinds.PLACEMENT) == ()


@pytest.mark.parametrize(
    ("policy", "phase", "left"), [("Retain", "Progressing", True), ("Reset", "Cancelled", False)]
)
async def test_a_rollout_goes_on_without_what_declared_it_unless_that_says_reset(
    policy: str, phase: str, *, left: bool
) -> None:
    fleet = await kept_fleet(mode="Apply", rollout="Stepwise", deletionPolicy=policy)
    assert said(await fleet.look())["Applied"] == "False RolloutInProgress"
    records = fleet.service().rollouts.records
    assert await records.in_progress("default")
    await fleet.hub.delete(PLACEMENT_OPTIMIZATION, "kept", "default")
    await fleet.controller().look("default", "kept")
    assert await fleet.all(PLACEMENT_OPTIMIZATION) == ()
    (record,) = await fleet.all(kinds.PLACEMENT_PLAN)
    assert record["status"]["rollout"]["phase"] == phase
    assert bool(await records.in_progress("default")) is left


@pytest.mark.parametrize("mode", ["Apply", "Approve"])
async def test_a_kill_between_any_two_writes_loses_nothing(mode: str) -> None:
    fleet = await kept_fleet(mode=mode, deletionPolicy="Reset")
    if mode == "Approve":
        await fleet.approve((await fleet.look())["status"]["plan"]["digest"])
    await survive(fleet)
    found = await fleet.get()
    assert said(found)["Applied"] == "True UpToDate"
    assert await fleet.bound() == MIG_3G
    phases = [item["status"]["phase"] for item in await fleet.all(kinds.PLACEMENT_PLAN)]
    assert phases.count("Applied") == 1
    await fleet.hub.delete(PLACEMENT_OPTIMIZATION, "kept", "default")
    await survive(fleet)
    assert await fleet.all(PLACEMENT_OPTIMIZATION) == ()
    assert await fleet.all(kinds.PLACEMENT) == ()


async def survive(fleet: KeptFleet) -> None:
    """Let processes look that are killed after one write more each time, until one ends alive."""
    for writes in range(60):
        mortal = Mortal(fleet.hub, writes)
        with contextlib.suppress(Killed, BaseExceptionGroup):
            await fleet.controller(mortal).look("default", "kept")
        if not mortal.dead:
            return
        await fleet.bury()
    raise AssertionError(f"{writes} processes were killed, and nothing was whole")


async def test_a_kill_after_each_write_of_a_change_neither_loses_nor_repeats_its_moves() -> None:
    spec = {"mode": "Apply", "budgets": [{"moves": 2}]}
    for writes in range(20):
        fleet = await kept_fleet(**spec)
        await fleet.look()
        await fleet.shift()
        mortal = Mortal(fleet.hub, writes)
        with contextlib.suppress(Killed, BaseExceptionGroup):
            await fleet.controller(mortal).look("default", "kept")
        await fleet.bury()
        found = await fleet.look()
        assert said(found)["Applied"] == "True UpToDate", writes
        assert await fleet.bound() == MIG_2G, writes
        assert found["status"]["movesLeft"] == 0, writes
        if not mortal.dead:
            return
    raise AssertionError("the process was killed at every write")


async def test_the_server_looks_when_something_changes_and_another_one_goes_on() -> None:
    fleet = await kept_fleet(mode="Apply")
    async with running(fleet):
        await eventually(applied_of(fleet))
        await fleet.hub.create(kinds.MANIFEST_WORK_REPLICA_SET, workload("mwrs-app03", "app01", 1))
        await eventually(planned_of(fleet, 3))
    events = [item["reason"] for item in await fleet.all(kinds.EVENT)]
    assert "Applied" in events
    async with running(fleet):
        await fleet.hub.delete(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app03", "default")
        await eventually(planned_of(fleet, 2))


async def test_an_approval_waits_for_no_pause_between_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(optimization_controller, "COST_FACTOR", 1e6)
    fleet = await kept_fleet(mode="Approve")

    async def waits() -> bool:
        return said(await fleet.get()).get("Applied") == "False AwaitingApproval"

    async def is_bound() -> bool:
        return bool(await fleet.bound())

    async with running(fleet):
        await eventually(waits)
        await fleet.approve((await fleet.get())["status"]["plan"]["digest"])
        await eventually(is_bound)


async def test_the_end_of_a_rollout_is_told_in_the_pause_between_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(optimization_controller, "COST_FACTOR", 1e6)
    rollout = await guide_rollout()
    fleet = KeptFleet(rollout.hub, rollout.now)
    score = {"addonPlacementScore": "example-powerconsumption-score"}
    await fleet.declare("default", preference=score, mode="Apply", rollout="Stepwise")

    def told(applied: str, satisfied: str) -> Callable[[], Awaitable[bool]]:
        async def tells() -> bool:
            found = said(await fleet.get("default"))
            return (found.get("Applied"), found.get("Satisfied")) == (applied, satisfied)

        return tells

    async with running(fleet):
        await eventually(told("False RolloutInProgress", "False RolloutInProgress"))
        (record,) = await fleet.service().rollouts.records.in_progress("default")
        await rollout.finish(record.name)
        await eventually(told("True UpToDate", "True AllPlaced"))
        name = await rollout.begin(PERFORMANCE_SCORE)
        await eventually(told("False RolloutInProgress", "False RolloutInProgress"))
        await rollout.command("cancel")
        await rollout.advance(name)
        await eventually(told("False RolloutCancelled", "False RolloutCancelled"))


async def test_who_leads_again_has_forgotten_the_scores_of_its_last_term(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def hold_lease(holder: str) -> None:
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600}
        await fleet.hub.patch(kinds.LEASE, LEASE, {"spec": spec}, HUB_NAMESPACE)

    async def stands_by() -> bool:
        return "no longer leading" in caplog.messages

    async def is_answered() -> bool:
        return (await fleet.get())["status"].get("planRequested") == "now"

    fleet = await kept_fleet(mode="Apply", hysteresis={})
    async with running(fleet):
        await eventually(applied_of(fleet))
        await hold_lease("another server")
        await eventually(stands_by)
        await fleet.shift()
        await fleet.declare(mode="Apply")
        await fleet.look()
        assert await fleet.bound() == MIG_2G, "the other server moved them"
        fleet.later(hours=2)
        await fleet.declare(mode="Apply", hysteresis={"stabilizationWindowSeconds": 300})
        await fleet.annotate(PLAN_REQUESTED_ANNOTATION, "now")
        await hold_lease("")
        await eventually(is_answered)
    assert await fleet.bound() == MIG_2G


@contextlib.asynccontextmanager
async def running(fleet: KeptFleet) -> AsyncIterator[None]:
    """Run a server as `dsf optimizer` does."""
    service = fleet.service()
    kept = OptimizationController(service, read_only=False)
    loops = (service.hub.run(), service.landings.run(), kept.run())
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def applied_of(fleet: KeptFleet) -> Callable[[], Awaitable[bool]]:
    async def applied() -> bool:
        return said(await fleet.get()).get("Applied") == "True UpToDate"

    return applied


def planned_of(fleet: KeptFleet, workloads: int) -> Callable[[], Awaitable[bool]]:
    async def planned() -> bool:
        return (await fleet.get())["status"]["plan"]["workloads"] == workloads

    return planned


async def test_metrics_count_what_came_of_looks_and_what_was_moved() -> None:
    fleet = await kept_fleet(mode="Approve", preference=POWER)
    optimizer = fleet.service()
    controller = OptimizationController(optimizer, read_only=False)

    def value(name: str, **labels: str) -> float | None:
        return optimizer.registry.get_sample_value(f"dynamic_scoring_optimizer_{name}", labels)

    await controller.look("default", "kept")
    assert value("optimizations", reason="AwaitingApproval") == 1
    assert value("optimizations_not_kept") == 0
    await fleet.declare(mode="Apply")
    await controller.look("default", "kept")
    assert value("optimizations", reason="AwaitingApproval") is None
    assert value("optimizations", reason="Applied") == 1
    assert value("optimization_moves_total", reason="BetterScore") == 0, "nothing ran before"
    for cluster in ("worker01", "worker02"):
        await fleet.score(cluster, "performance", {("app01", "2g.24gb"): 90, ("app02", "all"): 90})
    await controller.look("default", "kept")
    assert value("optimization_looks_total", reason="Applied") == 2
    await fleet.declare(mode="Apply", workloadSelector="app=nope")
    await controller.look("default", "kept")
    assert value("optimizations_not_kept") == 1
    await fleet.hub.delete(PLACEMENT_OPTIMIZATION, "kept", "default")
    await controller.look("default", "kept")
    assert value("optimizations_not_kept") == 0
    assert value("optimization_looks_total", reason="NoWorkloads") == 1
