"""What is kept placed, over HTTP: listed, shown, and approved by the digest that waits."""

from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import httpx

from dsf.api.names import APPROVED_DIGEST_ANNOTATION
from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.kinds import PLACEMENT_OPTIMIZATION
from dsf.kube.port import Kube
from mcp_server.results.kept_results import kept_text
from optimizer.api.app import create_app
from optimizer.service.optimization_controller import OptimizationController
from optimizer.service.optimizer import Optimizer
from optimizer.wire.placement_optimization import KeptOptimization
from tests.kube_wrappers.wrapper import Answer, Call, Wrapper
from tests.optimizer.api.test_app import client, problem
from tests.optimizer.service.kept_fleet import MIG_3G, POWER, KeptFleet, kept_fleet

KEPT = "/placementoptimizations/default/kept"


async def approved(fleet: KeptFleet, digest: str, kube: Kube | None = None) -> Any:
    async with client(kube or fleet.hub) as http:
        return await http.post(f"{KEPT}/approve", params={"digest": digest})


async def test_the_plan_that_waits_is_shown_and_applied_once_its_digest_is_approved() -> None:
    fleet = await kept_fleet(mode="Approve")
    async with client(fleet.hub) as http:
        unread = (await http.get(KEPT)).json()
        assert (unread["fine"], unread["reason"]) == (False, "NotReported")
        problem(await http.post(f"{KEPT}/approve?digest={'0' * 64}"), 409, "NotAwaitingApproval")
        await fleet.look()
        shown = (await http.get(KEPT)).json()
        listed = (await http.get("/placementoptimizations?namespace=default")).json()
    assert listed == {"namespace": "default", "items": [shown]}
    assert (shown["fine"], shown["reason"], shown["mode"]) == (False, "AwaitingApproval", "Approve")
    assert (shown["waiting"], shown["approved"]) == (shown["status"]["plan"]["digest"], False)
    types = {item["type"] for item in shown["status"]["conditions"]}
    assert types == {"Ready", "Planned", "Applied", "Satisfied"}
    assert shown["effect"] == (
        "moves, starts or stops 2 of 2 workloads, gains 115, creates 6, changes 0 and deletes 0"
        " objects"
    )
    assert shown["status"]["history"][0]["reason"] == "AwaitingApproval"
    told = (await approved(fleet, shown["waiting"])).json()
    assert (told["approved"], told["fine"]) == (True, True)
    again = await approved(fleet, shown["waiting"])
    assert again.json() == told, "a repeat is no error"
    kept = await fleet.look()
    assert kept["metadata"]["annotations"][APPROVED_DIGEST_ANNOTATION] == shown["waiting"]
    assert await fleet.bound() == MIG_3G
    async with client(fleet.hub) as http:
        shown = (await http.get(KEPT)).json()
    assert (shown["waiting"], shown["approved"], shown["status"]["gain"]) == ("", False, 0.0)


async def test_the_matrix_of_the_fleet_tells_of_a_workload_that_its_plan_waits() -> None:
    fleet = await kept_fleet(mode="Approve")
    fleet.later(minutes=5)
    await fleet.look()
    async with client(fleet.hub) as http:
        waiting = (await http.get(KEPT)).json()["waiting"]
        found = (await http.get("/fleet?namespace=default")).json()["findings"]
        await approved(fleet, waiting)
        later = (await http.get("/fleet?namespace=default")).json()["findings"]
    (told,) = [item for item in found if item["stage"] == "workload"]
    assert told["reason"] == "AwaitingApproval"
    assert (
        f"plan {waiting[:12]} of PlacementOptimization kept waits for approval" in told["message"]
    )
    (told,) = [item for item in later if item["stage"] == "workload"]
    assert (told["severity"], "was approved, but is not applied yet" in told["message"]) == (
        "info",
        True,
    )


async def test_a_look_that_is_overdue_is_told_before_what_was_told_last() -> None:
    night = {"preference": POWER, "schedule": "0 22 * * *", "duration": "8h"}
    fleet = await kept_fleet(mode="Apply", schedules=[night])
    await fleet.look(times=2)
    due = (await fleet.get())["status"]["nextLook"]

    async def shown(**by: float) -> Any:
        service = Optimizer(fleet.hub, now=lambda: fleet.now + timedelta(**by))
        transport = httpx.ASGITransport(app=create_app(service, read_only=True))
        async with httpx.AsyncClient(transport=transport, base_url="http://optimizer") as http:
            return (await http.get(KEPT)).json()

    before, found = await shown(), await shown(days=1)
    assert before["reason"] != "Overdue"
    assert (found["fine"], found["reason"]) == (False, "Overdue")
    assert found["wrong"].startswith(f"Overdue: its next look was due at {due}, so no optimizer")
    assert f"Told last: {before['reason']}: {before['message']}" in found["message"]


