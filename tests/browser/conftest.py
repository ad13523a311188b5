"""The page in a headless Chromium, served by the real service on an embedded hub."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.browser.chromium import chromium
from tests.mcp_server.service import Service, serving

SECONDS = 30.0
"""How long the page may take on a busy machine. Nothing is judged by it: it only ends a failure."""

Open = Callable[..., Awaitable[Page]]
"""Opens a path of a service in a window of its own, and waits for nothing."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let all tests share one event loop, because they share one browser."""
    for item in items:
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    expect.set_options(timeout=SECONDS * 1000)
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox"]
        )
        yield started
        await started.close()


@pytest_asyncio.fixture(loop_scope="session")
async def service() -> AsyncIterator[Service]:
    async with serving(read_only=False) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: Browser) -> AsyncIterator[Open]:
    """Opens pages; at the end no script failed, no policy was violated, nothing else was asked."""
    wrong: list[str] = []
    contexts: list[BrowserContext] = []

    async def opened(url: str, **options: object) -> Page:
        context = await browser.new_context(**options)  # type: ignore[arg-type]
        context.set_default_timeout(SECONDS * 1000)
        contexts.append(context)
        page = await context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: _note(wrong, line.type, line.text))
        page.on("request", lambda request: _note_elsewhere(wrong, request.url, url))
        await page.goto(url)
        return page

    yield opened
    for context in contexts:
        await context.close()
    assert not wrong


def _note(wrong: list[str], kind: str, text: str) -> None:
    """Keep errors of scripts; those of requests are what some tests provoke."""
    if kind == "error" and "Failed to load resource" not in text:
        wrong.append(text)


def _note_elsewhere(wrong: list[str], asked: str, page: str) -> None:
    """Keep requests to another origin: a hub may have no internet."""
    if not asked.startswith((page.partition("#")[0], "data:")):
        wrong.append(f"asked {asked}")
