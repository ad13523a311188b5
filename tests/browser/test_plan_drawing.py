"""A plan before and after in one drawing: by hand, step by step, and as a file that asks nobody."""

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, Route, expect

from dsf.kube.clock import utc_now
from dsf.kube.kinds import MANAGED_CLUSTER
from optimizer.api.page_picture import page_of_plan
from optimizer.api.page_route import PAGE
from optimizer.follow.overview.fleet_matrix import FleetMatrix, MatrixCluster
from optimizer.plan.gpu_changes import PlannedGpus
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import (
    ClusterGpus,
    GpuLayout,
    GpuSlice,
    GpusOnCluster,
    OccupiedDevice,
    WorkloadMove,
    WorkloadPlace,
)
from tests.browser.conftest import Open
from tests.browser.test_accessibility import violations
from tests.browser.test_hostile_text import HEBREW, HOSTILE, looked_at
from tests.mcp_server.service import PERFORMANCE, POWER, Service, generated
from tests.mcp_server.service import request as request_of
from tests.optimizer.build import request
from tests.optimizer.hubs import hub_of

DEVICE = "3g.48gb"


async def whatif(page: Page) -> None:
    await page.get_by_role("link", name="What if").click()


async def test_a_cluster_is_lost_by_keyboard_and_comes_back(
    service: Service, open_page: Open
) -> None:
    page = await open_page(service.url)
    await whatif(page)
    await page.get_by_role("application").focus()
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    choice = page.get_by_role("group", name="What if, for worker02")
    await expect(choice.get_by_role("button", name="… were lost")).to_be_focused()
    await page.keyboard.press("Enter")
    table = page.get_by_role("table", name="Workloads before and after")
    await expect(table).to_contain_text("worker01")
    await expect(table).not_to_contain_text("worker02")
    await page.get_by_role("button", name="worker02: remove").click()
    await expect(table).to_contain_text("worker02")
    assert await generated(service.hub) == []


async def test_a_cluster_like_another_one_is_added_by_a_click(
    service: Service, open_page: Open
) -> None:
    page = await open_page(service.url)
    await whatif(page)
    await page.get_by_role("application").click(position={"x": 40, "y": 20})
    choice = page.get_by_role("group", name="What if, for worker01")
    await choice.get_by_role("button", name="… had one more like it").click()
    await expect(page.get_by_text("This plan pretends facts")).to_be_visible()
    added = page.get_by_role("button", name="worker01-like-2: remove")
    await expect(added).to_be_visible()
    await added.click()
    await page.get_by_role("application").click(position={"x": 40, "y": 20})
    await choice.get_by_label("How many GPUs it has").fill("8")
    await choice.get_by_label("Model of its GPUs").fill("gh200")
    await choice.get_by_role("button", name="… had one more like it").click()
    anew = page.get_by_role("table", name="Policies that change").get_by_role("row").last
    await expect(anew).to_contain_text("worker01-like-2nonemig-worker01-like-2-")
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-PCIe", "nvidia.com/gpu.count": "2"}
    await service.hub.patch(MANAGED_CLUSTER, "worker01", {"metadata": {"labels": labels}})
    await page.reload()
    await expect(added).to_have_text("worker01-like-2, with 8 \u00d7 gh200 \u00d7")
    await added.click()
    clusters = page.get_by_role("group", name="Clusters")
    await clusters.get_by_label("Model of its GPUs").fill("H1000")
    await clusters.get_by_label("one more like").fill("worker01")
    await clusters.get_by_label("one more like").press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("no GPU model is named H1000")
    await expect(added).to_have_text("worker01-like-2, with 2 \u00d7 H1000 \u00d7")


async def test_gpus_that_a_plan_divides_anew_are_told_and_drawn(
    service: Service, open_page: Open
) -> None:
    optimizer = Optimizer(service.hub, now=utc_now)
    made = await optimizer.plan(OptimizeRequest(**request_of(PERFORMANCE)))
    assert isinstance(made, Plan)
    await optimizer.apply(made)
    page = await open_page(service.url)
    await whatif(page)
    await page.get_by_label(f"Weight of {PERFORMANCE}").fill("0")
    await page.get_by_label(f"Weight of {POWER}").fill("1")
    anew = page.get_by_role("table", name="GPUs that are divided anew").get_by_role("row").last
    cells = ["H100-96GB", "2 \u00d7 3g.48gb", "3 \u00d7 2g.24gb", "2", "worker01, worker02"]
    await expect(anew.get_by_role("cell").or_(anew.get_by_role("rowheader"))).to_have_text(cells)
    for side, device in (("Planned", "2g.24gb"), ("Now", "3g.48gb")):
        await page.get_by_role("button", name=side, exact=True).click()
        await page.get_by_role("application").focus()
        for _ in range(2):
            await page.keyboard.press(".")
        await expect(page.locator(".told")).to_contain_text(f"{device}: ")
        await expect(page.locator(".told")).to_contain_text("runs mwrs-app0")


