"""The fleet on the page: matrix, details, keyboard, names with markup, thousands of clusters."""

import re
from datetime import timedelta
from typing import Any

import yaml
from playwright.async_api import Page, expect

from dsf.api.conditions import Condition, merged
from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from optimizer.service.optimizer import Optimizer
from tests.browser.conftest import Open
from tests.browser.large_fleet import large_fleet
from tests.browser.test_accessibility import violations
from tests.browser.test_plans import apply
from tests.mcp_server.service import PERFORMANCE, POWER, Service, put, serving_hub
from tests.optimizer.build import obj
from tests.optimizer.follow.overview.test_capacity import group, inventory
from tests.repository import ROOT

SCORERS = ROOT / "sample_scorers/static/manifests/dynamicscorer-per-cluster.yaml"
MARKUP = "<img src=x onerror=alert(1)>"


def cells(page: Page, cluster: str) -> Any:
    return page.get_by_role("row", name=cluster).get_by_role("gridcell")


async def test_clusters_are_rows_and_devices_columns(service: Service, open_page: Open) -> None:
    page = await open_page(f"{service.url}/#scores")
    await expect(page.get_by_role("columnheader", name="3g.48gb")).to_be_visible()
    values = ["1", "10", "60", "80", re.compile(r"^\d+s$"), "Ready", "none"]
    await expect(cells(page, "worker01")).to_have_text(values)
    await expect(page.get_by_role("columnheader", name="Policy")).to_have_count(0)
    await expect(page.get_by_text("no plan enforces a policy")).to_be_visible()


async def test_a_change_is_shown_as_the_stream_tells_of_it(
    service: Service, open_page: Open
) -> None:
    """The page polls where there is no stream; its timers stand still here."""
    page = await open_page(f"{service.url}/#scores")
    await expect(cells(page, "worker01").nth(1)).to_have_text("10")
    await page.evaluate("for (let id = 0; id < 1e4; id++) clearInterval(id)")
    status = {"status": {"scores": [{"name": "app01;2g.24gb", "value": 42}]}}
    await service.hub.patch(
        kinds.ADD_ON_PLACEMENT_SCORE, PERFORMANCE, status, "worker01", subresource="status"
    )
    await expect(cells(page, "worker01").nth(1)).to_have_text("42", timeout=60_000)


async def test_a_better_score_has_more_colour_and_direction_is_respected(
    service: Service, open_page: Open
) -> None:
    page = await open_page(f"{service.url}/#scores")
    worst, best = (cells(page, "worker01").nth(index) for index in (1, 3))
    await expect(worst).to_have_text("10")
    await expect(best).to_have_text("80")
    assert await strength(worst) == 0 < await strength(best)


async def test_where_lower_is_better_the_lowest_has_most_colour(
    service: Service, open_page: Open
) -> None:
    await register(service, meaning={"direction": "LowerIsBetter"})
    page = await open_page(f"{service.url}/#scores")
    best, worst = (cells(page, "worker01").nth(index) for index in (1, 3))
    await expect(page.get_by_text("Lower is better")).to_be_visible()
    assert await strength(worst) == 0 < await strength(best)


async def test_a_scorer_that_fails_on_a_cluster_says_where_and_why(
    service: Service, open_page: Open
) -> None:
    failing = {"name": "worker02", "reason": "NoResults", "message": "the API returned nothing"}
    counts = {"desired": 2, "distributed": 2, "scoring": 1, "failing": 1}
    await register(service, clusters=counts, failingClusters=[failing])
    page = await open_page(f"{service.url}/#scorers")
    await page.get_by_text("NoResults on worker02").click()
    await expect(page.get_by_text("worker02: The API returned nothing.")).to_be_visible()
    await expect(page.get_by_text("scores on 1 of 2 clusters")).to_be_visible()
    await page.get_by_role("link", name="Findings").click()
    findings = page.get_by_role("region", name="Findings")
    await expect(findings).to_contain_text("example-performance-scorer")
    await expect(findings).to_contain_text("Next: ")


async def test_a_finding_says_when_it_began(service: Service, open_page: Open) -> None:
    began = rfc3339(utc_now() - timedelta(hours=3, minutes=5))
    lost = Condition("ManagedClusterConditionAvailable", "Unknown", "Lost", "no heartbeat")
    status = {"status": {"conditions": merged([], [lost], now=began)}}
    await service.hub.patch(kinds.MANAGED_CLUSTER, "worker02", status, subresource="status")
    expired = {"status": {"validUntil": rfc3339(utc_now() - timedelta(hours=2))}}
    score = kinds.ADD_ON_PLACEMENT_SCORE
    await service.hub.patch(score, POWER, expired, "worker02", subresource="status")
    page = await open_page(service.url)
    wrong = page.get_by_role("region", name="Is anything wrong?")
    await expect(wrong.get_by_role("listitem").first).to_contain_text(
        "ClusterLost1 cluster, 1 score3h"
    )
    await expect(page.get_by_text("beside a name: the cluster is lost")).to_be_visible()
    await wrong.get_by_role("link", name="ClusterLost").click()
    findings = page.get_by_role("region", name="Findings")
    await expect(findings).to_contain_text("ClusterLost 1 cluster, the first 3h ago")
    await expect(findings).to_contain_text("kubectl describe managedcluster worker02")
    await expect(findings).to_contain_text("It began 3h ago.")
    await expect(findings.get_by_text("Because of it: 1 score")).to_be_visible()
    await expect(findings).to_contain_text(f"Score {POWER} has expired on 1 cluster: worker02")
    began_at = findings.get_by_title(re.compile("GMT$")).first
    await expect(began_at).to_have_attribute("datetime", re.compile(began[:17]))
    assert "`" not in await findings.inner_text()


