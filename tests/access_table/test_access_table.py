"""No operation is missing in the table, doors agree, and the committed page is what callers get."""

import asyncio
import re
from typing import Any

import pytest
from fastmcp import Client

from dsf.kube.embedded import EmbeddedHub
from mcp_server.app import create_service_app
from mcp_server.server import create_mcp
from mcp_server.tools.chat_view import QUESTIONS
from optimizer.service.optimizer import Optimizer
from tests.access_table import mcp_operations, rest_operations
from tests.access_table.callers import CALLERS
from tests.access_table.page import COMMAND, PATH, page
from tests.access_table.table import ROWS, asked
from tests.optimizer.build import NOW
from tests.repository import ROOT

HOST_API = ROOT / "optimizer/page/src/api/host-api.ts"
CELLS = len(ROWS) * len(CALLERS)


def optimizer() -> Optimizer:
    return Optimizer(EmbeddedHub(), now=lambda: NOW)


def test_each_path_of_the_server_has_rows() -> None:
    app = create_service_app(optimizer(), read_only=False)
    document = app.openapi()["paths"]
    documented = {f"{method.upper()} {path}" for path in document for method in document[path]}
    assert set(rest_operations.DOCUMENTED) == documented
    others = {route.path for route in app.routes if not getattr(route, "include_in_schema", False)}
    folder = rest_operations.FILES.rpartition("/")[0]
    assert others == {*rest_operations.OPEN, *rest_operations.MCP, folder}


async def test_each_method_tool_resource_and_prompt_of_mcp_has_rows() -> None:
    server = create_mcp(optimizer, read_only=False)
    handled: Any = server._mcp_server._request_handlers
    rows = mcp_operations.METHODS.keys() | set(mcp_operations.WITHOUT_ROWS)
    assert set(handled) | {"initialize"} == rows
    async with Client(server) as client:
        tools = {tool.name for tool in await client.list_tools()}
        resources = {str(item.uri) for item in await client.list_resources()}
        templates = {item.uri_template for item in await client.list_resource_templates()}
    assert tools == mcp_operations.TOOLS.keys()
    assert resources | templates == mcp_operations.RESOURCES.keys()


def test_the_page_in_a_chat_calls_tools_that_have_rows() -> None:
    """Those that the model sees, and one that it does not."""
    called = set(re.findall(r'(?:#call|#write)\("(\w+)"', HOST_API.read_text(encoding="utf-8")))
    assert called == {"page_data", "apply_plan", "approve_kept_plan", "change_rollout"}


def test_each_question_of_the_page_has_a_row() -> None:
    assert mcp_operations.PAGE.keys() == QUESTIONS.keys()
    paths = rest_operations.asked_by_the_page()
    assert {"/fleet", "/plan", "/rollouts/"} <= paths
    documented = tuple(name.split(" ")[1] for name in rest_operations.DOCUMENTED)
    assert all(any(name.startswith(path) for name in documented) for path in paths)


def test_rows_have_names_of_their_own_and_name_rows_of_rest() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))
    rest = {row.name for row in rest_operations.REST}
    assert {row.like for row in ROWS if row.like} <= rest


@pytest.mark.exhaustive
@pytest.mark.fire(
    "nobody gets more by one door than by another",
    "each operation of REST, MCP and the page as each of nine callers, over sockets",
    count=CELLS,
)
def test_the_page_says_what_each_caller_gets() -> None:
    cells = asyncio.run(asked())
    assert sum(map(len, cells.values())) == CELLS
    for row in ROWS:
        for caller in CALLERS if row.like else ():
            one = cells[row.name][caller.name]
            other = cells[row.like][caller.name]
            where = f"{row.name} and {row.like} differ for {caller.name}"
            assert bool(one.answer.refused) == bool(other.answer.refused), where
            assert one.wrote == other.wrote, where
    assert PATH.read_text(encoding="utf-8") == page(cells), f"run: {COMMAND}"
