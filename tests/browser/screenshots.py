"""Writes the pictures of the page in docs/images from a fleet of the demo, and an animation.

The fleet goes on while they are drawn, so pictures of two runs differ in what moves.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from tests.browser.chat_host import build_chat_host, chat_url
from tests.browser.chromium import chromium
from tests.repository import ROOT

IMAGES = ROOT / "docs" / "images"

_SIZE = {"width": 1440, "height": 900}

_DEMO = ("demo", "--fleet", "40", "--port", "0")

_FRAMES, _FRAME_SECONDS = 12, 4
"""Frames of the animation, and how far apart they are taken: three quarters of a minute."""

_ANIMATION = (960, 600)

_PATIENCE = 120_000
"""Milliseconds that a plan of 120 workloads may take on a busy machine."""

_CHAT = """
body { font: 15px system-ui; margin: 16px; background: #eceff3 }
body::before { content: "What would move if we saved power?"; display: block; margin: 0 0 12px auto;
  width: max-content; padding: 8px 14px; border-radius: 14px; background: #0b5cad; color: #fff }
iframe { width: 100%; height: 540px; border: 1px solid #c9d0da; border-radius: 10px;
  background: #fff }
"""
"""Looks of a chat around the view: a question, and a frame."""

_ADDRESS = re.compile(r"ready after .* open (http://\S+)/ ")


def main() -> None:
    """Draw the fleet, a plan that saves power, and the same plan in a chat."""
    IMAGES.mkdir(exist_ok=True)
    with _demo() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        _fleet(browser, url)
        _plan(browser, url)
        _chat(browser, url)
        browser.close()


def _fleet(browser: Browser, url: str) -> None:
    page = browser.new_page(viewport=_SIZE)
    page.goto(url)
    page.get_by_role("region", name="Is anything wrong?").wait_for()
    page.wait_for_timeout(2000)
    page.screenshot(path=IMAGES / "page-fleet.png")
    frames = []
    for _ in range(_FRAMES):
        frames.append(Image.open(BytesIO(page.screenshot())).convert("RGB").resize(_ANIMATION))
        page.wait_for_timeout(1000 * _FRAME_SECONDS)
    first, *others = frames
    path = IMAGES / "page-fleet.webp"
    first.save(path, save_all=True, append_images=others, duration=600, loop=0, quality=60)


def _plan(browser: Browser, url: str) -> None:
    page = browser.new_page(viewport=_SIZE, color_scheme="dark")
    page.set_default_timeout(_PATIENCE)
    page.goto(f"{url}/#whatif")
    for score, weight in (("throughput", "0"), ("latency", "0"), ("power", "1")):
        page.get_by_label(f"Weight of {score}").fill(weight)
    page.get_by_role("button", name="Plan", exact=True).click()
    page.get_by_text("Workloads before and after").wait_for()
    page.screenshot(path=IMAGES / "page-what-if.png")


def _chat(browser: Browser, url: str) -> None:
    page = browser.new_page(viewport={**_SIZE, "height": 620})
    page.set_default_timeout(_PATIENCE)
    with TemporaryDirectory() as folder:
        host = build_chat_host(Path(folder))
    page.route("**/chat*", lambda route: route.fulfill(body=host, content_type="text/html"))
    page.goto(chat_url(url, "plan_placement", {"objective": "power"}))
    page.add_style_tag(content=_CHAT)
    page.frame_locator("iframe").get_by_text("before and after").first.wait_for()
    page.screenshot(path=IMAGES / "chat-view.png")


@contextmanager
def _demo() -> Iterator[str]:
    """Run the demo to its end, and yield the address of its optimizer."""
    dsf = Path(sys.executable).with_name("dsf")
    with subprocess.Popen([dsf, *_DEMO], stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        try:
            yield next(found[1] for line in demo.stdout if (found := _ADDRESS.search(line)))
        finally:
            demo.terminate()


if __name__ == "__main__":
    main()
