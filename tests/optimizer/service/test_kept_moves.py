"""What a PlacementOptimization moves, and when: noise, budgets, lost scores, clusters and nodes."""

import pytest

from dsf.api.names import PLAN_REQUESTED_ANNOTATION
from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.port import Object
from optimizer.follow.optimization.changes import COOLDOWN
from optimizer.plan.plan import Plan
from optimizer.snapshot.annotations import PREFIX
from optimizer.wire.request import RollbackRequest
from optimizer.wire.result import Applied
from tests.optimizer.build import PERFORMANCE, guide, request
from tests.optimizer.inventories import NO_NODE, counted, publish, renew
from tests.optimizer.service.kept_fleet import (
    AT_ONCE,
    MIG_2G,
    MIG_3G,
    POWER,
    PREFERENCE,
    kept_fleet,
    message,
    said,
)


async def test_noise_moves_nothing_and_a_lasting_shift_moves_once() -> None:
    fleet = await kept_fleet(mode="Apply", hysteresis={})
    controller = fleet.controller()
    await controller.look("default", "kept")
    assert await fleet.bound() == MIG_3G
    for at in range(40):
        noisy = {key: value + (at % 2) * 5 for key, value in PERFORMANCE.items()}
        await fleet.score("worker01", "performance", noisy)
        fleet.later(seconds=30)
        await controller.look("default", "kept")
    assert len(await fleet.all(kinds.PLACEMENT_PLAN)) == 1
    shifted = {**PERFORMANCE, ("app01", "2g.24gb"): 90, ("app02", "2g.24gb"): 90}
    for _ in range(80):
        for cluster in ("worker01", "worker02"):
            await fleet.score(cluster, "performance", shifted)
        fleet.later(seconds=30)
        await controller.look("default", "kept")
    assert await fleet.bound() == MIG_2G
    counted = (await fleet.get())["status"]["recentChanges"]
    assert sum(item["betterScore"] for item in counted) == 2, "each workload moved once"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"budgets": [{"moves": 0}]}, "BudgetSpent"),
        ({"freezes": [{"schedule": "0 0 * * *", "duration": "24h"}]}, "Frozen"),
        ({"hold": {"until": "2026-11-20T13:00:00Z", "reason": "a fair"}}, "Held"),
    ],
)
@pytest.mark.parametrize("mode", ["Apply", "Approve"])
async def test_what_is_not_taken_yet_is_told_with_its_gain(
    spec: dict[str, object], reason: str, mode: str
) -> None:
    fleet = await kept_fleet(mode="Apply")
    await fleet.look()
    await fleet.shift()
    controller = fleet.controller()
    if mode == "Approve":
        await fleet.declare(mode=mode)
        await controller.look("default", "kept")
        await fleet.approve((await fleet.get())["status"]["plan"]["digest"])
    await fleet.declare(mode=mode, **spec)
    await controller.look("default", "kept")
    found = await fleet.get()
    assert said(found)["Applied"] == f"False {reason}"
    assert "on offer: 65 for 2 moves" in message(found, "Applied")
    assert found["status"]["gain"] == 65
    assert await fleet.bound() == MIG_3G
    assert found["status"]["history"][0]["reason"] == reason


async def test_while_scores_are_averaged_the_status_says_until_when_and_what_is_on_offer() -> None:
    fleet = await kept_fleet(mode="Apply")
    await fleet.look()
    await fleet.declare(mode="Apply", hysteresis={"stabilizationWindowSeconds": 300})
    await fleet.shift()
    controller = fleet.controller()
    await controller.look("default", "kept")
    found = await fleet.get()
    assert said(found)["Applied"] == "False Stabilizing"
    assert "scores are averaged until 2026-11-20T12:05:00Z" in message(found, "Applied")
    assert (found["status"]["gain"], found["status"]["nextLook"]) == (65, "2026-11-20T12:05:00Z")
    for _ in range(10):
        assert await fleet.bound() == MIG_3G
        fleet.later(seconds=30)
        await controller.look("default", "kept")
    assert await fleet.bound() == MIG_2G
    await controller.look("default", "kept")
    found = await fleet.get()
    assert found["status"]["gain"] == 0
    assert "nextLook" not in found["status"]


