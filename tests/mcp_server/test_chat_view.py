"""The view in a chat: which clients are told of it, and what its page is answered."""

from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.apps.config import UI_EXTENSION_ID
from fastmcp.exceptions import ToolError
from fastmcp.server.providers import LocalProvider
from fastmcp.utilities.mime import UI_MIME_TYPE
from mcp.client import advertise
from mcp.shared.exceptions import MCPError

from dsf.kube.clock import utc_now
from mcp_server.server import create_mcp
from mcp_server.tools.chat_view import URI, add_chat_view
from optimizer.service.optimizer import Optimizer
from tests.mcp_server.service import PERFORMANCE, POWER, scenario_hub, serving
from tests.mcp_server.tool_names import READS, WRITES

HOST = [advertise(UI_EXTENSION_ID, {"mimeTypes": [UI_MIME_TYPE]})]


async def _server(*, read_only: bool = False) -> FastMCP:
    hub, now = await scenario_hub(), utc_now()
    optimizer = Optimizer(hub, now=lambda: now)
    return create_mcp(lambda: optimizer, read_only=read_only)


async def _listed(server: Any, **options: Any) -> dict[str, Any]:
    async with Client(server, **options) as client:
        tools = await client.list_tools()
    return {tool.name: tool.model_dump(mode="json", by_alias=True) for tool in tools}


async def _asked(client: Client[Any], **question: Any) -> Any:
    result = await client.call_tool("page_data", {"question": question})
    return result.structured_content


async def test_only_clients_that_show_views_are_told_of_the_view() -> None:
    server = await _server()
    plain, host = await _listed(server), await _listed(server, extensions=HOST)
    assert tuple(plain) == READS + WRITES
    assert not any(tool["_meta"] for tool in plain.values())
    assert host.pop("page_data")["_meta"]["ui"]["visibility"] == ["app"]
    linked = {name for name, tool in host.items() if (tool["_meta"] or {}).get("ui")}
    assert linked == {"fleet_overview", "plan_placement"}
    for name, tool in host.items():
        assert {**tool, "_meta": None} == {**plain[name], "_meta": None}


async def test_a_host_whose_capabilities_came_with_another_request_is_told_all() -> None:
    async with serving() as service:
        listed = await _listed(service.mcp, mode="legacy", extensions=HOST)
        assert await _listed(service.mcp, mode="auto", extensions=HOST) == listed
        assert "page_data" not in await _listed(service.mcp, mode="auto")
    assert listed["plan_placement"]["_meta"]["ui"]["resourceUri"] == URI


async def test_results_are_the_same_with_and_without_the_extension() -> None:
    server = await _server()
    async with Client(server) as plain, Client(server, extensions=HOST) as host:
        calls = [("fleet_overview", {}), ("plan_placement", {"objective": "power"})]
        for name, given in calls:
            one, other = await plain.call_tool(name, given), await host.call_tool(name, given)
            assert one.content == other.content
            assert one.structured_content == other.structured_content


async def test_the_page_names_no_other_origin() -> None:
    server = FastMCP("page")
    provider = LocalProvider()
    add_chat_view(provider)
    server.add_provider(provider)
    async with Client(server) as client:
        [listed] = await client.list_resources()
        [page] = await client.read_resource(URI)
    for said in (listed, page):
        assert said.mime_type == UI_MIME_TYPE
        assert (said.meta or {})["ui"]["csp"] == {}


async def test_a_page_that_was_not_built_says_what_to_do(tmp_path: Path) -> None:
    server = FastMCP("page")
    provider = LocalProvider()
    add_chat_view(provider, tmp_path / "index.html")
    server.add_provider(provider)
    async with Client(server) as client:
        with pytest.raises(MCPError, match="run `make page`"):
            await client.read_resource(URI)


async def test_an_unchanged_fleet_is_not_sent_again() -> None:
    async with Client(await _server(), extensions=HOST) as client:
        first = await _asked(client, of="fleet")
        assert [item["name"] for item in first["answer"]["clusters"]] == ["worker01", "worker02"]
        again = await _asked(client, of="fleet", tag=first["tag"])
        assert again == {"answer": None, "tag": first["tag"], "read_only": False}


async def test_what_the_page_plans_is_what_apply_plan_applies_and_restores() -> None:
    async with Client(await _server(), extensions=HOST) as client:
        for score in (PERFORMANCE, POWER):
            wish = {"objective": {score: 1}}
            plan = (await _asked(client, of="plan", request=wish))["answer"]
            shown = await _asked(client, of="shownPlan", digest=plan["digest"])
            assert shown["answer"]["changes"] == plan["changes"]
            await client.call_tool("apply_plan", {"digest": plan["digest"]})
        where = {"namespace": "default"}
        listed = (await _asked(client, of="list_plans", **where))["answer"]["items"]
        first, second = listed[::-1]
        assert (first["revision"], second["revision"]) == (1, 2)
        record = (await _asked(client, of="show_plan", digest=first["digest"], **where))["answer"]
        asked = {**record["request"], "explain": True}
        told = (await _asked(client, of="explanation", request=asked))["answer"]
        assert told["explanation"]["places"]
        wanted = {"namespace": "default", "toRevision": 1}
        back = (await _asked(client, of="rollback", request=wanted))["answer"]
        applied = await client.call_tool("apply_plan", {"digest": back["digest"]})
        assert applied.structured_content["record"] == "default-3"
        assert (await _asked(client, of="list_rollouts", **where))["answer"]["items"] == []


async def test_a_plan_that_pretends_facts_has_no_request() -> None:
    what_if = {"add": [{"name": "worker03", "like": "worker02"}]}
    wish = {"objective": {PERFORMANCE: 1}, "whatIf": what_if}
    async with Client(await _server(read_only=True), extensions=HOST) as client:
        said = await _asked(client, of="plan", request=wish)
    assert said["answer"]["request"] is None
    assert said["read_only"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"of": "nothing"}, "question"),
        ({"of": "fleet", "namespce": "a"}, "namespce"),
        ({"of": "shownPlan", "digest": "0"}, "no plan with digest"),
        ({"of": "show_plan", "namespace": "default", "digest": "0"}, "no plan that is kept"),
        ({"of": "plan", "request": {"objective": {"beauty": 1}}}, "beauty"),
        ({"of": "explanation", "request": {"clusters": []}}, "preference"),
        ({"of": "rollback", "request": {"namespace": "default"}}, "recorded"),
    ],
)
async def test_a_wrong_question_is_refused_in_words(question: Any, said: str) -> None:
    async with Client(await _server(), extensions=HOST) as client:
        with pytest.raises(ToolError, match=said):
            await _asked(client, **question)
