"""Time on the page: plans, steps of a rollout, histories of scores, scorers side by side."""

import copy
import re

import pytest
import yaml
from aiohttp import web
from playwright.async_api import Locator, Page, Route, expect

from dsf.api.names import OPTIMIZATION_LABEL
from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from optimizer.domain.settings import OptimizerSettings
from optimizer.service.optimizer import Optimizer
from tests.browser.conftest import Open
from tests.browser.test_accessibility import violations
from tests.browser.test_plans import apply
from tests.dsf.agent.servers import Handler, matrix, replying, serving
from tests.mcp_server.service import PERFORMANCE, POWER, Service, put, scenario_hub, serving_hub
from tests.repository import ROOT

SCORERS = ROOT / "sample_scorers/static/manifests/dynamicscorer-per-cluster.yaml"
MARKUP = "<img src=x onerror=alert(1)>"
Curves = dict[tuple[str, ...], list[float | None]]
_LINED = """canvas => {
  const {width, height} = canvas;
  const {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
  const blue = (row) => {
    for (let at = 4 * width * row; at < 4 * width * (row + 1); at += 4)
      if (data[at + 3] > 30 && data[at + 2] - data[at] > 80) return true;
    return false };
  return Array.from({length: height}, (_, row) => row).filter(blue).length }"""
"""How many rows of pixels have something of the first line."""


def prometheus(curves: Curves) -> Handler:
    """Answer each query with those curves that it asks for; the last value is of its end.

    A key has the name of a metric that stands in the query, then labels as `name=value`.
    """

    async def handler(request: web.Request) -> web.StreamResponse:
        form = await request.post() if request.method == "POST" else request.query
        query, step = str(form["query"]), float(str(form.get("step", 60)))
        end = float(str(form.get("end") or form["time"]))
        series = [
            (
                dict(label.split("=", 1) for label in labels),
                [
                    [end - step * (len(values) - 1 - at), str(value).replace("nan", "NaN")]
                    for at, value in enumerate(values)
                    if value is not None
                ],
            )
            for (metric, *labels), values in curves.items()
            if metric in query
        ]
        return await replying(matrix(*series))(request)

    return handler


async def registered(hub: EmbeddedHub, scoring: dict[str, int]) -> None:
    """Register a scorer for each of these scores; on how many of 2 clusters it works."""
    [scorer, *_] = yaml.safe_load_all(SCORERS.read_text())
    for score, works in scoring.items():
        one = copy.deepcopy(scorer)
        one["metadata"]["name"] = f"{score}-scorer"
        counts = {"desired": 2, "distributed": 2, "scoring": works, "failing": 2 - works}
        status = {"healthStatus": "Active", "scoreName": score, "clusters": counts}
        await put(hub, {**one, "status": status})


def slider(page: Page, name: str) -> Locator:
    return page.get_by_role("slider", name=name)


async def test_plans_are_points_that_open_their_plan(service: Service, open_page: Open) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, POWER)
    page = await open_page(f"{service.url}/#plans")
    value = slider(page, "Value of the plans of default: 115 to 170, last 170.")
    await value.focus()
    await expect(value).to_have_attribute(
        "aria-valuetext", re.compile("^plan 2, .* ago: value 170$")
    )
    changes = slider(page, "What the plans of default changed: 0 to 2.")
    await changes.focus()
    await page.keyboard.press("Home")
    await expect(changes).to_have_attribute(
        "aria-valuetext", re.compile("^plan 1, .*: moves 0, first placements 2, unplaced 0$")
    )
    await page.keyboard.press("Enter")
    entry = page.get_by_role("listitem").filter(has_text="default 1").last
    await expect(entry).to_be_focused()
    assert "plan=default-1" in page.url
    await expect(page.get_by_text("values before and after do not compare")).to_be_visible()
    assert await violations(page) == []