async def test_what_hysteresis_leaves_on_offer_is_told_with_its_gain() -> None:
    rules = {"mode": "Apply", "hysteresis": {**AT_ONCE, "leastGain": 50}}
    fleet = await kept_fleet(**rules)
    await fleet.look()
    await fleet.shift()
    await fleet.declare(**rules, hold={"until": "2026-11-20T14:00:00Z"})
    found = await fleet.look()
    assert said(found)["Applied"] == "False Held"
    assert message(found, "Applied") == "held until 2026-11-20T14:00:00Z; on offer: 65 for 2 moves"
    assert found["status"]["gain"] == 65
    await fleet.declare(**rules, hold=None)
    found = await fleet.look()
    assert said(found)["Applied"] == "True UpToDate"
    assert "a move has to gain more: leastGain 50 points" in message(found, "Applied")
    assert message(found, "Applied").endswith("; on offer: 65 for 2 moves")
    assert found["status"]["gain"] == 65
    assert await fleet.look() == found


@pytest.mark.parametrize(
    ("spec", "time"),
    [
        ({}, None),
        ({"triggers": {"schedule": "0 13 * * *"}}, "13:00:00"),
        (
            {"schedules": [{"schedule": "0 22 * * *", "duration": "8h", "preference": POWER}]},
            "22:00:00",
        ),
        ({"hold": {"until": "2026-11-20T14:00:00Z"}}, "14:00:00"),
        ({"preference": {**PREFERENCE, "addonPlacementScore": "none"}}, "12:00:15"),
        ({"suspend": True, "triggers": {"schedule": "0 13 * * *"}}, None),
    ],
)
async def test_the_status_says_when_it_looks_next(
    spec: dict[str, object], time: str | None
) -> None:
    fleet = await kept_fleet(mode="Approve", **spec)
    found = await fleet.look()
    assert found["status"].get("nextLook") == (f"2026-11-20T{time}Z" if time else None)


async def test_a_first_plan_that_fails_leaves_nothing_unsaid() -> None:
    fleet = await kept_fleet(preference={**PREFERENCE, "addonPlacementScore": "none"})
    assert said(await fleet.look()) == {
        "Ready": "True Kept",
        "Planned": "False UnknownName",
        "Applied": "Unknown UnknownName",
        "Satisfied": "Unknown UnknownName",
    }


@pytest.mark.parametrize("by", ["POST /optimize", "rollback"])
async def test_budgets_count_what_people_move(by: str) -> None:
    rules = {"budgets": [{"moves": 5}], "hold": {"afterRollbackSeconds": 0}}
    fleet = await kept_fleet(mode="Apply", preference=POWER, **rules)
    await fleet.look()
    service = fleet.service()
    if by == "rollback":
        await fleet.declare(mode="Apply", preference=PREFERENCE, **rules)
        assert (await fleet.look())["status"]["movesLeft"] == 3
        plan = await service.plan_rollback(
            RollbackRequest(namespace="default", optimization="kept")
        )
    else:
        plan = await service.plan(request("performance", optimization="kept"), to_apply=True)
    assert isinstance(plan, Plan), plan
    assert isinstance(await service.apply(plan), Applied)
    await fleet.declare(mode="Plan", **rules)
    left = (await fleet.look())["status"]["movesLeft"]
    assert left == (1 if by == "rollback" else 3)
    fleet.later(hours=1)
    assert (await fleet.look())["status"]["movesLeft"] == 5
    await fleet.declare(mode="Plan", suspend=True, **rules)
    suspended = (await fleet.look())["status"]
    assert suspended["movesLeft"] == 5, "without it any number were left"
    assert "gain" not in suspended, "what is suspended offers nothing"


