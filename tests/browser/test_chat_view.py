"""The page as an MCP App in the frame of a chat: fleet, plan before and after, approval.

The chat is a host built from the extension's own AppBridge. It frames the page without an origin
and under the policy that the extension prescribes.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, FrameLocator, Route, expect

from dsf.kube import kinds
from tests.browser.chat_host import build_chat_host, chat_url
from tests.browser.conftest import SECONDS
from tests.browser.test_plans import apply
from tests.mcp_server.service import PERFORMANCE, POWER, Service, generated, serving

OpenChat = Callable[..., Awaitable[FrameLocator]]
"""Calls a tool in a chat with a service, and returns the frame that the chat shows for it.

Requests to the server with the text `lost` get no answer.
"""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def host(tmp_path_factory: pytest.TempPathFactory) -> str:
    return await asyncio.to_thread(build_chat_host, tmp_path_factory.mktemp("chat"))


@pytest_asyncio.fixture(loop_scope="session")
async def chat(browser: Browser, host: str) -> Any:
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    async def opened(
        service: Service, tool: str, options: str = "", lost: str = "", **given: Any
    ) -> FrameLocator:
        context = await browser.new_context()
        context.set_default_timeout(SECONDS * 1000)
        contexts.append(context)
        page = await context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: line.type == "error" and wrong.append(line.text))

        async def served(route: Route) -> None:
            await route.fulfill(body=host, content_type="text/html")

        async def passed(route: Route) -> None:
            gone = lost and lost in (route.request.post_data or "")
            await (route.abort() if gone else route.continue_())

        await page.route("**/chat*", served)
        await page.route("**/mcp", passed)
        await page.goto(chat_url(service.url, tool, given, options))
        return page.frame_locator("iframe")

    yield opened
    for context in contexts:
        await context.close()
    assert [line for line in wrong if "Failed to load resource" not in line] == []


@pytest.mark.parametrize("options", ["theme=dark", "legacy"])
async def test_the_overview_opens_the_fleet(service: Service, chat: OpenChat, options: str) -> None:
    view = await chat(service, "fleet_overview", options)
    await expect(view.get_by_role("region", name="Is anything wrong?")).to_be_visible()
    await expect(view.get_by_text("Nothing moves.")).to_be_visible()
    await view.get_by_role("link", name="Scores").click()
    await expect(view.get_by_role("rowheader", name="worker02")).to_be_visible()
    await view.get_by_role("link", name="Workloads").click()
    await expect(view.get_by_role("row", name="mwrs-app01")).to_be_visible()
    theme = "dark" if options == "theme=dark" else "light"
    await expect(view.locator("html")).to_have_attribute("data-theme", theme)


async def test_a_plan_of_the_assistant_is_approved_in_the_chat(
    service: Service, chat: OpenChat
) -> None:
    view = await chat(service, "plan_placement", objective="performance")
    table = view.get_by_role("table", name="Workloads before and after")
    await expect(table).to_contain_text("3g.48gb")
    await view.get_by_role("button", name="Apply…").click()
    dialog = view.get_by_role("dialog", name="Apply this plan?")
    await expect(dialog).to_contain_text("create Placement default/app01-placement")
    assert await generated(service.hub) == []
    await dialog.get_by_role("button", name="Apply").click()
    await expect(view.get_by_text("Applied as default-1")).to_be_visible()
    assert "app01-placement" in await generated(service.hub)


@pytest.mark.parametrize("change", ["weight", "steps"])
async def test_what_if_plans_below_a_plan_of_the_assistant_once_something_is_changed(
    service: Service, chat: OpenChat, change: str
) -> None:
    view = await chat(service, "plan_placement", objective="performance")
    tables = view.get_by_role("table", name="Workloads before and after")
    await expect(tables).to_have_count(1)
    # Longer than the page waits for a next change, and than a plan of two workloads takes.
    await asyncio.sleep(3)
    await expect(tables).to_have_count(1)
    if change == "weight":
        await view.get_by_label(f"Weight of {POWER}").fill("1")
    else:
        await view.get_by_label("Apply it step by step").check()
    await expect(tables).to_have_count(2)


async def test_a_plan_is_made_in_the_view(service: Service, chat: OpenChat) -> None:
    view = await chat(service, "fleet_overview")
    await view.get_by_role("link", name="What if").click()
    await view.get_by_label(f"Weight of {PERFORMANCE}").fill("1")
    await view.get_by_role("button", name="Plan", exact=True).click()
    await expect(view.get_by_text("Workloads before and after")).to_be_visible()
    assert await generated(service.hub) == []
    await view.get_by_role("button", name="Apply…").click()
    await view.get_by_role("dialog").get_by_role("button", name="Apply").click()
    await expect(view.get_by_text("Applied as default-1")).to_be_visible()
    await view.get_by_role("link", name="Plans").click()
    newest = view.get_by_role("listitem").filter(has_text="default 1").first
    await expect(newest).to_contain_text("mwrs-app01")
    await view.get_by_role("link", name="Workloads").click()
    row = view.get_by_role("table").get_by_role("row", name="mwrs-app01")
    await row.get_by_role("button", name="Why here?").click()
    dialog = view.get_by_role("dialog", name="Why is mwrs-app01 there?")
    await expect(dialog).to_contain_text("policy-enable-mig-3g-worker0")


async def test_a_plan_is_restored_in_the_chat(service: Service, chat: OpenChat) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, POWER)
    view = await chat(service, "fleet_overview")
    await view.get_by_role("link", name="Plans").click()
    oldest = view.get_by_role("listitem").filter(has_text="default 1").last
    await oldest.get_by_role("button", name="Restore this plan…").click()
    dialog = view.get_by_role("dialog", name="Restore plan default 1?")
    await dialog.get_by_role("button", name="Apply").click()
    await expect(view.get_by_text("It restored plan 1.")).to_be_visible()


async def test_a_rollout_is_paused_in_the_chat(service: Service, chat: OpenChat) -> None:
    await apply(service, PERFORMANCE)
    await apply(service, POWER, rollout="Stepwise")
    view = await chat(service, "fleet_overview")
    await view.get_by_role("link", name="Rollouts").click()
    await view.get_by_role("button", name="pause…").click()
    dialog = view.get_by_role("dialog", name="pause the rollout of default?")
    await dialog.get_by_role("button", name="pause").click()
    await expect(view.get_by_text("Paused")).to_be_visible()
    await expect(view.get_by_role("button", name="resume…")).to_be_visible()


async def test_a_plan_that_the_hub_outran_is_refused_in_the_chat(
    service: Service, chat: OpenChat
) -> None:
    view = await chat(service, "plan_placement", objective="performance")
    await view.get_by_role("button", name="Apply…").click()
    taint = {"key": "gpu.example/broken", "value": "", "effect": "NoSelect"}
    await service.hub.patch(kinds.MANAGED_CLUSTER, "worker01", {"spec": {"taints": [taint]}})
    await view.get_by_role("dialog").get_by_role("button", name="Apply").click()
    await expect(view.get_by_role("alert")).to_contain_text("The optimizer refused")
    assert await generated(service.hub) == []


async def test_a_read_only_server_says_how_plans_are_applied(chat: OpenChat) -> None:
    async with serving(read_only=True) as service:
        view = await chat(service, "plan_placement", objective="performance")
        await expect(view.get_by_text("start it with --allow-writes")).to_be_visible()
        await expect(view.get_by_role("button", name="Apply…")).to_have_count(0)


async def test_a_plan_that_pretends_facts_is_shown_and_not_applied(
    service: Service, chat: OpenChat
) -> None:
    what_if = {"add": [{"name": "worker03", "like": "worker02"}]}
    view = await chat(service, "plan_placement", objective="performance", what_if=what_if)
    await expect(view.get_by_text("This plan pretends facts")).to_be_visible()
    table = view.get_by_role("table", name="Workloads before and after")
    await expect(table).to_contain_text("mwrs-app01")


async def test_a_server_that_is_gone_is_said(service: Service, chat: OpenChat) -> None:
    view = await chat(service, "fleet_overview", lost="page_data")
    await expect(view.get_by_role("alert")).to_contain_text("The chat does not answer")


async def test_a_plan_that_the_server_no_longer_has_is_shown_as_it_was_told(
    service: Service, chat: OpenChat
) -> None:
    view = await chat(service, "plan_placement", lost="shownPlan", objective="performance")
    table = view.get_by_role("table", name="Workloads before and after")
    await expect(table).to_contain_text("3g.48gb")
    await expect(view.get_by_text("What you see was read before")).to_be_visible()
    await expect(view.get_by_role("button", name="Apply…")).to_have_count(0)