async def test_values_of_other_requests_are_not_connected(
    service: Service, open_page: Open
) -> None:
    await apply(service, PERFORMANCE)
    found = [("a", 115), ("b", 170), ("b", 170)]

    async def answer(route: Route) -> None:
        [item] = (await (await route.fetch()).json())["items"]
        plans = (
            {**item, "revision": at, "name": f"p{at}", "request_digest": asked, "objective": value}
            for at, (asked, value) in enumerate(found, 1)
        )
        await route.fulfill(json={"items": [*plans]})

    page = await open_page(service.url)
    await page.route("**/plans?*", answer)
    await page.get_by_role("link", name="Plans").click()
    canvas = slider(page, "Value of the plans of default").locator("canvas")
    assert await canvas.evaluate(_LINED) <= 2 * 6, "two dots, and a line as high as one of them"
    await expect(page.get_by_text("A value falls where scores do")).to_be_visible()


async def test_records_of_earlier_versions_say_that_they_do_not_know(
    service: Service, open_page: Open
) -> None:
    await apply(service, PERFORMANCE)
    found = await service.hub.get(kinds.PLACEMENT_PLAN, "default-1", "default")
    earlier = copy.deepcopy(found)
    for field in ("moves", "firstPlacements", "unplaced"):
        del earlier["spec"]["changes"][field]
    labels = {OPTIMIZATION_LABEL: "older"}
    earlier["metadata"] = {"name": "older-9", "namespace": "default", "labels": labels}
    earlier["spec"] |= {"revision": 9, "optimization": "older"}
    await put(service.hub, earlier)
    page = await open_page(f"{service.url}/#plans")
    await expect(page.get_by_text("1 of 1 plans do not say what they changed")).to_be_visible()
    await expect(page.get_by_text("What the plans of older changed: no values.")).to_be_visible()


async def test_a_rollout_tells_when_its_steps_were_made(service: Service, open_page: Open) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, POWER, rollout="Stepwise")
    page = await open_page(f"{service.url}/#rollouts")
    steps = page.get_by_role("article").get_by_role("listitem")
    await expect(steps.nth(0)).to_contain_text("made in")
    await expect(steps.nth(1)).to_contain_text("so far")
    await expect(steps.nth(7)).to_contain_text("to come")
    await expect(steps.nth(1)).to_have_attribute("aria-current", "step")


@pytest.mark.parametrize("width", [320, 1200])
async def test_a_score_over_time_shows_holes_bands_and_hostile_names(
    open_page: Open, width: int
) -> None:
    app, score = ("ds_app=app01", "ds_device=all"), "dynamic_score{"
    curves: Curves = {
        (score, *app, "ds_meta=p50"): [10, None, None, 40, 25],
        (score, *app, "ds_meta=p90"): [20, None, None, 50, 35],
        (score, *app, "ds_meta=p10"): [0, None, None, 30, 15],
        (score, "ds_app=app10", f"ds_device={MARKUP}"): [7],
        (score, "ds_app=app2", "ds_device=all"): [float("nan")],
    }
    hub = await scenario_hub()
    async with serving(prometheus(curves)) as server:
        settings = OptimizerSettings(prometheus_url=server.url)
        async with serving_hub(hub, Optimizer(hub, settings, now=utc_now)) as service:
            size = {"width": width, "height": 800}
            page = await open_page(f"{service.url}/#scores", viewport=size)
            await page.get_by_role("rowheader", name="worker01").click()
            await page.get_by_text(f"{PERFORMANCE}: mean 50").click()
            dialog = page.get_by_role("dialog")
            await dialog.get_by_role("button", name="Over time").click()
            curve = slider(page, f"{PERFORMANCE} of app01 on worker01: 7 to 40.")
            await curve.focus()
            told = "app01;all 25 (p10 15, p90 35), app2;all none, app10;" + MARKUP
            await expect(curve).to_have_attribute(
                "aria-valuetext", re.compile(re.escape(f": {told} 7"))
            )
            await page.get_by_text("As a table").click()
            rows = page.get_by_role("table", name=PERFORMANCE).get_by_role("row")
            await expect(rows.nth(1)).to_contain_text("25 (15 to 35)")
            await expect(rows.nth(3)).to_contain_text("none")
            await expect(page.get_by_text("from p10 to p90 of the forecast")).to_be_visible()
            assert await page.locator("img").count() == 0
            assert await violations(page) == []
            await dialog.get_by_role("combobox", name="App").select_option("app02")
            async with page.expect_response(re.compile("hours=6")):
                span = dialog.get_by_role("combobox", name="Curves of the last")
                await span.select_option("6 hours")
            await expect(slider(page, "of app02")).to_be_visible()
            asked = server.calls[-1].parameters
    assert 'ds_app="app02"' in asked["query"]
    assert float(asked["end"]) - float(asked["start"]) == 6 * 3600


