"""Plans on the page: what if, why, apply after a second click, history, restore, rollouts."""

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from dsf.kube import kinds
from dsf.kube.clock import utc_now
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest, Preference
from optimizer.wire.request_problem import RequestProblem
from tests.browser.conftest import Open
from tests.mcp_server.service import (
    PERFORMANCE,
    POWER,
    Service,
    generated,
    request,
    scenario_hub,
    serving_hub,
)
from tests.optimizer.test_solver_failures import nothing_starts

SCORE = {"addonPlacementScore": PERFORMANCE, "scoreDimensionFormat": "${app};${device}"}
MOST = {"name": "most", "score": SCORE, "maximum": 60}
"""A limit that leaves one of the two workloads without a place."""

MIG_3G = "policy-enable-mig-3g-worker01"

LOOKS = 300_000.0
"""Milliseconds in which what is kept is looked at again, however busy the machine is."""


async def apply(service: Service, score: str = PERFORMANCE, **changes: Any) -> None:
    plan = await service.optimizer.plan(OptimizeRequest(**request(score), **changes))
    assert isinstance(plan, Plan)
    await service.optimizer.apply(plan)


async def planned(page: Page, weights: dict[str, str]) -> None:
    """Ask for a plan with these weights."""
    await page.get_by_role("link", name="What if").click()
    for score in (PERFORMANCE, POWER):
        await page.get_by_label(f"Weight of {score}").fill(weights.get(score, "0"))
    await page.get_by_role("button", name="Plan", exact=True).click()
    await expect(page.get_by_role("button", name="Plan", exact=True)).to_be_enabled()
    await expect(page.get_by_text("Workloads before and after")).to_be_visible()


async def test_a_plan_is_shown_and_nothing_is_written(service: Service, open_page: Open) -> None:
    page = await open_page(service.url)
    await planned(page, {POWER: "1"})
    await expect(page.get_by_text("Optimal: Proven best")).to_be_visible()
    figures = page.get_by_label("What the plan does")
    await expect(figures).to_contain_text("0 → 170 +170")
    await expect(figures).to_contain_text("move0")
    await expect(figures).to_contain_text("placed for the first time2")
    row = page.get_by_role("row", name="mwrs-app01")
    await expect(row).to_contain_text("nowhere")
    await expect(row).to_contain_text("2g.24gb")
    assert await generated(service.hub) == []


