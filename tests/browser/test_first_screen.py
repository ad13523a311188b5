"""The first screen without scrolling, scores of one app, what changed, and commands to copy."""

import re
from datetime import timedelta
from typing import Any

import pytest
import yaml
from playwright.async_api import Page, Route, expect

from dsf.api.conditions import Condition, merged
from dsf.api.times import rfc3339
from dsf.cli.root import root
from dsf.kube import kinds
from dsf.kube.clock import utc_now
from optimizer.follow.overview.fleet_matrix import MatrixFinding
from optimizer.service.optimizer import Optimizer
from tests.browser.conftest import Open
from tests.browser.invented_fleet import REGIONS, invented_fleet, show_fleet
from tests.browser.large_fleet import large_fleet
from tests.browser.test_accessibility import violations
from tests.browser.test_fleet import SCORERS
from tests.browser.test_plans import LOOKS, apply, planned
from tests.command_line import invoked
from tests.mcp_server.service import (
    PERFORMANCE,
    POWER,
    Service,
    generated,
    put,
    request,
    serving_hub,
)
from tests.optimizer.build import obj
from tests.optimizer.follow.overview.test_capacity import group, inventory

PANELS = (
    "Is anything wrong?",
    "How well are GPUs used?",
    "What moves now?",
    "What would a better plan gain?",
    "How fresh are scores?",
)

LONG = "a" * 253


def panel(page: Page, name: str) -> Any:
    return page.get_by_role("region", name=name)


async def lose(service: Service, cluster: str, **ago: float) -> None:
    """Let a cluster be lost since a time."""
    began = rfc3339(utc_now() - timedelta(**ago))
    lost = Condition("ManagedClusterConditionAvailable", "Unknown", "Lost", "no heartbeat")
    status = {"status": {"conditions": merged([], [lost], now=began)}}
    await service.hub.patch(kinds.MANAGED_CLUSTER, cluster, status, subresource="status")