async def test_a_workload_without_a_place_says_what_would_give_it_one(
    service: Service, open_page: Open
) -> None:
    many = {"metadata": {"labels": {"resource-request-amount": "9"}}}
    await service.hub.patch(kinds.MANIFEST_WORK_REPLICA_SET, "mwrs-app01", many, "default")
    await apply(service, PERFORMANCE)
    page = await open_page(f"{service.url}/#findings")
    findings = page.get_by_role("region", name="Findings")
    await expect(findings).to_contain_text("plan default-1 says why: it requests 9 gpu; the most")
    await findings.get_by_role("button", name="Why nowhere?").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Cheapest remedy: ")
    await page.go_back()
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await page.go_forward()
    await expect(page.get_by_role("dialog")).to_contain_text("Why is mwrs-app01 nowhere?")


async def register(service: Service, **status: Any) -> None:
    """Register the static sample's performance scorer with a status."""
    [scorer, *_] = yaml.safe_load_all(SCORERS.read_text())
    told = {"healthStatus": "Active", "scoreName": PERFORMANCE, **status}
    await put(service.hub, {**scorer, "status": told})


async def strength(cell: Any) -> int:
    """Percents of the tint in a cell's background."""
    style = str(await cell.get_attribute("style"))
    return int(style.partition("--good) ")[2].partition("%")[0])


async def test_another_score_and_one_app_can_be_chosen(service: Service, open_page: Open) -> None:
    page = await open_page(f"{service.url}/#scores")
    await page.get_by_role("combobox", name="Score").select_option(POWER)
    await page.get_by_role("combobox", name="App").select_option("app02")
    await expect(cells(page, "worker02")).to_have_text(
        ["2", "90", "55", "10", re.compile(r"^\d+s$"), "Ready", "none"]
    )


async def test_clusters_are_found_by_a_part_of_their_name(
    service: Service, open_page: Open
) -> None:
    page = await open_page(f"{service.url}/#scores")
    await page.get_by_role("searchbox", name="Find").fill("er02")
    await expect(page.get_by_text("1 of 2 clusters")).to_be_visible()
    grid = page.get_by_role("grid")
    await expect(grid.get_by_role("rowheader")).to_have_text(["worker02"])


async def test_the_keyboard_alone_opens_and_closes_a_cluster(
    service: Service, open_page: Open
) -> None:
    page = await open_page(f"{service.url}/#scores")
    grid = page.get_by_role("grid")
    await grid.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="worker02")
    await expect(dialog).to_contain_text("OCM may select it")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(grid).to_be_focused()


async def test_a_heading_sorts_by_keyboard_and_opens_no_cluster(
    service: Service, open_page: Open
) -> None:
    page = await open_page(f"{service.url}/#scores")
    heading = page.get_by_role("columnheader", name="3g.48gb")
    await heading.get_by_role("button").focus()
    await page.keyboard.press("Enter")
    await expect(heading).to_have_attribute("aria-sort", "descending")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_on_a_phone_scores_come_before_policies(service: Service, open_page: Open) -> None:
    page = await open_page(f"{service.url}/#scores", viewport={"width": 375, "height": 740})
    await expect(cells(page, "worker01").nth(1)).to_be_in_viewport(ratio=1)
    await expect(cells(page, "worker01").nth(5)).not_to_be_in_viewport()


async def test_a_heading_is_not_cut_off(service: Service, open_page: Open) -> None:
    page = await open_page(f"{service.url}/#scores")
    column = page.get_by_role("columnheader", name="3g.48gb")
    heading = column.get_by_role("button")
    assert await column.evaluate("at => at.scrollWidth <= at.clientWidth")
    assert await heading.evaluate("at => at.scrollWidth <= at.clientWidth")


async def test_a_cluster_that_ocm_can_not_select_says_why(
    service: Service, open_page: Open
) -> None:
    taint = {"key": "gpu.example/broken", "value": "", "effect": "NoSelect"}
    await service.hub.patch(kinds.MANAGED_CLUSTER, "worker01", {"spec": {"taints": [taint]}})
    page = await open_page(f"{service.url}/#scores")
    await page.get_by_role("rowheader", name="worker01").click()
    await expect(page.get_by_role("dialog")).to_contain_text("gpu.example/broken")