async def without_age(figures: Locator) -> str:
    """Return the text of a plan's figures without the age, which goes on while a test runs."""
    return re.sub(r"planned \d+\w+ ago", "planned", await figures.inner_text())


async def test_a_weight_is_dragged_and_the_last_plan_stays_until_the_next_one(
    service: Service, open_page: Open
) -> None:
    page = await open_page(service.url)
    await whatif(page)
    dragged = page.get_by_label(f"How much {POWER} counts")
    await dragged.focus()
    await page.keyboard.press("End")
    figures = page.get_by_label("What the plan does")
    await expect(figures).to_contain_text("→")
    held = asyncio.Event()

    async def hold(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route("**/plan", hold)
    before = await without_age(figures)
    await page.keyboard.press("Home")
    await expect(page.get_by_text("What you see answers the wish before")).to_be_visible()
    assert await without_age(figures) == before
    await expect(page.get_by_role("button", name="Apply…")).to_have_count(0)
    held.set()
    await expect(page.get_by_text("What you see answers")).to_have_count(0)
    await expect(page.get_by_role("button", name="Apply…")).to_be_visible()
    assert await without_age(figures) != before


async def test_a_stepwise_plan_is_stepped_through(service: Service, open_page: Open) -> None:
    page = await open_page(service.url)
    await whatif(page)
    await page.get_by_label("Apply it step by step").check()
    steps = page.get_by_role("region", name="Fleet before and after")
    said = steps.get_by_role("status").first
    await expect(said).to_contain_text("Planned: 2 places started")
    await steps.get_by_role("button", name="Back").click()
    await expect(said).to_contain_text("After step 1 of 2: policies changed on 2 clusters")
    await page.wait_for_url("**step=1")
    await page.reload()
    await expect(said).to_contain_text("After step 1 of 2: policies changed on 2 clusters")
    await steps.get_by_label("Step of the plan").press("Home")
    await expect(said).to_contain_text("Now")
    await steps.get_by_role("button", name="Play").click()
    await expect(said).to_contain_text("Planned")
    await page.get_by_label(f"Weight of {PERFORMANCE}").fill("2")
    await expect(page.get_by_role("button", name="Apply…")).to_be_visible()


def place(cluster: str) -> WorkloadPlace:
    return WorkloadPlace(cluster=cluster, device=DEVICE, scores={"power": 3.0})


def moving(names: list[str], suffix: str) -> tuple[WorkloadMove, ...]:
    """Each workload goes to the next cluster; the last one is placed for the first time."""
    pairs = zip(names, [*names[1:], names[0]], strict=True)
    return tuple(
        WorkloadMove(
            workload=f"w{number}{suffix}",
            action="moves" if number < len(names) - 1 else "starts",
            before=(place(old),) if number < len(names) - 1 else (),
            after=(place(new),),
            gain={},
        )
        for number, (old, new) in enumerate(pairs)
    )


def fleet_of(names: list[str], suffix: str) -> FleetMatrix:
    half = {"device": DEVICE, "memory": 4, "compute": 3}
    halves = (GpuSlice(start=0, **half), GpuSlice(start=4, **half))
    return FleetMatrix(
        observed_at=datetime(2026, 1, 1, tzinfo=UTC),
        namespace="default",
        clusters=tuple(
            MatrixCluster(
                name=name,
                eligible=True,
                health="Available",
                hardware={},
                gpus=(ClusterGpus(model="H100", layout=0, count=2, known="Inventory"),),
                occupied=(OccupiedDevice(device=DEVICE, workload=f"w{number}{suffix}", amount=1),),
                labels={"region": f"r{number % 5}{suffix}"},
            )
            for number, name in enumerate(names)
        ),
        layouts=(GpuLayout(slices=halves, memory=8, compute=7),),
        scores=(),
        workloads=(),
        policies=(),
        scorers=(),
        findings=(),
        omitted={},
    )


def gpus_after(fleet: FleetMatrix, moves: tuple[WorkloadMove, ...]) -> PlannedGpus:
    """The GPUs of a plan that divides none anew."""
    running = {place.cluster: move.workload for move in moves for place in move.after}
    told = (
        GpusOnCluster(
            cluster=cluster.name,
            before=cluster.gpus,
            gpus=cluster.gpus,
            occupied=(OccupiedDevice(device=DEVICE, workload=running[cluster.name], amount=1),),
        )
        for cluster in fleet.clusters
    )
    return PlannedGpus(fleet.layouts, tuple(told))


@pytest.fixture(scope="module")
def planned() -> Plan:
    async def plan() -> object:
        return await Optimizer(await hub_of(), now=utc_now).plan(request("performance"))

    made = asyncio.run(plan())
    assert isinstance(made, Plan)
    return made


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("count", "suffix", "width"), [(2, HOSTILE, 1200), (40, "", 320), (1000, "", 1200)]
)
async def test_a_file_draws_a_plan_and_asks_nobody(
    open_page: Open, planned: Plan, tmp_path: Path, count: int, suffix: str, width: int, scheme: str
) -> None:
    names = [f"c{number}{suffix}" for number in range(count)]
    fleet, moves = fleet_of(names, suffix), moving(names, suffix)
    gpus = gpus_after(fleet, moves)
    plan = replace(planned, moves=moves, enforcement_changes=(), gpus=gpus)
    file = tmp_path / "plan.html"
    file.write_text(page_of_plan(PAGE.read_text(), plan, fleet))
    viewport = {"width": width, "height": 800}
    page = await open_page(f"file://{file}", viewport=viewport, color_scheme=scheme)
    await expect(page).to_have_title(f"Plan {plan.digest[:12]} for namespace default")
    figures = page.get_by_label("What the plan does")
    await expect(figures).to_contain_text(f"move{count - 1}")
    await expect(figures).to_contain_text("placed for the first time1")
    await expect(page.get_by_role("button", name="Apply…")).to_have_count(0)
    await page.evaluate("document.querySelectorAll('details').forEach(item => item.open = true)")
    await expect(page.get_by_role("table", name="Places by group")).to_be_visible()
    await page.get_by_label("Group by").select_option("region")
    await page.get_by_role("button", name="Now", exact=True).click()
    await page.get_by_role("application").focus()
    await page.keyboard.press("End")
    await expect(page.locator(".told")).to_contain_text(f"c{count - 1}")
    assert await violations(page) == []
    if suffix:
        await looked_at(page, "picture", HEBREW)
    assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