async def test_nothing_is_applied_after_a_rollback_until_somebody_asks() -> None:
    fleet = await kept_fleet(mode="Apply")
    await fleet.look()
    await fleet.annotate(PLAN_REQUESTED_ANNOTATION, "before")
    found = await fleet.look()
    assert found["status"]["planRequested"] == "before", "it is answered, and ends no later hold"
    await fleet.shift()
    await fleet.look()
    assert await fleet.bound() == MIG_2G
    fleet.later(minutes=1)
    service = fleet.service()
    asked = RollbackRequest(namespace="default", optimization="kept")
    plan = await service.plan_rollback(asked)
    assert isinstance(plan, Plan), plan
    assert isinstance(await service.apply(plan), Applied)
    fleet.later(minutes=1)
    found = await fleet.look()
    assert said(found)["Applied"] == "False RolledBack"
    assert await fleet.bound() == MIG_3G
    for value in ("2026-11-20T12:01:00Z", "2099-01-01T00:00:00Z"):  # not since, or not yet
        await fleet.declare(mode="Plan")
        await fleet.annotate(PLAN_REQUESTED_ANNOTATION, value)
        assert said(await fleet.look())["Applied"] == "False PlanOnly"
        await fleet.declare(mode="Apply")
        assert said(await fleet.look())["Applied"] == "False RolledBack"
    await fleet.declare(mode="Approve")
    await fleet.annotate(PLAN_REQUESTED_ANNOTATION, rfc3339(fleet.now))
    assert said(await fleet.look())["Applied"] == "False AwaitingApproval"
    await fleet.declare(mode="Approve", policySelector="")
    found = await fleet.look()
    assert said(found)["Applied"] == "False AwaitingApproval", "the hold ended for good"
    assert "record" not in found["status"]["plan"], "that of the rollback has other objects"
    await fleet.declare(mode="Apply")
    found = await fleet.look()
    assert said(found)["Applied"] == "True UpToDate"
    assert found["status"]["planRequested"] == rfc3339(fleet.now)
    assert await fleet.bound() == MIG_2G


async def test_scores_that_expire_move_nothing_and_a_lost_cluster_does() -> None:
    only = {"budgets": [{"moves": 0}], "workloadSelector": "app=app01"}
    fleet = await kept_fleet(mode="Apply", **only)
    controller = fleet.controller()
    await controller.look("default", "kept")
    assert await fleet.bound() == {"3g.48gb-worker01"}
    placed = await fleet.all(kinds.PLACEMENT)
    await fleet.score("worker01", "performance", {})
    fleet.later(minutes=1)
    await controller.look("default", "kept")
    assert [i["spec"] for i in await fleet.all(kinds.PLACEMENT)] == [i["spec"] for i in placed]
    taint = {
        "key": "cluster.open-cluster-management.io/unreachable",
        "effect": "NoSelect",
        "timeAdded": "2026-11-20T12:01:00Z",
    }
    body = {"spec": {"taints": [taint]}}
    await fleet.hub.patch(kinds.MANAGED_CLUSTER, "worker01", body)
    again = await controller.look("default", "kept")
    assert again is not None
    assert again <= 300
    assert await fleet.bound() == {"3g.48gb-worker01"}, "its grace is not over"
    fleet.later(seconds=301)
    await controller.look("default", "kept")
    assert await fleet.bound() == {"3g.48gb-worker02"}


@pytest.mark.parametrize("restarts", [False, True])
async def test_pods_that_lack_a_node_move_after_their_grace_and_do_not_come_back_at_once(
    *, restarts: bool
) -> None:
    budget = [{"moves": 0, "reasons": ["ClusterLost"]}]
    fleet = await kept_fleet(mode="Apply", workloadSelector="app=app01", budgets=budget)
    kept = fleet.controller()

    async def look(**later: float) -> set[str]:
        fleet.later(**later)
        await renew(fleet.hub, fleet.now)
        await (fleet.controller() if restarts else kept).look("default", "kept")
        return await fleet.bound()

    assert await look() == {"3g.48gb-worker01"}
    await fleet.score("worker02", "performance", {("app01", "3g.48gb"): 20})
    await publish(fleet.hub, counted(0, 0, 2, since=fleet.now), now=fleet.now)
    assert await look(seconds=299) == {"3g.48gb-worker01"}, "its grace is not over"
    assert await look(seconds=1) == {"3g.48gb-worker02"}, "20 points, but it runs"
    status = (await fleet.get())["status"]
    until = rfc3339(fleet.now + COOLDOWN)
    left = {"workload": "mwrs-app01", "cluster": "worker01", "until": until}
    assert status["pendingPlaces"] == [left]
    assert status["recentChanges"][0]["notEligible"] == 1
    assert status["nextLook"] <= until
    await publish(fleet.hub, now=fleet.now)
    await publish(fleet.hub, counted(2, 2), cluster="worker02", now=fleet.now)
    for _ in range(5):
        assert await look(minutes=5.5) == {"3g.48gb-worker02"}, "its Pods are gone, not the cause"
    assert await look(minutes=2.5) == {"3g.48gb-worker01"}, "it is tried again"


