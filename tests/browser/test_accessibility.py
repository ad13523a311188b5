"""Every view has no violation that axe-core knows, in light and dark, wide and narrow."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from optimizer.plan.plan import Plan
from optimizer.wire.request import OptimizeRequest
from tests.browser.conftest import Open
from tests.mcp_server.service import Service, request
from tests.repository import ROOT

AXE = ROOT / "optimizer" / "page" / "node_modules" / "axe-core" / "axe.min.js"

PHONE = {"width": 360, "height": 740}

_READY = {
    "Fleet": "How fresh are scores?",
    "Scores": "2 of 2 clusters",
    "Workloads": "Workloads of namespace default",
    "Findings": "Next:",
    "What if": "How much each score counts",
    "Plans": "What it moved",
    "Rollouts": "No plan is applied step by step",
    "Kept by itself": "Nothing is kept placed by itself",
    "Scorers": "DynamicScorer",
}
"""By view, a text that is there when the view is."""


async def violations(page: Page) -> list[str]:
    """What axe-core finds wrong, and where."""
    await page.evaluate(AXE.read_text())
    found: dict[str, Any] = await page.evaluate("axe.run()")
    return [
        f"{item['id']} {node['html']} {node['failureSummary']}"
        for item in found["violations"]
        for node in item["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [{"width": 1200, "height": 800}, PHONE], ids=["wide", "phone"])
async def test_no_view_violates_a_rule(
    service: Service, open_page: Open, scheme: str, viewport: dict[str, int]
) -> None:
    plan = await service.optimizer.plan(OptimizeRequest(**request()))
    assert isinstance(plan, Plan)
    await service.optimizer.apply(plan)
    page = await open_page(service.url, color_scheme=scheme, viewport=viewport)
    for view, text in _READY.items():
        await page.get_by_role("link", name=view, exact=True).click()
        await expect(page.get_by_text(text).first).to_be_visible()
        assert await violations(page) == []
        overflow = "document.documentElement.scrollWidth - innerWidth"
        assert await page.evaluate(overflow) <= 0


async def test_a_dialog_violates_no_rule(service: Service, open_page: Open) -> None:
    page = await open_page(f"{service.url}/#scores")
    await page.get_by_role("rowheader", name="worker01").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.get_by_text("example-performance-score: mean 50").click()
    assert await violations(page) == []
