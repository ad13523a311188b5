"""Each example in the schema of a tool works, on the fleet that the documents show."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastmcp import Client

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.evals.fleets import guide, kept
from tests.mcp_server.tool_names import READS, WRITES


@asynccontextmanager
async def served(tool: str) -> AsyncIterator[tuple[Client[Any], EmbeddedHub]]:
    """A client that may write, to whom the plan for power was shown, unless one waits."""
    hub = await (kept() if "kept" in tool else guide())
    optimizer = Optimizer(hub, now=utc_now)
    async with Client(create_mcp(lambda: optimizer, read_only=False)) as client:
        if "kept" not in tool:
            await plan(client, "power")
        yield client, hub


async def plan(client: Client[Any], objective: str, **request: str) -> str:
    asked = {"objective": objective, "request": request}
    found = await client.call_tool("plan_placement", asked)
    return str(found.structured_content["digest"])


async def prepare(client: Client[Any], tool: str) -> None:
    """Bring about what a tool is for: a plan to explain or to leave, a rollout to change."""
    if tool == "keep_constraints":
        await client.call_tool(tool, {"remember": {"drain": ["worker01"]}})
    if tool not in ("explain_placement", "change_rollout", "rollback"):
        return
    for objective in ("power", "performance"):
        request = {"rollout": "Stepwise"} if tool == "change_rollout" else {}
        await client.call_tool("apply_plan", {"digest": await plan(client, objective, **request)})
        if request:
            return


def calls(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all arguments with their first examples, and once more for each further example."""
    fields = schema["properties"]
    first = {name: field["examples"][0] for name, field in fields.items() if "examples" in field}
    required = [name for name in schema.get("required", ()) if name not in first]
    first |= {name: fields[name]["enum"][0] for name in required}
    yield first
    for name, field in fields.items():
        for example in field.get("examples", ())[1:]:
            yield {**first, name: example}


@pytest.mark.parametrize("tool", [*READS, *WRITES])
async def test_each_example_of_a_tool_is_answered(tool: str) -> None:
    async with served(tool) as (client, _):
        [schema] = [item.input_schema for item in await client.list_tools() if item.name == tool]
    for arguments in calls(schema):
        async with served(tool) as (client, _):
            await prepare(client, tool)
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            assert not result.is_error, (arguments, result.content)