async def test_a_solver_that_failed_is_told_with_the_plan_and_in_the_history(
    service: Service, open_page: Open
) -> None:
    page = await open_page(service.url)
    with nothing_starts():
        await planned(page, {PERFORMANCE: "1", POWER: "1"})
    await expect(page.get_by_role("alert")).to_contain_text("The solver failed: its process could")
    await page.get_by_role("button", name="Apply…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    await expect(page.get_by_text("Applied as default-1")).to_be_visible()
    await page.get_by_role("link", name="Plans").click()
    entry = page.get_by_role("listitem").filter(has_text="default 1")
    await expect(entry).to_contain_text("The solver failed: its process could")


async def test_only_the_second_click_applies(service: Service, open_page: Open) -> None:
    page = await open_page(service.url)
    await planned(page, {PERFORMANCE: "1"})
    await page.get_by_role("button", name="Apply…").click()
    dialog = page.get_by_role("dialog", name="Apply this plan?")
    await expect(dialog).to_contain_text("Workloads: starts 2.")
    await expect(dialog).to_contain_text("create Placement default/app01-placement")
    await page.keyboard.press("Escape")
    assert await generated(service.hub) == []
    await page.get_by_role("button", name="Apply…").click()
    await dialog.get_by_role("button", name="Apply").click()
    await expect(page.get_by_text("Applied as default-1")).to_be_visible()
    assert "app01-placement" in await generated(service.hub)


async def test_a_click_plans_once_and_not_again_when_the_wish_has_settled(
    service: Service, open_page: Open
) -> None:
    page = await open_page(f"{service.url}/#whatif")
    await expect(page.get_by_label("What the plan does")).to_be_visible()
    wishes: list[str | None] = []
    page.on(
        "request", lambda one: wishes.append(one.post_data) if one.url.endswith("/plan") else None
    )
    await page.clock.install(time=0)
    await page.clock.pause_at(3_600)  # else the wish may settle before the click
    await planned(page, {POWER: "1"})
    await page.clock.run_for(1_000)
    await page.get_by_role("button", name="Apply…").click()
    assert len(wishes) == 1


async def test_a_plan_that_the_hub_outran_is_refused(service: Service, open_page: Open) -> None:
    page = await open_page(service.url)
    await planned(page, {PERFORMANCE: "1"})
    taint = {"key": "gpu.example/broken", "value": "", "effect": "NoSelect"}
    await service.hub.patch(kinds.MANAGED_CLUSTER, "worker01", {"spec": {"taints": [taint]}})
    await page.get_by_role("button", name="Apply…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    await expect(page.get_by_role("alert")).to_contain_text("Plan again")
    assert await generated(service.hub) == []


async def test_a_lost_cluster_is_planned_from_its_details(
    service: Service, open_page: Open
) -> None:
    page = await open_page(f"{service.url}/#scores")
    await page.get_by_role("rowheader", name="worker02").click()
    await page.get_by_role("button", name="What if this cluster is lost?").click()
    await expect(page.get_by_role("button", name="worker02: remove")).to_be_visible()
    await planned(page, {PERFORMANCE: "1"})
    table = page.get_by_role("table", name="Workloads before and after")
    await expect(table).to_contain_text("worker01")
    await expect(table).not_to_contain_text("worker02")


async def test_what_if_begins_with_the_weights_in_force_and_tells_what_a_loss_itself_costs(
    service: Service, open_page: Open
) -> None:
    """What planning anew gains is no effect of the loss."""
    power = {"addonPlacementScore": POWER, "weight": 0.25}
    await apply(service, PERFORMANCE, objectives=[Preference.model_validate(power)])
    page = await open_page(f"{service.url}/#whatif")
    weight = page.get_by_label(f"Weight of {POWER}")
    await expect(weight).to_have_value("0.25")
    await expect(page.get_by_label(f"Weight of {PERFORMANCE}")).to_have_value("1")
    await expect(page.get_by_text("The fleet as it is, by scores of now")).to_be_visible()
    await expect(page.get_by_label("What the plan does")).to_contain_text("as now")
    await page.get_by_label("Lost").fill("worker02")
    await page.keyboard.press("Tab")
    cost = page.get_by_text("Value 136.25 now, 68.75 after: 67.5 lost by losing worker02.")
    await expect(cost).to_contain_text("1 more workload without a place (0, then 1)")
    await expect(cost).to_contain_text(re.compile(r"(no|1) more moves? \(0"))
    value = page.get_by_label("What the plan does")
    await expect(value).to_contain_text("ago136.25 → 68.75 \N{MINUS SIGN}67.5")
    await expect(value).to_contain_text("Value, by scores of now, planned ")
    await expect(weight).to_have_value("0.25")
    await weight.fill("0")
    await expect(page.get_by_text("55 lost by losing worker02")).to_be_visible()


async def test_what_is_kept_is_planned_by_its_own_objective_and_told_apart_from_its_offer(
    service: Service, open_page: Open
) -> None:
    one = {**request(POWER)["clusters"][0], "availablePolicies": [{"name": MIG_3G}]}
    spec = {**request(POWER), "mode": "Plan", "clusters": [one]}
    del spec["namespace"]
    kept = {"metadata": {"name": "inference", "namespace": "default"}, "spec": spec}
    await service.hub.create(kinds.PLACEMENT_OPTIMIZATION, kept)
    page = await open_page(f"{service.url}/#kept")
    row = page.get_by_role("row", name="inference (Plan)")
    await expect(row).to_contain_text("no: 1 of 2 workloads without a place", timeout=LOOKS)
    # A plan that somebody asked for is none of its changes.
    await expect(page.get_by_role("columnheader", name="Last change by itself")).to_be_visible()
    await page.get_by_role("link", name="What if").click()
    await expect(page.get_by_label(f"Weight of {POWER}")).to_have_value("1")
    told = page.get_by_text("inference, which keeps it placed, counts otherwise: it has a gain of")
    await expect(told).to_contain_text("55 by averaged scores, at its last look; each move for")


async def test_why_a_workload_is_nowhere_is_told_at_once_and_the_wait_for_more_ends(
    service: Service, open_page: Open
) -> None:
    await apply(service, PERFORMANCE, limits=[MOST])
    page = await open_page(f"{service.url}/#workloads")
    await page.clock.install()
    await page.route("**/optimize?*", lambda _: None)  # a solver that never answers
    await page.get_by_role("button", name="Why nowhere?").first.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("has no place; plan default-1 says why")
    await expect(dialog).to_contain_text("the cheapest change that gives it a place: 0 s, at most")
    await page.clock.run_for(61_000)
    await expect(dialog.get_by_role("alert")).to_contain_text("found nothing within 60 s")
    await expect(dialog).to_contain_text("has no place; plan default-1 says why")


async def test_a_colleague_who_opens_the_link_sees_the_same_plan(
    service: Service, open_page: Open
) -> None:
    page = await open_page(f"{service.url}/#whatif")
    await page.get_by_label("Lost").fill("worker02")
    await page.keyboard.press("Tab")
    await page.get_by_label("Apply it step by step").check()
    await planned(page, {PERFORMANCE: "1", POWER: "0.5"})
    table = "Workloads before and after"
    await expect(page).to_have_url(re.compile(f"{POWER}%3A0.5"))
    colleague = await open_page(page.url)
    theirs = colleague.get_by_role("table", name=table)
    await expect(theirs).to_contain_text("worker01")
    await expect(theirs).not_to_contain_text("worker02")
    await expect(colleague.get_by_label(f"Weight of {POWER}")).to_have_value("0.5")
    await expect(colleague.get_by_label("Apply it step by step")).to_be_checked()


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ("weights=nobody:1", "nobody"),
        ("weights=performance:much", "performance"),
        ("lost=worker9", "worker9"),
        ("added=copy:worker9", "worker9"),
    ],
)
async def test_a_wish_of_an_address_that_cannot_be_is_refused(
    service: Service, open_page: Open, wish: str, why: str
) -> None:
    page = await open_page(f"{service.url}/#whatif?{wish}")
    await expect(page.get_by_role("alert")).to_contain_text(why)