async def test_the_plan_that_waits_is_told_as_any_plan_until_it_is_approved() -> None:
    fleet = await kept_fleet(mode="Approve")
    service = fleet.service()
    controller = OptimizationController(service, read_only=False)
    transport = httpx.ASGITransport(app=create_app(service, read_only=False))
    async with httpx.AsyncClient(transport=transport, base_url="http://optimizer") as http:
        problem(await http.get(f"{KEPT}/plan"), 404, "NoWaitingPlan")
        await controller.look("default", "kept")
        shown = (await http.get(f"{KEPT}/plan")).json()
        kept = (await http.get(KEPT)).json()
        await approved(fleet, kept["waiting"])
        await controller.look("default", "kept")
        problem(await http.get(f"{KEPT}/plan"), 404, "NoWaitingPlan")
        problem(await http.get(f"{KEPT}s/plan"), 404, "NoPlacementOptimization")
    assert (shown["applied"], len(shown["changes"])) == (False, 6)
    assert {move["action"] for move in shown["moves"]} == {"starts"}
    assert {item["cluster"] for item in shown["gpus_after"]} == {"worker01", "worker02"}
    async with client(fleet.hub) as http:
        await fleet.declare(mode="Approve", preference=POWER)
        await fleet.look()
        by_another_process = (await http.get(f"{KEPT}/plan")).json()
        assert {move["action"] for move in by_another_process["moves"]} == {"moves"}
        await fleet.declare(mode="Approve")
        said = problem(await http.get(f"{KEPT}/plan"), 404, "NoWaitingPlan")
    assert "ask again after its next look" in said["detail"]


async def test_another_digest_or_mode_is_refused_and_nothing_is_written() -> None:
    fleet = await kept_fleet(mode="Approve")
    await fleet.look()
    said = problem(await approved(fleet, "0" * 64), 409, "StaleApproval")
    assert "plan 000000000000 does not wait" in said["detail"]
    digest = (await fleet.get())["status"]["plan"]["digest"]
    problem(await approved(fleet, digest[:12]), 422, "InvalidField")
    await fleet.declare(mode="Plan")
    said = problem(await approved(fleet, digest), 409, "NotAwaitingApproval")
    assert "has mode Plan, so nothing waits" in said["detail"]
    assert not (await fleet.get())["metadata"].get("annotations")
    async with client(fleet.hub) as http:
        problem(await http.get(KEPT.replace("kept", "none")), 404, "NoPlacementOptimization")
        problem(
            await http.post(f"/placementoptimizations/nope/kept/approve?digest={digest}"),
            404,
            "NoPlacementOptimization",
        )
        problem(await http.get("/placementoptimizations?namespace=nope"), 404, "UnknownNamespace")


class Outrun(Wrapper):
    """Lets another plan wait right after the first one was read."""

    def __init__(self, fleet: KeptFleet) -> None:
        super().__init__(fleet.hub)
        self.fleet = fleet
        self.outrun = False

    async def answer(self, call: Call, answering: Coroutine[Any, Any, Answer]) -> Answer:
        found = await answering
        if call.verb == "get" and call.kind == PLACEMENT_OPTIMIZATION and not self.outrun:
            self.outrun = True
            await self.fleet.declare(mode="Approve", preference=POWER)
            await self.fleet.look()
        return found


async def test_an_approval_that_a_newer_plan_outruns_is_refused() -> None:
    fleet = await kept_fleet(mode="Approve")
    digest = (await fleet.look())["status"]["plan"]["digest"]
    problem(await approved(fleet, digest, Outrun(fleet)), 409, "StaleApproval")
    kept = await fleet.get()
    assert kept["status"]["plan"]["digest"] != digest
    assert not kept["metadata"].get("annotations")
    assert await fleet.all(kinds.PLACEMENT) == ()


async def test_it_is_not_fine_while_a_workload_has_no_place_whatever_is_only_planned() -> None:
    one = [{"name": "worker01", "availablePolicies": [{"name": "3g.48gb-worker01"}]}]
    fleet = await kept_fleet(mode="Plan", clusters=one)
    await fleet.look()
    async with client(fleet.hub) as http:
        told = (await http.get(KEPT)).json()
    assert (told["fine"], told["reason"]) == (False, "PlanOnly")
    assert told["wrong"].startswith("Unplaced: 1 workload of 2 have fewer places than they ask")
    assert '"Unplaced: 1 workload of 2' in kept_text(
        [KeptOptimization.model_validate(told)], utc_now()
    )
    await fleet.declare(mode="Apply", clusters=one, rollout="Stepwise")
    await fleet.look()
    async with client(fleet.hub) as http:
        told = (await http.get(KEPT)).json()
    assert (told["fine"], told["reason"]) == (False, "RolloutInProgress")
    assert told["wrong"] == "Unplaced: 1 workload of 2 have fewer places than they ask for"


async def test_it_says_why_nothing_moves_although_scores_changed() -> None:
    rules = {"leastGain": 10, "leastGainPercent": 5, "variationMultiple": 0}
    fleet = await kept_fleet(mode="Apply", hysteresis={"stabilizationWindowSeconds": 0, **rules})
    await fleet.look()
    await fleet.score("worker01", "performance", {("app01", "2g.24gb"): 62})
    await fleet.look()
    async with client(fleet.hub) as http:
        calm = (await http.get(KEPT)).json()
        assert (calm["status"]["movesLeft"], calm["waiting"]) == (None, "")
        assert calm["move_rule"] == (
            "each move for a better score has to gain more than the largest of: its move cost, 10"
            " points, 5% of its value; scores are averaged over 0 s"
        )
        frozen = [{"schedule": "0 0 * * *", "duration": "24h"}]
        await fleet.declare(mode="Apply", preference=POWER, freezes=frozen, budgets=[{"moves": 3}])
        await fleet.look()
        held = (await http.get(KEPT)).json()
    assert (held["fine"], held["reason"], held["status"]["movesLeft"]) == (True, "Frozen", 3)
    assert held["status"]["gain"] > 0
    assert held["status"]["nextLook"] == "2026-11-21T00:00:00Z"
