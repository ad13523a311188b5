"""What drawing a fleet on the page costs: a frame of panning, of zooming, and an update.

.build/browser/bin/python -m benchmarks.page_drawing (`make benchmark-page`)

Chromium counts the seconds in which it ran scripts, computed styles and laid out; the clock of a
busy machine does not count. A frame has 16 ms.
"""

import asyncio
from collections.abc import Awaitable, Callable

from playwright.async_api import Browser, Page, async_playwright

from dsf.kube.kinds import MANAGED_CLUSTER
from optimizer.api.operation_routes import matrix_document
from tests.browser.chromium import chromium
from tests.browser.invented_fleet import invented_fleet, show_fleet
from tests.mcp_server.service import serving

SIZES = (40, 1_000, 5_000)
FRAMES = 60

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
        changed = matrix_document(invented_fleet(clusters, seed=2)).body

        async def update() -> None:
            body = {"spec": {"taints": [{"key": "changed", "effect": "NoSelect"}]}}
            async with page.expect_response("**/fleet?*") as answered:
                await service.hub.patch(MANAGED_CLUSTER, "worker01", body)
            await (await answered.value).finished()
            await page.evaluate(_FRAMES.replace("FRAME", ""), 3)

        await page.route("**/fleet?*", lambda route: route.fulfill(body=changed))
        print(f"{'':15} {await _cost(page, update):.1f} ms an update in which all changes")
        await page.close()


async def _cost(page: Page, work: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds of the browser's work."""
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable")

    async def counted() -> float:
        metrics = (await session.send("Performance.getMetrics"))["metrics"]
        return 1000.0 * float(sum(item["value"] for item in metrics if item["name"] in _COUNTED))

    before = await counted()
    await work()
    return await counted() - before


if __name__ == "__main__":
    asyncio.run(main())