async def test_pods_that_lack_a_node_everywhere_stay_where_they_wait() -> None:
    fleet = await kept_fleet(guide(["worker01"]), mode="Apply", workloadSelector="app=app01")
    placed = (await fleet.look())["status"]["plan"]["digest"]
    await publish(fleet.hub, counted(0, 0, 2, since=fleet.now), now=fleet.now)
    fleet.later(hours=1)
    await renew(fleet.hub, fleet.now)
    found = await fleet.look()
    assert (found["status"]["plan"]["digest"], said(found)["Applied"]) == (placed, "True UpToDate")
    assert "pendingPlaces" not in found["status"]
    asked = request("performance", ["worker01"], ["mwrs-app01"], optimization="kept")
    plan = await fleet.service().plan(asked)
    assert isinstance(plan, Plan)
    assert not plan.changes
    (issue,) = plan.issues
    assert (issue.reason, issue.workload, issue.cluster) == (
        "PodsPending",
        "mwrs-app01",
        "worker01",
    )
    assert issue.message.endswith(f'as much as the 0 of 2 that are ready: "{NO_NODE}"')


@pytest.mark.parametrize(
    ("works", "moves"),
    [
        ([counted(0, 0, 8)], True),
        # 3 of 8 Pods are 22.5 of 60 points, 5 of them 37.5; the other place has 30.
        ([counted(3, 3, 5)], True),
        ([counted(5, 5, 3)], False),
        # A rolling update waits for a place; the Pods of before still run.
        ([counted(8, 8, 1)], False),
        ([counted(0, 0, 8, "ImagePullBackOff")], False),
        ([counted(8, 0)], False),
        ([], False),
    ],
)
async def test_only_pods_that_lack_a_node_make_a_cluster_avoided(
    works: list[Object], *, moves: bool
) -> None:
    fleet = await kept_fleet(mode="Apply", workloadSelector="app=app01")
    many = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "a"}}
    pods = {"replicas": 8, "template": {"spec": {"containers": [{"name": "main"}]}}}
    template = {"workload": {"manifests": [{**many, "spec": pods}]}}
    body = {"spec": {"manifestWorkTemplate": template}}
    await fleet.hub.patch(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", body, "default")
    await fleet.look()
    await fleet.score("worker02", "performance", {("app01", "3g.48gb"): 30})
    await publish(fleet.hub, *works, now=fleet.now)
    await fleet.look()
    assert await fleet.bound() == {"3g.48gb-worker02" if moves else "3g.48gb-worker01"}


@pytest.mark.parametrize(("tolerated", "soon"), [(3, True), (2**63 - 1, False)])
async def test_it_looks_again_when_the_toleration_of_a_workload_ends(
    tolerated: int, soon: bool
) -> None:
    fleet = await kept_fleet(mode="Apply", workloadSelector="app=app01")
    tolerant = {"metadata": {"annotations": {f"{PREFIX}tolerations": f"broken@{tolerated}"}}}
    await fleet.hub.patch(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", tolerant, "default")
    controller = fleet.controller()
    await controller.look("default", "kept")
    taint = {"key": "broken", "effect": "NoSelect", "timeAdded": rfc3339(fleet.now)}
    await fleet.hub.patch(kinds.MANAGED_CLUSTER, "worker01", {"spec": {"taints": [taint]}})
    again = await controller.look("default", "kept")
    assert again is not None
    assert (again == 3) == soon
    fleet.later(seconds=301)  # so that no other toleration is left
    assert await controller.look("default", "kept") is not None


async def test_a_value_for_missing_scores_moves_nothing_that_runs() -> None:
    fleet = await kept_fleet(mode="Apply", missingScore=0, workloadSelector="app=app01")
    controller = fleet.controller()
    await controller.look("default", "kept")
    await fleet.score("worker01", "performance", {})
    fleet.later(minutes=1)
    await controller.look("default", "kept")
    assert await fleet.bound() == {"3g.48gb-worker01"}


async def test_other_scores_count_by_schedule() -> None:
    night = {"schedule": "0 22 * * *", "duration": "8h", "preference": POWER}
    fleet = await kept_fleet(mode="Apply", schedules=[night])
    await fleet.look()
    assert await fleet.bound() == MIG_3G
    fleet.later(hours=11)
    await fleet.look()
    assert await fleet.bound() == MIG_2G
    fleet.later(hours=8)
    await fleet.look()
    assert await fleet.bound() == MIG_3G


async def test_a_clock_that_goes_back_stops_nothing() -> None:
    fleet = await kept_fleet(mode="Apply")
    await fleet.look()
    fleet.later(days=-300)
    await fleet.shift()
    found = await fleet.look()
    assert said(found)["Applied"] == "True UpToDate"
    assert await fleet.bound() == MIG_2G