async def test_without_a_prometheus_curves_say_what_to_set(
    service: Service, open_page: Open
) -> None:
    await registered(service.hub, {PERFORMANCE: 0})
    page = await open_page(f"{service.url}/#scorers")
    await expect(page.get_by_role("alert")).to_contain_text("--prometheus-url")
    await expect(page.get_by_text("Active, scores on 0 of 2 clusters")).to_be_visible()
    await page.goto(f"{service.url}/#scores")
    await page.get_by_role("rowheader", name="worker01").click()
    await page.get_by_text(f"{PERFORMANCE}: mean 50").click()
    await page.get_by_role("dialog").get_by_role("button", name="Over time").click()
    await expect(page.get_by_role("alert")).to_contain_text("--prometheus-url")


async def test_scorers_are_compared_and_the_worst_comes_first(open_page: Open) -> None:
    hub = await scenario_hub()
    await registered(hub, {"a-good": 2, "b-late": 2, PERFORMANCE: 2, "y-half": 1, "z-new": 0})
    good, late, own = (f"score_name={name}" for name in ("a_good", "b-late", PERFORMANCE))
    rounds = "dynamic_scoring_last_success"
    curves: Curves = {
        (rounds, good, "of=age"): [30, -5],
        (rounds, good, "of=failed"): [0, 0],
        (rounds, good, "of=skill"): [0.4, 0.5],
        (rounds, late, "of=age"): [30, 90_000],
        (rounds, late, "of=failed"): [0.1, 0.6],
        ("quantile by (score_name)", good, "of=median"): [1, 5],
        ("topk by", late, "cluster=worker02"): [42],
        ("quantile by (ds_app", "ds_app=app01", "of=p50"): [5, 6],
        ("quantile by (ds_app", "ds_app=app01", "of=p10"): [1, 2],
        ("quantile by (ds_app", "ds_app=app01", "of=p90"): [8, 9],
        (rounds, own, "of=latency"): [0.25],
    }
    async with serving(prometheus(curves)) as server:
        settings = OptimizerSettings(prometheus_url=server.url)
        async with serving_hub(hub, Optimizer(hub, settings, now=utc_now)) as service:
            page = await open_page(f"{service.url}/#scorers")
            panels = page.get_by_role("article")
            await expect(panels).to_have_count(5)
            await expect(panels.nth(0)).to_contain_text("scores on 0 of 2 clusters")
            await expect(panels.nth(0)).to_contain_text("Prometheus has nothing of this scorer")
            await expect(panels.nth(1)).to_contain_text("scores on 1 of 2 clusters")
            await expect(panels.nth(2)).to_contain_text("60%")
            await expect(panels.nth(2)).to_contain_text("25h")
            await expect(panels.nth(2).get_by_role("row", name="worker02")).to_contain_text("42")
            await page.get_by_role("combobox", name="Order").select_option("latency")
            await expect(panels.nth(0)).to_contain_text("250 ms")
            await page.get_by_role("combobox", name="Order").select_option("least skill")
            await expect(panels.nth(0)).to_contain_text("5s ahead")
            await expect(
                panels.nth(0).get_by_role("img", name="Skill: 40% to 50%, last 50%.")
            ).to_be_visible()
            assert "order=least+skill" in page.url
            own_panel = panels.filter(has_text="250 ms")
            await own_panel.get_by_role("button", name="Over time").click()
            curve = slider(page, "over all clusters: 5 to 6, last 6.")
            told = re.compile(r"app01 6 \(p10 2, p90 9\)$")
            await expect(curve).to_have_attribute("aria-valuetext", told)
            assert await violations(page) == []
            await page.get_by_role("link", name="Scores", exact=True).click()
            await page.get_by_role("combobox", name="App").select_option("app02")
            await page.get_by_role("button", name="Over time").click()
            await expect(slider(page, "of app02 over all clusters")).to_be_visible()
            assert 'ds_app="app02"' in server.calls[-1].parameters["query"]
