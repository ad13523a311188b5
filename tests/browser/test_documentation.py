"""The documentation of the API in a browser: it works under the policy that is served with it."""

from playwright.async_api import expect

from tests.browser.conftest import Open
from tests.mcp_server.service import Service


async def test_the_operations_are_shown(service: Service, open_page: Open) -> None:
    page = await open_page(f"{service.url}/")
    await page.goto(f"{service.url}/docs")
    await expect(page.get_by_text("/optimize", exact=True)).to_be_visible()
