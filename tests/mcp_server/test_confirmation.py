"""A person is asked before anything is written, where the client can ask one."""

from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.exceptions import ToolError

from tests.mcp_server.service import Service, generated, request, serving

YES = ElicitResult(action="accept", content={"confirm": True})
NOT_YES = {
    "unticked": ElicitResult(action="accept", content={"confirm": False}),
    "declined": ElicitResult(action="decline"),
    "dismissed": ElicitResult(action="cancel"),
}


def _client(service: Service, answer: ElicitResult[Any], asked: list[str]) -> Client[Any]:
    async def handler(message: str, *_: object) -> ElicitResult[Any]:
        asked.append(message)
        assert await generated(service.hub) == []
        return answer

    return Client(service.mcp, elicitation_handler=handler)


async def test_the_question_shows_the_plan_and_a_yes_applies_it() -> None:
    asked: list[str] = []
    async with serving(read_only=False) as service, _client(service, YES, asked) as client:
        plan = (await client.call_tool("plan_placement", request())).structured_content
        await client.call_tool("apply_plan", {"digest": plan["digest"]})
        assert len(await generated(service.hub)) == 6
    [question] = asked
    assert plan["digest"] in question
    assert plan["explanation"] in question


@pytest.mark.parametrize("answer", NOT_YES.values(), ids=NOT_YES.keys())
async def test_anything_but_a_yes_writes_nothing(answer: ElicitResult[Any]) -> None:
    asked: list[str] = []
    async with serving(read_only=False) as service, _client(service, answer, asked) as client:
        plan = (await client.call_tool("plan_placement", request())).structured_content
        with pytest.raises(ToolError, match="did not confirm; nothing was written"):
            await client.call_tool("apply_plan", {"digest": plan["digest"]})
        with pytest.raises(ToolError, match="did not confirm; nothing was written"):
            await client.call_tool("reset_placements", {"namespace": "default"})
        assert await generated(service.hub) == []
    assert len(asked) == 2
