"""Tool calls by a real MCP client with random arguments, over a socket."""

import asyncio
import json
import os
from typing import Any

import pytest
from fastmcp import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mcp_server.service import request
from tests.mcp_server.tool_names import READS, WRITES

EXAMPLES = int(os.environ.get("FIRE_EXAMPLES", "1000"))
"""Tool calls in all; FIRE_EXAMPLES sets another number."""
MASKED = "Error calling tool"
"""What the server says of an exception that is none of the documented failures."""
TOOLS = (*READS, *WRITES, "no_such_tool")
PLAN = request()
FIELDS = (
    "cluster",
    "name",
    "score",
    "workload",
    "objective",
    "objectives",
    "what_if",
    "request",
    "digest",
    "namespace",
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values of a document, its own included."""
    if isinstance(value, dict):
        return [at, *(path for key in value for path in paths(value[key], (*at, key)))]
    if isinstance(value, list):
        return [at, *(path for n, item in enumerate(value) for path in paths(item, (*at, n)))]
    return [at]


@st.composite
def changed_plans(draw: st.DrawFn) -> dict[str, Any]:
    """Return the guide's request with one value, at any depth, replaced."""
    plan: dict[str, Any] = json.loads(json.dumps(PLAN))
    *parents, last = draw(st.sampled_from([path for path in paths(plan) if path]))
    holder: Any = plan
    for key in parents:
        holder = holder[key]
    holder[last] = draw(documents)
    return plan


arguments = st.one_of(
    st.builds(lambda plan: {"request": plan}, changed_plans()),
    st.dictionaries(st.sampled_from(FIELDS) | texts, documents, max_size=5),
)


async def call(url: str, tool: str, given_arguments: dict[str, Any]) -> str:
    """Return the text of the result of one call."""
    async with Client(f"{url}/mcp") as client:
        result = await client.call_tool(tool, given_arguments, raise_on_error=False)
    return "\n".join(getattr(item, "text", "") for item in result.content)


def calls_are_answered(url: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(TOOLS), arguments)
    def answered(tool: str, given_arguments: dict[str, Any]) -> None:
        text = asyncio.run(call(url, tool, given_arguments))
        assert not text.startswith(MASKED), text

    answered()


def test_a_few_random_tool_calls_are_answered(optimizer_url: str) -> None:
    calls_are_answered(optimizer_url, 10)


@pytest.mark.exhaustive
@pytest.mark.fire(
    "no tool call with any arguments breaks the MCP server",
    "a real client over a socket: random and damaged arguments",
    count=EXAMPLES,
)
def test_random_tool_calls_are_answered(optimizer_url: str) -> None:
    calls_are_answered(optimizer_url, EXAMPLES)
