"""What drawing a fleet on the page costs: a frame of panning, of zooming, and an update.

.build/browser/bin/python -m benchmarks.page_drawing (`make benchmark-page`)

Chromium counts the processor time in which it ran scripts, computed styles and laid out, so other
work of the machine does not count. Of an update all that the main thread does counts, from reading
the answer to painting. A frame has 16 ms, and an update UPDATE_MS.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from playwright.async_api import Browser, Page, async_playwright

from dsf.kube.kinds import MANAGED_CLUSTER
from optimizer.api.operation_routes import matrix_document
from tests.browser.chromium import chromium
from tests.browser.invented_fleet import invented_fleet, show_fleet
from tests.mcp_server.service import Service, serving

SIZES = (40, 1_000, 5_000)
FRAMES = 60
UPDATES = 4

UPDATE_MS = 200.0
"""What an update may cost: below, people notice no pause."""

_FRAMES = """async (count) => {
  const box = document.querySelector(".drawing-box");
  for (let at = 0; at < count; at += 1) {
    FRAME
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  }
}"""

_PAN = """box.scrollTop = (at * 97) % Math.max(1, box.scrollHeight - box.clientHeight);
box.dispatchEvent(new Event("scroll"));"""

_POINT = """const {left, top, width, height} = box.getBoundingClientRect();
box.dispatchEvent(new PointerEvent("pointermove", {bubbles: true,
  clientX: left + (at * 37) % width, clientY: top + (at * 23) % height}));"""

_TELLS = """text => [...document.querySelectorAll("[role=status]")].some(
  (at) => at.textContent.includes(text))"""

_COUNTED = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration")


async def main() -> None:
    """Print the milliseconds of each."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox"]
        )
        for size in SIZES:
            await _measure(browser, size)
        await browser.close()


async def _measure(browser: Browser, clusters: int) -> None:
    async with serving() as service:
        page = await browser.new_page(viewport={"width": 1600, "height": 900})
        await page.goto(service.url)
        await show_fleet(page, invented_fleet(clusters))
        await page.get_by_role("application").wait_for()
        larger, smaller = (page.get_by_role("button", name=at) for at in ("Larger", "Smaller"))

        async def zoom() -> None:
            for _ in range(10):
                await larger.click()
            for _ in range(10):
                await smaller.click()

        print(f"{clusters:5} clusters:", f"{await _cost(page, zoom) / 20:6.1f} ms a zoom")
        frames = {"panning": _PAN, "pointing": _POINT}
        for detail, steps in (("all of it", 0), ("nearer", 6), ("names", 6), ("labels", 6)):
            for _ in range(steps):
                await larger.click()
            costs = {
                name: await _cost(
                    page, lambda frame=frame: page.evaluate(_FRAMES.replace("FRAME", frame), FRAMES)
                )
                for name, frame in frames.items()
            }
            told = ", ".join(f"{cost / FRAMES:5.1f} ms {name}" for name, cost in costs.items())
            print(f"{'':15} {detail}: {told}")
        colour = page.get_by_role("region", name="Drawing of the fleet").get_by_label("Colour")

        async def recolour() -> None:
            for value in ("score", "state", "workload"):
                await colour.select_option(value)

        print(f"{'':15} {await _cost(page, recolour) / 3:.1f} ms another colour")
        await _updates(page, service, clusters)
        await page.close()


async def _updates(page: Page, service: Service, clusters: int) -> None:
    fleets = [invented_fleet(clusters, seed=seed) for seed in (1, 2)]
    answers = [matrix_document(fleet).body for fleet in fleets]
    turn = 0
    await page.route("**/fleet?*", lambda route: route.fulfill(body=answers[turn % 2]))

    async def update() -> None:
        nonlocal turn
        for turn in range(1, UPDATES + 1):
            body = {"spec": {"taints": [{"key": f"changed-{turn}", "effect": "NoSelect"}]}}
            await service.hub.patch(MANAGED_CLUSTER, "worker01", body)
            gpus = sum(item.count for one in fleets[turn % 2].clusters for item in one.gpus)
            told = f"{clusters} clusters, {gpus} GPUs"
            await page.wait_for_function(_TELLS, arg=told, polling=100)
            await page.evaluate(_FRAMES.replace("FRAME", ""), 3)

    for name, metrics in (("", ("TaskDuration",)), ("scripts of ", _COUNTED)):
        cost = await _cost(page, update, metrics) / UPDATES
        told = f"{cost:.1f} ms {name}an update in which all changes, {cost / UPDATE_MS:.0%} of"
        print(f"{'':15} {told} {UPDATE_MS:g} ms")


async def _cost(
    page: Page, work: Callable[[], Awaitable[object]], counts: Sequence[str] = _COUNTED
) -> float:
    """Milliseconds of the browser's work."""
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})

    async def counted() -> float:
        metrics = (await session.send("Performance.getMetrics"))["metrics"]
        return 1000.0 * float(sum(item["value"] for item in metrics if item["name"] in counts))

    before = await counted()
    await work()
    return await counted() - before


if __name__ == "__main__":
    asyncio.run(main())