async def test_a_link_shows_a_recorded_plan_among_many(service: Service, open_page: Open) -> None:
    for number in range(8):
        await apply(service, PERFORMANCE if number % 2 else POWER)
    page = await open_page(f"{service.url}/#plans", viewport={"width": 800, "height": 500})
    await page.get_by_role("link", name="default 2").click()
    colleague = await open_page(page.url, viewport={"width": 800, "height": 500})
    entry = colleague.get_by_role("listitem").filter(has_text="default 2").last
    await expect(entry).to_be_in_viewport()
    await expect(entry).to_contain_text("3g.48gb")
    missing = await open_page(f"{service.url}/#plans?plan=default-99")
    await expect(missing.get_by_text("has no plan default-99")).to_be_visible()


async def test_an_unknown_cluster_is_no_lost_one(service: Service, open_page: Open) -> None:
    page = await open_page(f"{service.url}/#whatif")
    await page.get_by_label("Lost").fill("worker2")
    await page.keyboard.press("Tab")
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("The fleet has no cluster worker2")
    await page.get_by_label("Lost").fill("worker02")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="worker02: remove")).to_be_visible()
    await expect(alert).to_have_count(0)


async def test_what_has_no_place_says_why_and_what_would_help(
    service: Service, open_page: Open
) -> None:
    page = await open_page(service.url)
    await page.get_by_role("link", name="What if").click()
    await page.get_by_label(f"Budget of {PERFORMANCE}").fill("60")
    await planned(page, {PERFORMANCE: "1"})
    unplaced = page.get_by_role("region", name="Unplaced workloads")
    await expect(unplaced).to_contain_text("mwrs-app0")
    await page.get_by_role("button", name="What would place them?").click()
    await expect(unplaced).to_contain_text("Cheapest remedy")


async def test_a_workload_says_why_it_is_there_and_why_not_elsewhere(
    service: Service, open_page: Open
) -> None:
    await apply(service)
    page = await open_page(f"{service.url}/#workloads")
    row = page.get_by_role("table").get_by_role("row", name="mwrs-app01")
    await row.get_by_role("button", name="Why here?").click()
    dialog = page.get_by_role("dialog", name="Why is mwrs-app01 there?")
    await expect(dialog).to_contain_text("policy-enable-mig-3g-worker0")
    await expect(dialog).to_contain_text("another plan is as good")
    await page.keyboard.press("Escape")
    other = "worker02" if "worker01" in await row.inner_text() else "worker01"
    await page.get_by_role("link", name="Scores").click()
    await page.get_by_role("rowheader", name=other).click()
    await page.get_by_text("Why not here?").click()
    await page.get_by_role("dialog").get_by_role("button", name="mwrs-app01").click()
    named = page.get_by_role("dialog", name=f"Why is mwrs-app01 not on {other}?")
    await expect(named).to_contain_text("mwrs-app01")
    await expect(named).to_contain_text(other)


async def test_applied_plans_tell_what_they_moved_and_can_be_restored(
    service: Service, open_page: Open
) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, POWER)
    page = await open_page(f"{service.url}/#plans")
    newest = page.get_by_role("listitem").filter(has_text="default 2")
    await expect(newest).to_contain_text("3g.48gb →")
    oldest = page.get_by_role("listitem").filter(has_text="default 1").last
    await expect(oldest).to_contain_text("What became of it: Revision 2 was applied.")
    await oldest.get_by_role("button", name="Restore this plan…").click()
    dialog = page.get_by_role("dialog", name="Restore plan default 1?")
    await dialog.get_by_role("button", name="Apply").click()
    await expect(page.get_by_text("It restored plan 1.")).to_be_visible()


