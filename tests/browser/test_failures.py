"""What the page says when the hub goes away, a token expires, or a right is missing."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page, expect

from dsf.kube.clock import utc_now
from dsf.kube.errors import Unreachable
from optimizer.operations.access.authorized_optimizer import Access
from optimizer.operations.access.delegated_auth import DelegatedAuth
from optimizer.operations.access.rights import fleet_rights
from optimizer.service.optimizer import Optimizer
from tests.browser.conftest import Open
from tests.kube_wrappers.fault_injection import Fault, Faulty, unwatchable
from tests.kube_wrappers.reviewing_hub import AccessTable
from tests.mcp_server.service import PERFORMANCE, Service, generated, scenario_hub, serving_hub
from tests.optimizer.operations.access.callers import READER, TOKENS


async def test_a_hub_that_goes_away_is_named_and_the_fleet_stays(open_page: Open) -> None:
    gone: list[Fault] = []
    hub = await scenario_hub()
    faulty = Faulty(hub, lambda _: gone[0] if gone else None)
    optimizer = Optimizer(faulty, now=utc_now, watching=unwatchable(hub))
    async with serving_hub(hub, optimizer) as service:
        page = await open_page(f"{service.url}/#scores")
        await expect(page.get_by_role("rowheader", name="worker01")).to_be_visible()
        gone.append(Fault(Unreachable("connection refused")))
        alert = page.get_by_role("alert")
        await expect(alert).to_contain_text("connection refused")
        await expect(alert).to_contain_text("asks again by itself")
        await expect(page.get_by_role("rowheader", name="worker01")).to_be_visible()
        gone.clear()
        await expect(alert).to_have_count(0)


async def test_the_page_says_how_old_is_what_it_shows(service: Service, open_page: Open) -> None:
    page = await open_page(service.url)
    await page.clock.install()
    await page.reload()
    await expect(page.get_by_text(re.compile(r"workloads, fleet read \d+s ago$"))).to_be_visible()
    await page.context.set_offline(True)
    await page.clock.run_for(180_000)
    await expect(page.get_by_role("alert")).to_contain_text("does not answer")
    await expect(page.get_by_text("fleet read 3m ago")).to_be_visible()
    await page.context.set_offline(False)
    await page.clock.run_for(10_000)
    await expect(page.get_by_text(re.compile(r"fleet read \d+s ago"))).to_be_visible()


@asynccontextmanager
async def guarded(*, read_only: bool = False) -> AsyncIterator[Service]:
    """A service that asks for tokens; the embedded hub knows those of `callers`."""
    rights = {READER.name: [*fleet_rights("default")]}
    hub = await scenario_hub(AccessTable(TOKENS, rights))
    optimizer, access = Optimizer(hub, now=utc_now), Access(DelegatedAuth(hub))
    async with serving_hub(hub, optimizer, access=access, read_only=read_only) as service:
        yield service


async def enter(page: Page, token: str) -> None:
    await page.get_by_label("Bearer token of the hub").fill(token)
    await page.get_by_role("button", name="Use").click()


async def test_a_token_is_asked_for_and_an_expired_one_refused(open_page: Open) -> None:
    async with guarded() as service:
        page = await open_page(f"{service.url}/#scores")
        await enter(page, "token-of-yesterday")
        await expect(page.get_by_role("alert")).to_contain_text("still valid")
        assert await page.get_by_role("rowheader").count() == 0
        await enter(page, "token-of-reader")
        await expect(page.get_by_role("rowheader", name="worker01")).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_count(0)
        stored = "JSON.stringify([localStorage, sessionStorage, document.cookie])"
        assert "token-of-reader" not in await page.evaluate(stored)


async def test_a_caller_without_rights_is_told_which_one_is_missing(open_page: Open) -> None:
    async with guarded() as service:
        page = await open_page(service.url)
        await enter(page, "token-of-stranger")
        await expect(page.get_by_role("alert")).to_contain_text("addonplacementscores")


async def test_who_may_not_write_is_refused_at_the_second_click(open_page: Open) -> None:
    async with guarded() as service:
        page = await open_page(service.url)
        await enter(page, "token-of-reader")
        await page.get_by_role("link", name="What if").click()
        await page.get_by_label(f"Weight of {PERFORMANCE}").fill("1")
        await page.get_by_role("button", name="Plan", exact=True).click()
        await page.get_by_role("button", name="Apply…").click()
        await page.get_by_role("dialog").get_by_role("button", name="Apply").click()
        await expect(page.get_by_role("alert")).to_contain_text("create")
        assert await generated(service.hub) == []
