"""The interface that assistants see, kept in a file so that a review shows each change of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer

GOLDEN = Path(__file__).with_name("tools.json")

BUDGET = 16_600
"""Characters without icons; every assistant pays for the whole list in each conversation."""

ICONS_BUDGET = 3_300
"""Characters of all icons, which a client fetches with the list, and draws for people."""


async def _interface(*, read_only: bool) -> dict[str, Any]:
    mcp = create_mcp(lambda: Optimizer(EmbeddedHub(), now=utc_now), read_only=read_only)
    tools = [tool.to_mcp_tool() for tool in await mcp.list_tools()]
    return {
        "instructions": mcp.instructions,
        "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
    }


@pytest.mark.parametrize("mode", ["read_only", "allow_writes"])
async def test_the_interface_is_the_reviewed_one(mode: str) -> None:
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert await _interface(read_only=mode == "read_only") == golden[mode], (
        "if the change is meant: python -m tests.mcp_server.test_interface"
    )


async def test_the_interface_fits_its_budget() -> None:
    tools = (await _interface(read_only=False))["tools"]
    icons = [tool.pop("icons") for tool in tools]
    assert len(json.dumps(icons, separators=(",", ":"))) < ICONS_BUDGET
    assert len(json.dumps(tools, separators=(",", ":"))) < BUDGET
    for tool in tools:
        assert tool["description"]
        assert tool["outputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False


async def _write() -> None:
    modes = {"read_only": True, "allow_writes": False}
    found = {mode: await _interface(read_only=read_only) for mode, read_only in modes.items()}
    GOLDEN.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    import asyncio

    asyncio.run(_write())