async def test_five_questions_are_answered_without_scrolling(
    service: Service, open_page: Open
) -> None:
    await lose(service, "worker02", hours=3)
    used = group({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu": "6"}, model="NVIDIA-A100-SXM4-80GB")
    await put(service.hub, inventory("worker01", used, now=utc_now()))
    await apply(service, PERFORMANCE)
    await apply(service, POWER, rollout="Stepwise")
    page = await open_page(service.url, viewport={"width": 1200, "height": 800})
    wrong, use, moving, gain, fresh = (panel(page, name) for name in PANELS)
    await expect(wrong.get_by_role("link").first).to_contain_text("ClusterLost")
    await expect(
        use.get_by_role("img", name="A100-80GB: 6 reserved, 2 free of 8 GPUs")
    ).to_be_visible()
    await expect(moving).to_contain_text("default: step 2 of 8")
    await expect(gain.get_by_role("button", name="Plan by the scores in force")).to_be_visible()
    await expect(fresh.get_by_role("img")).to_be_visible()
    for item in (wrong, use, moving, gain, fresh):
        await expect(item).to_be_in_viewport(ratio=1)
    await moving.get_by_role("link", name="default: step 2 of 8").click()
    await expect(page.get_by_text("Step 2 of 8", exact=True)).to_be_visible()


@pytest.mark.parametrize("clusters", [1000, 5000])
async def test_a_large_fleet_is_told_without_scrolling(
    service: Service, open_page: Open, clusters: int
) -> None:
    """Names are as long as they may be, and every other score is late."""
    names = [LONG[: -len(str(number))] + str(number) for number in range(clusters)]
    fleet = invented_fleet(clusters, names=names)
    now = int(fleet.observed_at.timestamp())
    late = {
        "written": (now - 7200,) * clusters,
        "valid_until": (now - 3600, now + 3600) * (clusters // 2),
        "expired": tuple(range(0, clusters, 2)),
    }
    scores = tuple(score.model_copy(update=late) for score in fleet.scores)
    page = await open_page(service.url, viewport={"width": 1280, "height": 800})
    await show_fleet(page, fleet.model_copy(update={"scores": scores}))
    fresh = panel(page, "How fresh are scores?")
    told = f"Late: {clusters // 2} clusters, 2h old, expired 60m ago"
    await expect(fresh).to_contain_text(told, timeout=LOOKS)
    for name in PANELS:
        await expect(panel(page, name)).to_be_in_viewport(ratio=1)
    assert await violations(page) == []


async def test_gpus_are_told_by_model_and_by_region(service: Service, open_page: Open) -> None:
    """What is chosen groups the drawing, too. Both tell the same GPUs."""
    page = await open_page(service.url)
    await show_fleet(page, invented_fleet(40))
    use = panel(page, "How well are GPUs used?")
    rows = use.get_by_role("row")

    async def sums() -> list[float]:
        cells = [await row.get_by_role("cell").all_inner_texts() for row in await rows.all()]
        columns = zip(*(line[1:] for line in cells[1:]), strict=True)
        return [sum(map(float, column)) for column in columns]

    await expect(rows).to_have_count(5)
    by_model = await sums()
    await use.get_by_role("combobox", name="By").select_option("region")
    await expect(rows).to_have_text([re.compile(name) for name in ("reserved", *REGIONS)])
    assert await sums() == pytest.approx(by_model, abs=0.5)
    await expect(page.get_by_role("combobox", name="Group")).to_have_value("label:region")
    await expect(use).to_contain_text("What is idle is not measured")
    await expect(use).to_contain_text("A MIG device counts by its memory.")


async def test_idle_gpus_are_told_where_they_are_measured(
    service: Service, open_page: Open
) -> None:
    used = group({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu": "6"}, model="NVIDIA-H200")
    await put(service.hub, inventory("worker01", used, now=utc_now()))
    idle = obj(kinds.ADD_ON_PLACEMENT_SCORE, "gpu-idle", "worker01")
    await put(service.hub, {**idle, "status": {"scores": [{"name": "all", "value": 25}]}})
    page = await open_page(service.url)
    use = panel(page, "How well are GPUs used?")
    bar = use.get_by_role("img", name="H200-141GB: 4.5 running, 1.5 idle, 2 free of 8 GPUs")
    await expect(bar).to_be_visible()
    await expect(use.get_by_role("row", name="H200")).to_have_text("H200-141GB4.51.528")
    await expect(use).to_contain_text("Not in these sums: 1 cluster without a NodeInventory")
    untold = group({"nvidia.com/gpu": "4"}, {"nvidia.com/gpu": "1"}, model="NVIDIA-L40S")
    await put(service.hub, inventory("worker02", untold, now=utc_now()))
    await expect(use.get_by_role("row", name="L40S")).to_have_text("L40S1 reserved34")
    await page.reload()
    capacity = page.get_by_role("region", name="Capacity")
    await expect(capacity).to_contain_text("nvidia.com/gpu H200-141GB")


async def test_what_a_cluster_refused_is_no_move_and_listed_apart(
    service: Service, open_page: Open
) -> None:
    """A place that is on its way counts as one that moves."""
    await apply(service, PERFORMANCE)
    page = await open_page(service.url)

    async def answer(route: Route) -> None:
        found = await (await route.fetch()).json()
        first, second = found["workloads"]
        first["places"], second["places"] = {"worker01": "Planned"}, {"worker02": "Refused"}
        await route.fulfill(json=found)

    await page.route("**/fleet?*", answer)
    await page.reload()
    moving = panel(page, "What moves now?")
    await expect(moving).to_contain_text("1 place not landed yet")
    await moving.get_by_role("link", name="1 place refused").click()
    rows = page.get_by_role("table").get_by_role("row")
    await expect(rows).to_have_count(2)
    await expect(rows.last).to_contain_text("worker02 (Refused)")


async def test_late_scores_are_named_the_worst_first(service: Service, open_page: Open) -> None:
    for cluster, score, hours in (
        ("worker01", POWER, 1),
        ("worker02", POWER, 5),
        ("worker02", PERFORMANCE, 3),
    ):
        status = {"status": {"validUntil": rfc3339(utc_now() - timedelta(hours=hours))}}
        await service.hub.patch(
            kinds.ADD_ON_PLACEMENT_SCORE, score, status, cluster, subresource="status"
        )
    page = await open_page(service.url)
    fresh = panel(page, "How fresh are scores?")
    lines = fresh.get_by_role("listitem").filter(has_text="Late")
    worst = re.compile(f"worker02, .* old, expired 5h ago: {PERFORMANCE}, {POWER}")
    await expect(lines).to_have_text([worst, re.compile(f"worker01, .*60m ago: {POWER}")])
    await lines.first.get_by_role("link").click()
    scores = panel(page, "Scores")
    await expect(scores.get_by_text(worst)).to_be_visible()
    await scores.get_by_role("combobox", name="Score").select_option(POWER)
    await scores.get_by_role("button", name="Age").click()
    names = scores.get_by_role("rowheader")
    await expect(names).to_have_text(["worker02", "worker01"])
    ages = scores.get_by_role("gridcell").filter(has_text="expired")
    await expect(ages.first).to_have_attribute("title", re.compile("expired 5h ago"))


async def test_what_changed_since_yesterday_is_told(service: Service, open_page: Open) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, POWER)
    page = await open_page(service.url)
    told: list[dict[str, Any]] = []

    async def answer(route: Route) -> None:
        found = await (await route.fetch()).json()
        items = [{**found["items"][0], **item} for item in told]
        await route.fulfill(json={**found, "items": items})

    await page.route("**/plans?*", answer)
    made = {"moves": 2, "first_placements": 1, "unplaced_workloads": 0, "objective": 120}
    hour = {**made, "revision": 7, "created": rfc3339(utc_now() - timedelta(hours=1))}
    day = {**hour, "revision": 6, "phase": "Superseded", "objective": 115, "unplaced_workloads": 4}
    day |= {"created": rfc3339(utc_now() - timedelta(hours=25))}
    week = {**day, "revision": 5, "created": rfc3339(utc_now() - timedelta(days=7))}
    for plans, expected in (
        (
            [hour, day, week],
            "yesterday: 1 plan, 2 moves, 1 first placement, value 115 → 120, 4 → 0",
        ),
        ([day, week], "yesterday: no new plan"),
        ([{**hour, "phase": "Failed"}, day], "yesterday: no new plan"),
        ([hour], "Recorded since the oldest plan that is kept, 60m ago: 1 plan"),
        ([{**hour, "revision": 1}], "Recorded since the first plan, 60m ago: 1 plan"),
        ([hour, {**day, "request_digest": "x"}], "value 115, and 120 by another request"),
        ([{**hour, "moves": None}, day], "1 plan, moves not recorded, 1 first placement"),
    ):
        told[:] = plans
        await page.reload()
        await expect(panel(page, "What moves now?")).to_contain_text(expected)


async def test_a_normalized_score_tells_what_its_ends_are(
    service: Service, open_page: Open
) -> None:
    [scorer, *_] = yaml.safe_load_all(SCORERS.read_text())
    scorer["spec"] |= {"unit": "s", "direction": "LowerIsBetter"}
    scorer["spec"]["scoring"] |= {"normalize": {"min": 0, "max": 2, "invert": True}}
    told = {"scoreName": PERFORMANCE, "meaning": {"direction": "HigherIsBetter"}}
    await put(service.hub, {**scorer, "status": told})
    page = await open_page(f"{service.url}/#scores")
    meaning = page.get_by_text("Higher is better: 100 stands for 0 s, 0 for 2 s.")
    await expect(meaning).to_be_visible()
    await page.get_by_role("link", name="Scorers").click()
    await expect(meaning).to_be_visible()


async def test_a_hidden_page_asks_nothing(service: Service, open_page: Open) -> None:
    page = await open_page(service.url)
    await page.clock.install()
    await page.reload()
    await expect(panel(page, "What moves now?")).to_contain_text("Nothing moves")
    await page.evaluate("Object.defineProperty(document, 'hidden', {value: true, writable: true})")
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    await page.clock.run_for(60_000)
    assert asked == []
    await page.evaluate("document.hidden = false")
    await page.clock.run_for(12_000)
    assert {url.partition("?")[0].rpartition("/")[2] for url in asked} >= {"fleet", "rollouts"}


async def test_without_an_inventory_the_screen_says_how_to_have_one(
    service: Service, open_page: Open
) -> None:
    page = await open_page(service.url)
    use = panel(page, "How well are GPUs used?")
    await expect(use).to_contain_text("spokeSetting.agent.inventory.enabled=true")


async def test_a_plan_that_is_asked_for_is_looked_at_and_writes_nothing(
    service: Service, open_page: Open
) -> None:
    page = await open_page(service.url)
    gain = panel(page, "What would a better plan gain?")
    await gain.get_by_role("button", name="Plan by the scores in force").click()
    await expect(gain).to_contain_text("starts 2")
    await gain.get_by_role("link", name="Look at the plan").click()
    await expect(page.get_by_role("button", name="Apply…")).to_be_visible()
    assert await generated(service.hub) == []


async def test_a_plan_on_offer_is_approved_from_the_first_screen(
    service: Service, open_page: Open
) -> None:
    spec = {**request(PERFORMANCE), "mode": "Approve"}
    del spec["namespace"]
    kept = {"metadata": {"name": "inference", "namespace": "default"}, "spec": spec}
    await service.hub.create(kinds.PLACEMENT_OPTIMIZATION, kept)
    page = await open_page(service.url)
    gain = panel(page, "What would a better plan gain?")
    dialog = page.get_by_role("dialog", name="Approve the plan of inference?")
    await gain.get_by_role("link", name="inference: it moves").click()
    plan = page.get_by_role("region", name="The plan of inference that waits")
    await expect(plan.get_by_role("region", name="Fleet before and after")).to_contain_text(
        "Planned: policies changed on 2 clusters, 2 places started"
    )
    await page.get_by_role("button", name="Approve…").click()
    command = await dialog.locator("code").inner_text()
    await page.keyboard.press("Escape")
    message = await page.get_by_role("row", name="inference").inner_text()
    assert command in message, "the status names the same command"
    await page.get_by_role("link", name="Fleet", exact=True).click()
    await gain.get_by_role("button", name="Approve…").click()
    await dialog.get_by_role("button", name="Approve", exact=True).click()
    await expect(gain).to_contain_text("inference: Planned", timeout=LOOKS)
    assert "app01-placement" in await generated(service.hub)


async def test_what_a_lost_cluster_refuses_does_not_move(service: Service, open_page: Open) -> None:
    await apply(service, PERFORMANCE)
    lost = Condition("ManagedClusterConditionAvailable", "Unknown", "Lost", "no heartbeat")
    status = {"status": {"conditions": merged([], [lost], now=rfc3339(utc_now()))}}
    await service.hub.patch(kinds.MANAGED_CLUSTER, "worker02", status, subresource="status")
    page = await open_page(service.url)
    moving = panel(page, "What moves now?")
    await expect(moving).to_contain_text("1 place not landed yet1 place refused")


async def test_gains_of_different_objectives_have_no_sum(service: Service, open_page: Open) -> None:
    page = await open_page(service.url)
    applied = [{"type": "Applied", "status": "True", "reason": "UpToDate", "message": ""}]
    items = [
        {"name": name, "reason": reason, "status": {"gain": gain, "conditions": applied}}
        for name, gain, reason in (
            ("nothing", 0, "UpToDate"),
            ("power", 12.5, "UpToDate"),
            ("latency", 30, "Unplaced"),
        )
    ]

    async def answer(route: Route) -> None:
        await route.fulfill(json={"items": items})

    await page.route("**/placementoptimizations?*", answer)
    gain = panel(page, "What would a better plan gain?")
    for told in ("+12.5 by averaged scores power: ", "+30 by averaged scores latency: "):
        await expect(gain).to_contain_text(f"{told}no move gains enough")
    await expect(gain).not_to_contain_text("42.5")


async def test_sentences_leave_commands_and_names_as_they_are(
    service: Service, open_page: Open
) -> None:
    said = {
        "http://scorer:8080 does not answer": "http://scorer:8080 does not answer.",
        "plan_placement makes a plan": "plan_placement makes a plan.",
        "kubectl get pods shows why": "kubectl get pods shows why.",
        "app01 has no place": "app01 has no place.",
        "it can't be reached": "It can't be reached.",
        "scorer power: no score": "Scorer power: no score.",
    }
    findings = tuple(
        MatrixFinding(stage="score", name=str(number), reason="Down", message=message, next="look")
        for number, message in enumerate(said)
    )
    page = await open_page(f"{service.url}/#findings")
    await show_fleet(page, invented_fleet(2).model_copy(update={"findings": findings}))
    for number, sentence in enumerate(said.values()):
        await expect(panel(page, "Findings")).to_contain_text(f"score {number}: {sentence}")


async def test_what_follows_from_what_follows_is_a_cause_of_its_own(
    service: Service, open_page: Open
) -> None:
    """One cluster is lost, so its score expired, on which a scorer fails that fails elsewhere."""
    chain = (
        ("cluster", "ClusterLost", ""),
        ("score", "ScoreExpired", "ClusterLost"),
        ("scorer", "ClustersFailing", "ScoreExpired"),
    )
    said = {"name": "a", "message": "b", "next": "c"}
    findings = tuple(
        MatrixFinding.model_validate({**said, "stage": stage, "reason": reason, "cause": cause})
        for stage, reason, cause in chain
    )
    page = await open_page(service.url)
    await show_fleet(page, invented_fleet(2).model_copy(update={"findings": findings}))
    causes = panel(page, "Is anything wrong?").get_by_role("listitem")
    told = ("ClusterLost1 cluster, 1 score", "ClustersFailing1 scorer")
    await expect(causes).to_have_text([re.compile(text) for text in told])


async def test_each_view_has_an_order_of_its_own(service: Service, open_page: Open) -> None:
    page = await open_page(f"{service.url}/#fleet?sort=name")
    sort = page.get_by_role("combobox", name="Sort")
    await page.get_by_role("link", name="Scores", exact=True).click()
    rank = page.get_by_role("columnheader", name="Rank")
    await expect(rank).to_have_attribute("aria-sort", "descending")
    await page.get_by_role("button", name="Cluster", exact=True).click()
    await expect(rank).to_have_attribute("aria-sort", "none")
    await page.get_by_role("link", name="Fleet", exact=True).click()
    await sort.select_option("use")
    await page.get_by_role("link", name="Scores", exact=True).click()
    cluster = page.get_by_role("columnheader", name="Cluster")
    await expect(cluster).to_have_attribute("aria-sort", "ascending")


async def test_of_many_apps_one_is_shown_with_its_devices_and_their_spread(open_page: Open) -> None:
    """Apps, devices and clusters stand in natural order; the best cluster stands first."""
    hub = await large_fleet(40)
    for number in range(40):
        scores = [
            {"name": f"app{app};{device}g", "value": (number + app + device) % 100}
            for app in range(1, 151)
            for device in (1, 2, 10)
        ]
        status = {"status": {"scores": scores}}
        await hub.patch(
            kinds.ADD_ON_PLACEMENT_SCORE,
            "power",
            status,
            f"cluster-{number:04}",
            subresource="status",
        )
    async with serving_hub(hub, Optimizer(hub, now=utc_now)) as service:
        page = await open_page(f"{service.url}/#scores")
        app = page.get_by_role("combobox", name="App")
        await expect(app).to_have_value("app1")
        assert (await app.locator("option").all_inner_texts())[1::9][:2] == ["app2", "app11"]
        heads = page.get_by_role("columnheader")
        await expect(heads).to_contain_text(
            ["Rank", "Cluster", "1g", "2g", "10g", "Age", "State", "Runs"]
        )
        await expect(
            heads.nth(4).get_by_role("img", name="from 11 to 50, median 30")
        ).to_be_visible()
        first = page.get_by_role("grid").get_by_role("rowheader").first
        await expect(first).to_have_text("cluster-0039")
        await app.select_option("app150")
        colleague = await open_page(page.url)
        await expect(colleague.get_by_role("combobox", name="App")).to_have_value("app150")


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
async def test_a_change_is_highlighted(service: Service, open_page: Open, motion: str) -> None:
    page = await open_page(f"{service.url}/#scores", reduced_motion=motion)
    row = page.get_by_role("row", name="worker01")
    await expect(row).not_to_have_class(re.compile("fresh"))
    status = {"status": {"scores": [{"name": "app01;2g.24gb", "value": 42}]}}
    await service.hub.patch(
        kinds.ADD_ON_PLACEMENT_SCORE, PERFORMANCE, status, "worker01", subresource="status"
    )
    await expect(row).to_have_class(re.compile("fresh"))
    other = page.get_by_role("row", name="worker02")
    await expect(other).not_to_have_class(re.compile("fresh"))
    animation = await row.evaluate("at => getComputedStyle(at).animationName")
    assert (animation == "none") == (motion == "reduce")


async def test_a_command_is_copied_and_its_program_knows_it(
    service: Service, open_page: Open
) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, POWER, rollout="Stepwise")
    page = await open_page(
        f"{service.url}/#rollouts", permissions=["clipboard-read", "clipboard-write"]
    )
    commands = []

    async def copied() -> None:
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Copy").click()
        await expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
        commands.append(await page.evaluate("navigator.clipboard.readText()"))
        await page.keyboard.press("Escape")

    await page.get_by_role("button", name="undo…").click()
    await copied()
    await planned(page, {PERFORMANCE: "1", POWER: "0.5"})
    await page.get_by_role("button", name="Apply…").click()
    await copied()
    await page.get_by_role("link", name="Plans").click()
    await page.get_by_role("button", name="Restore this plan…").last.click()
    await copied()
    await page.get_by_role("link", name="Workloads").click()
    await page.get_by_role("button", name="Why").first.click()
    await copied()
    digest = re.findall("--expected-digest ([0-9a-f]{64}) ", commands[1])[0]
    weights = f"{PERFORMANCE}:1,{POWER}:0.5"
    assert commands == [
        "dsf rollout undo --optimization default -n default",
        f"dsf optimize -n default --expected-digest {digest} --objective {weights}",
        "dsf rollback --optimization default --to-revision 1 -n default",
        "dsf why mwrs-app01 -n default",
    ]
    for command in commands:
        code, _, problem = invoked(root, *command.split()[1:], "--help")
        assert code == 0, problem


async def test_first_places_are_no_moves(service: Service, open_page: Open) -> None:
    await apply(service, PERFORMANCE)
    page = await open_page(f"{service.url}/#plans")
    entry = page.get_by_role("listitem").filter(has_text="default 1")
    await expect(entry).to_contain_text("It moved nothing.")
    await entry.get_by_text("2 workloads placed that had no place").click()
    await expect(entry).to_contain_text("mwrs-app01: worker0")


async def test_a_wrong_clock_gives_no_negative_age(service: Service, open_page: Open) -> None:
    await lose(service, "worker02", hours=-5)
    page = await open_page(service.url)
    wrong = panel(page, "Is anything wrong?")
    await expect(wrong.get_by_role("link").first).to_contain_text("ClusterLost1 cluster0s")
    await wrong.get_by_role("link").first.click()
    await expect(panel(page, "Findings")).to_contain_text("by a clock that differs from yours")


async def test_long_names_fit_on_the_narrowest_screen(service: Service, open_page: Open) -> None:
    await service.hub.create(kinds.MANAGED_CLUSTER, obj(kinds.MANAGED_CLUSTER, LONG))
    page = await open_page(service.url, viewport={"width": 320, "height": 640})
    for view in ("Fleet", "Scores", "Workloads", "Findings"):
        await page.get_by_role("link", name=view, exact=True).click()
        await expect(page.get_by_role("link", name=view, exact=True)).to_be_visible()
        assert await violations(page) == []
        overflow = "document.documentElement.scrollWidth - innerWidth"
        assert await page.evaluate(overflow) <= 0
