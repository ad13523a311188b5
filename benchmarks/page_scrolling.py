"""What scrolling the page's grid of scores costs in a large fleet, compared with a small one.

.build/browser/bin/python -m benchmarks.page_scrolling (`make benchmark-page`)

Each step scrolls by a screen, so all visible rows change. Chromium counts the seconds in which it
ran scripts, computed styles and laid out; the clock of a busy machine does not count.
"""

import asyncio

from playwright.async_api import Browser, async_playwright

from dsf.kube.clock import utc_now
from optimizer.service.optimizer import Optimizer
from tests.browser.chromium import chromium
from tests.browser.large_fleet import large_fleet
from tests.mcp_server.service import serving_hub

SIZES = (100, 1_000, 5_000)
STEPS = 100

_SCROLL = """async (steps) => {
  const grid = document.querySelector("[role=grid]");
  for (let step = 0; step < steps; step += 1) {
    grid.scrollTop = (step * grid.clientHeight) % (grid.scrollHeight - grid.clientHeight);
    await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
  }
}"""

_COUNTED = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration")


async def main() -> None:
    """Print the milliseconds of a step and the ratio to the smallest fleet."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox"]
        )
        costs = {size: await _cost(browser, size) for size in SIZES}
        await browser.close()
    for size, seconds in costs.items():
        print(
            f"{size:5} clusters: {1000 * seconds:6.2f} ms a step, {seconds / costs[SIZES[0]]:.2f} x"
        )


async def _cost(browser: Browser, clusters: int) -> float:
    """Seconds of work for one step."""
    hub = await large_fleet(clusters)
    async with serving_hub(hub, Optimizer(hub, now=utc_now)) as service:
        page = await browser.new_page()
        await page.goto(f"{service.url}/#scores")
        await page.get_by_text(f"{clusters} of {clusters} clusters").wait_for()
        session = await page.context.new_cdp_session(page)
        await session.send("Performance.enable")

        async def counted() -> float:
            metrics = (await session.send("Performance.getMetrics"))["metrics"]
            return sum(item["value"] for item in metrics if item["name"] in _COUNTED)

        before = await counted()
        await page.evaluate(_SCROLL, STEPS)
        spent = await counted() - before
        await page.close()
    return spent / STEPS


if __name__ == "__main__":
    asyncio.run(main())