async def test_names_and_messages_of_others_are_text(service: Service, open_page: Open) -> None:
    score = {"scores": [{"name": f"{MARKUP};all", "value": 1}]}
    made = obj(kinds.ADD_ON_PLACEMENT_SCORE, "strange", namespace="worker01")
    await put(service.hub, {**made, "status": score})
    page = await open_page(f"{service.url}/#scores")
    await page.get_by_role("combobox", name="Score").select_option("strange")
    await expect(page.get_by_role("combobox", name="App")).to_contain_text(MARKUP)
    assert await page.locator("img").count() == 0


async def test_a_fleet_without_scores_says_so(open_page: Open) -> None:
    hub = EmbeddedHub()
    for name in ("lonely",):
        await hub.create(kinds.NAMESPACE, obj(kinds.NAMESPACE, name))
    await hub.create(kinds.MANAGED_CLUSTER, obj(kinds.MANAGED_CLUSTER, "lonely"))
    async with serving_hub(hub, Optimizer(hub, now=utc_now)) as service:
        page = await open_page(f"{service.url}/#scores")
        await expect(page.get_by_text("No scores yet.")).to_be_visible()
        await expect(page.get_by_role("rowheader", name="lonely")).to_be_visible()
        await page.get_by_role("link", name="Scorers").click()
        await expect(page.get_by_text("There is no DynamicScorer")).to_be_visible()


async def test_of_thousands_of_clusters_only_the_visible_ones_are_drawn(open_page: Open) -> None:
    clusters = 5_000
    hub = await large_fleet(clusters)
    async with serving_hub(hub, Optimizer(hub, now=utc_now)) as service:
        page = await open_page(f"{service.url}/#scores")
        await expect(page.get_by_text(f"{clusters} of {clusters} clusters")).to_be_visible()
        assert await page.get_by_role("rowheader").count() < 100
        await page.get_by_role("grid").focus()
        await page.keyboard.press("End")
        await expect(
            page.get_by_role("rowheader", name=f"cluster-{clusters - 100}")
        ).to_be_visible()
        assert await page.get_by_role("rowheader").count() < 100
        await page.keyboard.press("Home")
        await expect(cells(page, "cluster-0099").nth(1)).to_have_text("99")
        await expect(cells(page, "cluster-0099").first).to_have_text("1")


async def test_an_address_that_names_no_view_shows_the_first_one(
    service: Service, open_page: Open
) -> None:
    page = await open_page(f"{service.url}/#__proto__")
    await expect(page.get_by_role("region", name="Is anything wrong?")).to_be_visible()


async def test_the_address_shows_a_colleague_the_same_and_the_back_button_works(
    service: Service, open_page: Open
) -> None:
    page = await open_page(f"{service.url}/#scores")
    await page.get_by_role("link", name="Plans").click()
    await page.get_by_role("link", name="Scores").click()
    await page.get_by_role("rowheader", name="worker02").click()
    dialog = page.get_by_role("dialog", name="worker02")
    await expect(dialog).to_be_visible()
    colleague = await open_page(page.url)
    await expect(colleague.get_by_role("dialog", name="worker02")).to_be_visible()
    await page.go_back()
    await expect(dialog).to_have_count(0)
    await page.go_back()
    await expect(page.get_by_role("link", name="Plans")).to_have_attribute("aria-current", "page")
    await page.go_forward()
    await page.go_forward()
    await expect(dialog).to_be_visible()


async def test_capacity_is_told_of_the_fleet_and_of_a_cluster_with_its_age(
    service: Service, open_page: Open
) -> None:
    """A cluster without an inventory says so; a model is shown as text."""
    now = utc_now()
    used = group({"nvidia.com/gpu": "8", "memory": "1Ti"}, {"nvidia.com/gpu": "6"}, model=MARKUP)
    await put(service.hub, inventory("worker01", used, now=now))
    page = await open_page(service.url)
    fleet = page.get_by_role("region", name="Capacity")
    gpus = fleet.get_by_role("row", name="nvidia.com/gpu")
    await expect(gpus).to_contain_text(MARKUP)
    await expect(gpus).to_contain_text("2 of 8")
    await expect(gpus).to_contain_text("2 (worker01)")
    await expect(gpus.get_by_role("img", name="75% reserved")).to_be_visible()
    await expect(fleet.get_by_role("row", name="memory")).to_contain_text("1024Gi of 1024Gi")
    await page.get_by_role("link", name="Scores").click()
    await page.get_by_role("rowheader", name="worker01").click()
    details = page.get_by_role("dialog", name="worker01")
    await expect(details.get_by_role("table", name="Capacity, seen")).to_contain_text("2 of 8")
    assert not await violations(page)
    await page.keyboard.press("Escape")
    await page.get_by_role("rowheader", name="worker02").click()
    await expect(page.get_by_role("dialog")).to_contain_text("No NodeInventory tells")
