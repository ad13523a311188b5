"""The drawn fleet: sizes, hover and keyboard, colours, groups, search, table, PNG, bad input."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from optimizer.follow.overview.fleet_matrix import (
    ClusterObstacle,
    FleetMatrix,
    MatrixFinding,
    WorkloadOnCluster,
)
from tests.browser.conftest import Open
from tests.browser.invented_fleet import invented_fleet, show_fleet
from tests.browser.test_accessibility import violations
from tests.mcp_server.service import Service

NARROW, WIDE = {"width": 320, "height": 700}, {"width": 1600, "height": 900}

CANVAS = ".drawing-box canvas"
_COLOURS = """canvas => {
  const {width, height} = canvas;
  const {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
  return new Set(new Uint32Array(data.buffer)).size }"""

_LOST = """async canvas => {
  await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const pen = canvas.getContext("2d");
  const read = (name) => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(${name})`;
    const channels = getComputedStyle(probe).color.match(/[0-9]+/g).slice(0, 3).map(Number);
    probe.remove();
    return channels };
  const light = (channels) => channels
    .map((one) => one / 255)
    .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0.05);
  const [lost, tile] = [read("--lost"), read("--tile")];
  const [dark, bright] = [light(lost), light(tile)].sort((one, other) => one - other);
  const {data} = pen.getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) {
    if (lost.every((one, channel) => one === data[at + channel])) found += 1;
  }
  return {pixels: found, contrast: bright / dark} }"""
"""How many pixels have the fill of lost clusters, and its contrast to a tile by WCAG 2.2."""


async def drawn(service: Service, open_page: Open, fleet: FleetMatrix, **options: Any) -> Page:
    page = await open_page(service.url, **{"viewport": WIDE, **options})
    await show_fleet(page, fleet)
    await expect(drawing(page)).to_be_visible()
    return page


def drawing(page: Page) -> Locator:
    return page.get_by_role("application", name="The fleet")


def told(page: Page) -> Locator:
    """The box that describes what is under the pointer or has the focus."""
    return page.get_by_role("status").filter(has_text=re.compile("slices? free|no GPU is known"))


async def choose(page: Page, **choices: str) -> None:
    region = page.get_by_role("region", name="Drawing of the fleet")
    for label, value in choices.items():
        await region.get_by_role("combobox", name=label, exact=True).select_option(label=value)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("clusters", [2, 40, 1_000, 5_000])
async def test_a_fleet_of_any_size_is_drawn_within_the_window(
    service: Service, open_page: Open, clusters: int, viewport: dict[str, int], scheme: Any
) -> None:
    fleet = invented_fleet(clusters)
    page = await drawn(service, open_page, fleet, viewport=viewport, color_scheme=scheme)
    gpus = sum(item.count for cluster in fleet.clusters for item in cluster.gpus)
    await expect(page.get_by_text(f"{clusters} clusters, {gpus} GPUs").first).to_be_visible()
    assert await page.locator(CANVAS).evaluate(_COLOURS) > 8
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert await page.locator(CANVAS).evaluate("at => at.width == at.clientWidth")
    if clusters == 40:
        assert await violations(page) == []


async def test_the_pointer_is_told_cluster_gpu_slice_and_workload(
    service: Service, open_page: Open
) -> None:
    fleet = invented_fleet(2)
    page = await drawn(service, open_page, fleet, device_scale_factor=2)
    await page.locator(CANVAS).hover(position={"x": 60, "y": 60})
    [first, *_] = sorted(item.name for item in fleet.clusters)
    for text in (first, "GPU 1 of ", "memory slices", "runs w", "slices free", "profile table"):
        await expect(told(page)).to_contain_text(text)
    assert await page.locator(CANVAS).evaluate("at => at.width == 2 * at.clientWidth")
    await page.locator(CANVAS).click(position={"x": 60, "y": 60})
    await expect(page.get_by_role("dialog", name=first)).to_be_visible()


async def test_the_keyboard_alone_reaches_each_slice_zooms_and_opens(
    service: Service, open_page: Open
) -> None:
    page = await drawn(service, open_page, invented_fleet(40))
    names = await names_in_order(page)
    await drawing(page).focus()
    await expect(told(page)).to_contain_text(names[0])
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press(".")
    await expect(told(page)).to_contain_text(f"{names[1]}GPU 1 of")
    await page.keyboard.press("Control+-")
    await expect(page.get_by_role("button", name="Fit")).to_be_disabled()
    for key, text in (("+", "compute slices"), ("-", "0%")):
        for _ in range(20):
            await page.keyboard.press(key)
        await expect(page.locator(".legend").filter(has_text=text)).to_be_visible()
    await page.keyboard.press("End")
    await expect(told(page)).to_contain_text(names[-1])
    await page.keyboard.press("0")
    await expect(page.get_by_role("button", name="Fit")).to_be_disabled()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog", name=names[-1])).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(drawing(page)).to_be_focused()


async def names_in_order(page: Page) -> list[str]:
    """The names of the clusters, as the table has them."""
    button = page.get_by_role("button", name="As a table")
    await button.click()
    table = page.get_by_role("table", name="Clusters with their GPUs")
    found = await table.get_by_role("rowheader").all_inner_texts()
    await button.click()
    return found


async def test_what_ocm_is_at_work_on_is_not_drawn_as_wrong(
    service: Service, open_page: Open
) -> None:
    def running(state: str) -> WorkloadOnCluster:
        return WorkloadOnCluster(workload=state, state=state, message=f"is {state}")

    def finding(state: str, severity: str) -> MatrixFinding:
        said = {"reason": state, "message": "not landed", "next": "wait", "names": (state,)}
        about = {"stage": "workload", "name": state, "severity": severity}
        return MatrixFinding.model_validate(said | about)

    fleet = invented_fleet(2)
    clusters = (
        item.model_copy(update={"running": (running(state),)})
        for item, state in zip(fleet.clusters, ("Planned", "Refused"), strict=True)
    )
    found = (finding("Planned", "info"), finding("Refused", "error"))
    fleet = fleet.model_copy(update={"clusters": tuple(clusters), "findings": found})
    page = await drawn(service, open_page, fleet)
    await page.get_by_role("button", name="As a table").click()
    for cluster, state in zip(fleet.clusters, ("ready", "Refused: is Refused"), strict=True):
        row = page.get_by_role("row").filter(has=page.get_by_role("button", name=cluster.name))
        await expect(row.get_by_role("cell", name=state)).to_be_visible()


async def test_the_wheel_zooms_with_ctrl_and_keeps_the_cluster_below_the_pointer(
    service: Service, open_page: Open
) -> None:
    page = await drawn(service, open_page, invented_fleet(1_000))
    await page.locator(CANVAS).hover(position={"x": 700, "y": 300})
    await expect(told(page)).to_be_visible()
    name = (await told(page).inner_text()).partition("\n")[0]
    await page.keyboard.down("Control")
    await page.mouse.wheel(0, -360)
    await page.keyboard.up("Control")
    await expect(page.locator(".legend").filter(has_text="Pods of others")).to_be_visible()
    seen = set[str]()
    for x in range(20, 1_400, 40):
        await page.locator(CANVAS).hover(position={"x": x, "y": 300})
        seen |= {text.partition("\n")[0] for text in await told(page).all_inner_texts()}
    assert name in seen


async def test_clusters_are_sorted_by_an_apps_score_and_missing_ones_come_last(
    service: Service, open_page: Open
) -> None:
    fleet = invented_fleet(40)
    page = await drawn(service, open_page, fleet)
    await choose(page, Colour="score", Score="power", Sort="score, best first")
    await choose(page, App="app10")
    await expect(page.locator(".legend")).to_contain_text("power of app10: ")
    power = next(item for item in fleet.scores if item.name == "power")
    columns = [column for column in power.columns if column.app == "app10"]
    best = dict[str, float]()
    for row, cluster in enumerate(fleet.clusters):
        slices = [part for item in cluster.gpus for part in fleet.layouts[item.layout].slices]
        devices = {part.device for part in slices}
        values = {column.device: column.values[row] for column in columns}
        known = [at for of, at in values.items() if at is not None and of in devices]
        best[cluster.name] = min(known, default=101)
    names = await names_in_order(page)
    assert [best[name] for name in names] == sorted(best.values())
    assert best[names[-1]] == 101


async def test_equal_scores_are_told_as_such(service: Service, open_page: Open) -> None:
    page = await drawn(service, open_page, invented_fleet(12, values=(5,)))
    await choose(page, Colour="score")
    await expect(page.locator(".legend")).to_contain_text("of app1: 5 everywhere")


async def test_the_table_has_what_is_drawn_in_groups_and_finds_a_workload(
    service: Service, open_page: Open
) -> None:
    fleet = invented_fleet(40)
    page = await drawn(service, open_page, fleet)
    await choose(page, Group="region")
    held = {item.workload for cluster in fleet.clusters for item in cluster.occupied}
    wanted = max(held)
    having = [c for c in fleet.clusters if any(wanted == item.workload for item in c.occupied)]
    await page.get_by_role("searchbox", name="Highlight").fill(wanted)
    await expect(page.get_by_text(re.compile(r"\d clusters? found"))).to_be_visible()
    await expect(page).to_have_url(re.compile(f"find={wanted}"))
    await page.get_by_role("button", name="As a table").click()
    table = page.get_by_role("table", name="Clusters with their GPUs")
    for cluster in having:
        row = table.get_by_role("row").filter(
            has=page.get_by_role("button", name=cluster.name, exact=True)
        )
        slices = sum(item.count * len(fleet.layouts[item.layout].slices) for item in cluster.gpus)
        free = slices - sum(item.amount for item in cluster.occupied)
        await expect(row).to_contain_text(f"{free:g} of {slices}")
        await expect(row).to_contain_text(cluster.labels["region"])
    assert await violations(page) == []


@pytest.mark.parametrize("address", ["region", "label:region"])
async def test_an_address_draws_groups_that_say_what_is_idle_and_free_by_model(
    service: Service, open_page: Open, address: str
) -> None:
    fleet = invented_fleet(40)
    page = await drawn(service, open_page, fleet)
    pixels = "canvas => canvas.toDataURL()"
    whole = await page.locator(CANVAS).first.evaluate(pixels)
    await choose(page, Group="region")
    grouped = await page.locator(CANVAS).first.evaluate(pixels)
    assert grouped != whole
    await page.goto(f"{service.url}/#fleet?group={address}")
    await show_fleet(page, fleet)
    await expect(drawing(page)).to_be_visible()
    assert await page.locator(CANVAS).first.evaluate(pixels) == grouped
    await page.get_by_role("button", name="As a table").click()
    here = [item for item in fleet.clusters if item.labels.get("region") == "eu-north-1"]
    head = page.get_by_role("listitem").filter(has_text=f"eu-north-1 {len(here)} clusters: ")
    await expect(head).to_contain_text(re.compile(r"A30-24GB: [\d.]+ reserved, [\d.]+ free · "))


async def test_a_group_says_how_many_of_its_clusters_its_sums_are_of(
    service: Service, open_page: Open
) -> None:
    fleet = invented_fleet(40)
    here = [item.name for item in fleet.clusters if item.labels.get("region") == "eu-north-1"]
    gone = next(row for row, item in enumerate(fleet.clusters) if item.name == here[0])
    assert fleet.capacity is not None
    capacity = fleet.capacity.model_copy(update={"expired": (gone,)})
    page = await drawn(service, open_page, fleet.model_copy(update={"capacity": capacity}))
    await choose(page, Group="region")
    await page.get_by_role("button", name="As a table").click()
    told = f"eu-north-1 {len(here) - 1} of {len(here)} clusters: "
    await expect(page.get_by_role("listitem").filter(has_text=told)).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_what_is_free_on_a_lost_cluster_is_drawn_as_lost(
    service: Service, open_page: Open, scheme: Any
) -> None:
    fleet = invented_fleet(2)

    def obstacle(reason: str) -> FleetMatrix:
        found = (ClusterObstacle(reason=reason, message="no heartbeat"),)
        first = fleet.clusters[0].model_copy(update={"eligible": False, "obstacles": found})
        return fleet.model_copy(update={"clusters": (first, *fleet.clusters[1:])})

    page = await drawn(service, open_page, obstacle("ClusterLost"), color_scheme=scheme)
    legend = page.locator(".legend")
    seen = await page.locator(CANVAS).evaluate(_LOST)
    assert seen["contrast"] > 3
    assert seen["pixels"] > 1_000
    await expect(legend).to_contain_text("free, on a lost cluster")
    await choose(page, Colour="state")
    await expect(legend).to_contain_text("the cluster is lost")
    assert (await page.locator(CANVAS).evaluate(_LOST))["pixels"] > seen["pixels"]
    await choose(page, Colour="workload")
    for _ in range(20):
        await page.get_by_role("button", name="Smaller").click()
    await expect(legend.filter(has_text="on a lost cluster")).to_be_visible()
    assert (await page.locator(CANVAS).evaluate(_LOST))["pixels"] > 8
    await show_fleet(page, obstacle("ClusterTainted"))
    await expect(drawing(page)).to_be_visible()
    assert (await page.locator(CANVAS).evaluate(_LOST))["pixels"] < 9
    await expect(legend).not_to_contain_text("lost")


async def test_the_whole_drawing_is_saved_and_printed(
    service: Service, open_page: Open, tmp_path: Path
) -> None:
    page = await drawn(service, open_page, invented_fleet(40))
    canvas, seen = page.locator(CANVAS), "at => [at.width, at.height]"
    for _ in range(6):
        await page.get_by_role("button", name="Larger").click()
    width, height = await canvas.evaluate(seen)
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Save as PNG").click()
    await (await download.value).save_as(tmp_path / "fleet.png")
    saved = (tmp_path / "fleet.png").read_bytes()
    assert saved.startswith(b"\x89PNG")
    assert int.from_bytes(saved[16:20], "big") == 2 * width
    assert int.from_bytes(saved[20:24], "big") > 2 * height
    await page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert (await canvas.evaluate(seen))[1] > 2 * height
    await page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert await canvas.evaluate(seen) == [width, height]


async def test_long_names_many_slices_and_no_gpus_are_drawn(
    service: Service, open_page: Open
) -> None:
    names = ("x" * 253, "y" * 252 + "1", "a\u202eb")
    fleet = invented_fleet(12, names=names, gpus=(0, 64), values=(0,))
    page = await drawn(service, open_page, fleet, viewport=NARROW)
    for _ in range(20):
        await page.get_by_role("button", name="Larger").click()
    await drawing(page).focus()
    await page.keyboard.press("Home")
    await expect(told(page)).to_contain_text("a\\u202eb")
    await page.keyboard.press("End")
    await expect(told(page)).to_contain_text("y" * 252)
    box = await told(page).bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= NARROW["width"]
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await page.get_by_role("button", name="As a table").click()
    await expect(page.get_by_role("cell", name="none").first).to_be_visible()


async def test_each_of_64_slices_of_a_gpu_is_reached_and_told(
    service: Service, open_page: Open
) -> None:
    fleet = invented_fleet(2, gpus=(1,))
    layouts = tuple(
        layout.model_copy(
            update={
                "memory": 64,
                "compute": 64,
                "slices": tuple(
                    layout.slices[0].model_copy(
                        update={"start": at, "memory": 1, "compute": 1, "device": f"d{at + 1}"}
                    )
                    for at in range(64)
                ),
            }
        )
        for layout in fleet.layouts
    )
    clusters = tuple(item.model_copy(update={"occupied": ()}) for item in fleet.clusters)
    fleet = fleet.model_copy(update={"layouts": layouts, "clusters": clusters})
    page = await drawn(service, open_page, fleet, viewport=NARROW)
    await drawing(page).focus()
    for at in range(64):
        await page.keyboard.press(".")
        if at in (0, 1, 62, 63):
            await expect(told(page)).to_contain_text(f"d{at + 1}: 1 of 64 memory slices")
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    await page.get_by_role("button", name="As a table").click()
    gpus = sum(item.count for item in fleet.clusters[0].gpus)
    await expect(page.get_by_role("cell", name=f"{64 * gpus} of {64 * gpus}").first).to_be_visible()


@pytest.mark.parametrize("view", ["scores", "workloads", "findings", "whatif", "scorers"])
async def test_no_view_is_wider_than_a_small_phone_with_the_longest_names(
    service: Service, open_page: Open, view: str
) -> None:
    fleet = invented_fleet(3, names=("x" * 253, "y" * 253), values=(5,))
    page = await open_page(f"{service.url}/#{view}", viewport=NARROW)
    await show_fleet(page, fleet)
    await expect(page.get_by_role("main")).to_contain_text(re.compile(r"\w{3}"))
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