async def test_a_plan_that_does_not_tell_all_gpus_says_so(
    open_page: Open, planned: Plan, tmp_path: Path
) -> None:
    names = ["c0", "c1", "c2"]
    fleet, moves = fleet_of(names, ""), moving(names, "")
    told = gpus_after(fleet, moves)
    some = PlannedGpus(told.layouts, told.clusters[:2])
    plan = replace(planned, moves=moves, enforcement_changes=(), gpus=some)
    file = tmp_path / "plan.html"
    file.write_text(page_of_plan(PAGE.read_text(), plan, fleet))
    page = await open_page(f"file://{file}")
    await expect(page.get_by_text("tells the GPUs of 2 of 3 clusters that it")).to_be_visible()


async def test_the_worst_of_a_long_plan_comes_first(
    open_page: Open, planned: Plan, tmp_path: Path
) -> None:
    names = [f"c{number}" for number in range(50)]
    here = (place("c2"),)
    worst = (
        WorkloadMove(workload="y1", action="stays", before=here, after=here, gain={}),
        WorkloadMove(workload="y2", action="waits", before=(), after=(), gain={}),
        WorkloadMove(workload="y3", action="shrinks", before=here, after=here, gain={}),
        WorkloadMove(workload="y4", action="stops", before=here, after=(), gain={}),
    )
    moves = moving(names, "")
    plan = replace(planned, moves=moves + worst, enforcement_changes=())
    file = tmp_path / "plan.html"
    file.write_text(page_of_plan(PAGE.read_text(), plan, fleet_of(names, "")))
    page = await open_page(f"file://{file}")
    rows = page.get_by_role("table", name="Workloads before and after").get_by_role("rowheader")
    await expect(rows).to_have_count(40)
    assert (await rows.all_inner_texts())[:5] == ["y4", "y3", "y2", "w0", "w1"]
    await page.get_by_role("button", name="Show all 54 workloads").click()
    await expect(rows).to_have_count(54)
    assert (await rows.all_inner_texts())[-2:] == ["w49", "y1"]
