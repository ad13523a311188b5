"""A person is asked before anything is written, where the client can ask one."""

import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.exceptions import ToolError

from dsf.kube.clock import utc_now
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.mcp_server.service import Service, generated, scenario_hub, serving, wish

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
        plan = (await client.call_tool("plan_placement", wish())).structured_content
        await client.call_tool("apply_plan", {"digest": plan["digest"]})
        assert len(await generated(service.hub)) == 6
    [question] = asked
    assert plan["digest"] in question
    assert question.startswith("Stop 0, move 0, start 2 of 2 workloads on the hub, namespace")
    assert '"mwrs-app01" starts on "3g.48gb" on "worker01"' in question


@pytest.mark.parametrize("answer", NOT_YES.values(), ids=NOT_YES.keys())
async def test_anything_but_a_yes_writes_nothing_and_is_audited(
    answer: ElicitResult[Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "audit")
    asked: list[str] = []
    async with serving(read_only=False) as service, _client(service, answer, asked) as client:
        plan = (await client.call_tool("plan_placement", wish())).structured_content
        with pytest.raises(ToolError, match="did not confirm; nothing was written"):
            await client.call_tool("apply_plan", {"digest": plan["digest"]})
        for tool, arguments in (await _writes(client, plan["digest"])).items():
            if tool == "reset_placements":
                reset = arguments["digest"]
                with pytest.raises(ToolError, match="did not confirm; nothing was written"):
                    await client.call_tool(tool, arguments)
        assert await generated(service.hub) == []
    assert len(asked) == 2
    records: list[Any] = [item for item in caplog.records if item.name == "audit"]
    assert [(item.action, item.namespace, item.digest, item.outcome) for item in records] == [
        ("apply", "default", plan["digest"], "NotConfirmed"),
        ("reset", "default", reset, "NotConfirmed"),
    ]


async def _raises(*_: object) -> ElicitResult[Any]:
    raise RuntimeError("the window of the question could not be opened")


def _of_another_form(content: dict[str, Any]) -> Callable[..., Any]:
    async def answer(*_: object) -> ElicitResult[Any]:
        return ElicitResult.model_construct(action="accept", content=content)

    return answer


@pytest.mark.parametrize(
    "handler",
    [
        _raises,
        *map(_of_another_form, [{}, {"confirm": "true"}, {"confirm": 1}, {"confirm": [True]}]),
    ],
)
async def test_while_a_tool_waits_an_error_and_an_answer_of_another_form_are_a_refusal(
    handler: Callable[..., Any],
) -> None:
    hub = await scenario_hub()
    mcp = create_mcp(lambda: Optimizer(hub, now=utc_now), read_only=False)
    async with Client(mcp, mode="legacy", elicitation_handler=handler) as client:
        plan = (await client.call_tool("plan_placement", wish())).structured_content
        for tool, arguments in (await _writes(client, plan["digest"])).items():
            with pytest.raises(ToolError, match="did not confirm; nothing was written"):
                await client.call_tool(tool, arguments)
    assert await generated(hub) == []


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"another": {"action": "accept", "content": {"confirm": True}}},
        {"confirm": {"roots": []}},
        {"confirm": {"action": "accept"}},
        {"confirm": {"action": "accept", "content": {"confirm": "true"}}},
        {"confirm": {"action": "decline", "content": {"confirm": True}}},
    ],
)
async def test_a_called_back_tool_takes_an_answer_of_another_form_for_a_refusal(
    answers: dict[str, Any],
) -> None:
    async with serving(read_only=False) as service:
        asked = await _reset(service)
        assert asked["resultType"] == "input_required"
        result = await _reset(service, inputResponses=answers, requestState=asked["requestState"])
    assert result["isError"] is True
    assert "did not confirm; nothing was written" in result["content"][0]["text"]


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_client_that_can_not_ask_applies_by_digest_unless_the_server_denies_it(
    era: Any,
) -> None:
    async with (
        serving(read_only=False, when_client_cannot_ask="deny") as service,
        Client(service.mcp, mode=era) as client,
    ):
        plan = (await client.call_tool("plan_placement", wish())).structured_content
        for tool, arguments in (await _writes(client, plan["digest"])).items():
            with pytest.raises(ToolError, match="can't ask its user to confirm"):
                await client.call_tool(tool, arguments)
        assert await generated(service.hub) == []
    async with (
        serving(read_only=False, when_client_cannot_ask="digest") as service,
        Client(service.mcp, mode=era) as client,
    ):
        plan = (await client.call_tool("plan_placement", wish())).structured_content
        await client.call_tool("apply_plan", {"digest": plan["digest"]})
        assert len(await generated(service.hub)) == 6


async def _writes(client: Client[Any], digest: str) -> dict[str, dict[str, str]]:
    """The calls of the tools that write, with the digests that were shown."""
    namespace = {"namespace": "default"}
    shown = (await client.call_tool("reset_placements", namespace)).structured_content
    assert "deleted" not in shown
    return {
        "apply_plan": {"digest": digest},
        "reset_placements": {**namespace, "digest": shown["digest"]},
    }


async def _reset(service: Service, **more: Any) -> dict[str, Any]:
    """Return the result of a call of reset_placements in the protocol of 2026-07-28."""
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        "io.modelcontextprotocol/clientInfo": {"name": "careless", "version": "1"},
    }
    async with Client(service.mcp) as shown:
        arguments = (await _writes(shown, ""))["reset_placements"]
    params = {"_meta": meta, "name": "reset_placements", "arguments": arguments, **more}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "reset_placements",
    }
    async with httpx.AsyncClient(trust_env=False, timeout=60, headers=headers) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        result: dict[str, Any] = (await client.post(service.mcp, json=body)).json()["result"]
    return result