async def test_what_a_plan_stopped_is_no_move(service: Service, open_page: Open) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, PERFORMANCE, limits=[MOST])
    page = await open_page(f"{service.url}/#plans")
    newest = page.get_by_role("listitem").filter(has_text="default 2")
    await expect(newest).to_contain_text(re.compile("mwrs-app0[12]: stopped on worker0[12] 3g"))
    await expect(newest).not_to_contain_text("→")


async def test_a_restore_that_the_hub_outran_can_be_asked_for_again(
    service: Service, open_page: Open
) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, POWER)
    page = await open_page(f"{service.url}/#plans")
    oldest = page.get_by_role("listitem").filter(has_text="default 1").last
    restore = oldest.get_by_role("button", name="Restore this plan…")
    dialog = page.get_by_role("dialog", name="Restore plan default 1?")
    await restore.click()
    await expect(dialog).to_be_visible()
    await apply(service, PERFORMANCE)
    await dialog.get_by_role("button", name="Apply").click()
    await expect(page.get_by_role("alert")).to_contain_text("Plan again")
    await apply(service, POWER)
    await restore.click()
    await dialog.get_by_role("button", name="Apply").click()
    await expect(page.get_by_text("It restored plan 1.")).to_be_visible()


async def test_a_rollout_shows_its_steps_and_is_paused_after_a_second_click(
    service: Service, open_page: Open
) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, POWER, rollout="Stepwise")
    page = await open_page(f"{service.url}/#rollouts")
    await expect(page.get_by_text("Step 2 of 8", exact=True)).to_be_visible()
    await page.get_by_role("button", name="pause…").click()
    dialog = page.get_by_role("dialog", name="pause the rollout of default?")
    await dialog.get_by_role("button", name="pause").click()
    await expect(page.get_by_text("Paused")).to_be_visible()


async def test_a_step_that_moves_nothing_says_what_it_writes(
    service: Service, open_page: Open
) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, POWER, rollout="Stepwise")
    page = await open_page(service.url)

    async def answer(route: Route) -> None:
        found = await (await route.fetch()).json()
        found["items"][0]["steps"][0]["stop"] = []
        await route.fulfill(json=found)

    await page.route("**/rollouts?*", answer)
    await page.get_by_role("link", name="Rollouts").click()
    await expect(page.get_by_text("write what does not change where anything")).to_be_visible()


class HeldPlans(Optimizer):
    """Makes no plan before it is released."""

    released = asyncio.Event()

    async def plan(self, *args: Any, **options: Any) -> Plan | RequestProblem:
        await self.released.wait()
        return await super().plan(*args, **options)


async def test_a_plan_that_takes_its_time_says_how_far_it_is_and_a_proof_does_not_wait_for_it(
    open_page: Open,
) -> None:
    hub = await scenario_hub()
    optimizer = HeldPlans(hub, now=utc_now)
    async with serving_hub(hub, optimizer) as service:
        page = await open_page(service.url)
        async with page.expect_request("**/plan"):
            await page.get_by_role("link", name="What if").click()
        await expect(page.get_by_role("button", name="Plan", exact=True)).to_be_disabled()
        await page.get_by_label("Prove that no plan is better").check()
        async with page.expect_request("**/plan") as asked:
            await page.get_by_role("button", name="Plan", exact=True).click()
        assert (await asked.value).post_data_json["request"] == {"gap": 0}
        await expect(page.get_by_text(re.compile(r"Planning: \d+ s"))).to_be_visible()
        optimizer.released.set()
        await expect(page.get_by_text("Optimal: Proven best")).to_be_visible()


async def test_what_is_kept_says_why_it_waits_and_is_approved_after_a_second_click(
    service: Service, open_page: Open
) -> None:
    spec = {**request(PERFORMANCE), "mode": "Approve"}
    kept = {"metadata": {"name": "inference", "namespace": "default"}, "spec": spec}
    del spec["namespace"]
    page = await open_page(f"{service.url}/#kept")
    await expect(page.get_by_text("Nothing is kept placed by itself")).to_be_visible()
    await service.hub.create(kinds.PLACEMENT_OPTIMIZATION, kept)
    row = page.get_by_role("row", name="inference (Approve)")
    await expect(row).to_contain_text("AwaitingApproval: Plan")
    await row.get_by_role("button", name="Approve…").click()
    dialog = page.get_by_role("dialog", name="Approve the plan of inference?")
    await expect(dialog).to_contain_text("It moves, starts or stops 2 of 2 workloads, gains")
    await page.keyboard.press("Escape")
    assert await generated(service.hub) == []
    await row.get_by_role("button", name="Approve…").click()
    await dialog.get_by_role("button", name="Approve").click()
    # Between two looks passes ten times of what one takes: seconds on a busy machine.
    await expect(row).to_contain_text("Planned: 0 of 2 replicas landed", timeout=LOOKS)
    await expect(row).to_contain_text("has to gain more than the largest of")
    assert "app01-placement" in await generated(service.hub)
