"""Writes the pictures of the page in docs/images from what the demo leaves on its hub."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.browser.chromium import chromium
from tests.repository import ROOT

IMAGES = ROOT / "docs" / "images"

_SIZE = {"width": 1000, "height": 560}

_DEMO = ("demo", "--keep", "--port", "0")

_ADDRESS = re.compile(r"the API docs: (http://\S+)/docs")


def main() -> None:
    """Draw the fleet, and a plan that saves power."""
    IMAGES.mkdir(exist_ok=True)
    with _demo() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        _fleet(browser, url)
        _plan(browser, url)
        browser.close()


def _fleet(browser: Browser, url: str) -> None:
    page = browser.new_page(viewport=_SIZE)
    page.goto(url)
    page.get_by_role("combobox", name="Score").select_option("example-throughput-score")
    page.screenshot(path=IMAGES / "page-fleet.png")


def _plan(browser: Browser, url: str) -> None:
    page = browser.new_page(viewport={**_SIZE, "height": 860}, color_scheme="dark")
    page.goto(f"{url}/#whatif")
    for score, weight in (("performance", "0"), ("powerconsumption", "1")):
        page.get_by_label(f"Weight of example-{score}-score").fill(weight)
    page.get_by_role("button", name="Plan", exact=True).click()
    page.get_by_text("Workloads before and after").wait_for()
    page.screenshot(path=IMAGES / "page-what-if.png")


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
