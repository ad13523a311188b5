"""The look of the page, compared with stored pictures so coarse that fonts of machines don't count.

`DSF_PICTURES=write` stores them anew: look at each before you commit it.
"""

import base64
import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from dsf.kube.clock import utc_now
from tests.browser.conftest import Open
from tests.browser.invented_fleet import invented_fleet, show_fleet
from tests.browser.test_plans import planned
from tests.mcp_server.service import POWER, Service
from tests.optimizer.build import NOW

PICTURES = Path(__file__).with_name("pictures")

WIDTH, HEIGHT = 96, 64
"""Pixels of a stored picture; each is the mean of 12 by 12 or so of the page."""

DIFFERENT = 48
"""By how much of 255 some channel of a pixel differs that counts: other fonts change less."""

TOLERATED = 0.03
"""The part of the pixels that may be different. A panel that is missing is a tenth of them."""

_COARSE = """async ([url, width, height]) => {
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = new OffscreenCanvas(width, height);
  const pen = canvas.getContext("2d");
  pen.imageSmoothingQuality = "high";
  pen.drawImage(image, 0, 0, width, height);
  const bytes = new Uint8Array(await (await canvas.convertToBlob()).arrayBuffer());
  const { data } = pen.getImageData(0, 0, width, height);
  return { png: btoa(String.fromCharCode(...bytes)), channels: [...data] };
}"""


async def coarse(page: Page, png: bytes) -> tuple[bytes, list[int]]:
    """Return a coarse picture as PNG, and its channels: four of each pixel."""
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    made = await page.evaluate(_COARSE, [url, WIDTH, HEIGHT])
    return base64.b64decode(made["png"]), made["channels"]


async def difference(page: Page, name: str, *, store: bool = True) -> float:
    """Return the part of the pixels that are not as in the picture, which `store` may renew."""
    stored = PICTURES / f"{name}.png"
    picture, channels = await coarse(page, await page.screenshot())
    if store and os.environ.get("DSF_PICTURES") == "write":
        stored.write_bytes(picture)
    _, expected = await coarse(page, stored.read_bytes())
    gaps = [abs(one - other) for one, other in zip(channels, expected, strict=True)]
    pixels = [max(gaps[at : at + 4]) for at in range(0, len(gaps), 4)]
    return sum(gap > DIFFERENT for gap in pixels) / len(pixels)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("clusters", [2, 40])
async def test_a_fleet_looks_as_it_did(
    service: Service, open_page: Open, clusters: int, scheme: str
) -> None:
    page = await open_page(service.url, **_look(scheme))
    await page.clock.set_fixed_time(NOW)
    await show_fleet(page, invented_fleet(clusters, now=NOW))
    await expect(page.get_by_role("banner")).to_contain_text(f"{clusters} clusters")
    await expect(page.get_by_text("Reading…")).to_have_count(0)
    assert await difference(page, f"fleet-{clusters}-{scheme}") <= TOLERATED
    await page.evaluate("document.querySelector('.panels').style.display = 'block'")
    changed = await difference(page, f"fleet-{clusters}-{scheme}", store=False)
    assert changed > TOLERATED, "it can fail"


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_plan_looks_as_it_did(service: Service, open_page: Open, scheme: str) -> None:
    page = await open_page(service.url, **_look(scheme))
    await page.clock.set_fixed_time(utc_now())
    await planned(page, {POWER: "1"})
    await page.evaluate("document.querySelector('[aria-label=Plan]').scrollIntoView()")
    assert await difference(page, f"plan-{scheme}") <= TOLERATED


def _look(scheme: str) -> dict[str, object]:
    size = {"width": 1200, "height": 800}
    return {"color_scheme": scheme, "viewport": size, "reduced_motion": "reduce"}
