"""What is kept placed, asked by an assistant over a socket: why nothing moves, and an approval."""

from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.exceptions import ToolError

from dsf.kube.clock import utc_now
from dsf.kube.kinds import PLACEMENT_OPTIMIZATION
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.eventually import eventually
from tests.mcp_server.service import Service, generated, request, scenario_hub, serving

NAMED = {"name": "inference"}


async def declare(service: Service, mode: str) -> None:
    """Declare what is kept; the service looks at it by itself."""
    spec = {key: value for key, value in request().items() if key != "namespace"}
    kept = {"metadata": {**NAMED, "namespace": "default"}, "spec": {**spec, "mode": mode}}
    await service.hub.create(PLACEMENT_OPTIMIZATION, kept)


async def told(client: Client[Any], tool: str = "kept_placements", **said: Any) -> tuple[str, Any]:
    found = await client.call_tool(tool, said)
    assert found.structured_content is not None
    return found.content[0].text, found.structured_content


async def told_of(client: Client[Any], reason: str) -> tuple[str, Any]:
    """Ask until a look has come to this."""

    async def found() -> tuple[str, Any] | None:
        text, view = await told(client)
        items = [item for item in view["items"] if item["reason"] == reason]
        return (text, items[0]) if items else None

    return await eventually(found)


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_plan_that_waits_is_told_and_approved_after_a_yes(era: Any) -> None:
    questions: list[str] = []

    async def yes(message: str, *_: object) -> ElicitResult[Any]:
        questions.append(message)
        return ElicitResult(action="accept", content={"confirm": True})

    async with serving(read_only=False) as service:
        await declare(service, "Approve")
        async with Client(service.mcp, mode=era, elicitation_handler=yes) as client:
            text, kept = await told_of(client, "AwaitingApproval")
            assert text.startswith("inference, mode Approve, is not fine: AwaitingApproval: ")
            assert (
                f"Plan {kept['waiting']} waits for an approval: it moves, starts or stops 2 of"
                in text
            )
            assert "has to gain more than the largest of: its move cost, 10 points" in text
            with pytest.raises(ToolError, match=r"does not wait.*\n?Next: call kept_placements"):
                await told(client, "approve_kept_plan", **NAMED, digest="0" * 64)
            with pytest.raises(ToolError, match="Next: kept_placements lists them"):
                await told(client, "approve_kept_plan", name="none", digest=kept["waiting"])
            text, view = await told(
                client, "approve_kept_plan", **NAMED, digest=kept["waiting"], namespace="default"
            )
            assert "was approved, and is applied at the next look." in text
            assert view["items"][0]["approved"] is True
            text, _ = await told_of(client, "Planned")
            assert '"0 of 2 replicas landed' in text
            assert (await told(client, name="infer"))[1]["items"][0]["status"]["gain"] == 0
        assert "app01-placement" in await generated(service.hub)
    if era == "legacy":  # over HTTP such a client can't be asked, and names the digest itself
        assert questions == []
    else:
        (question,) = questions
        assert question.startswith("Let the plan that waits be applied on the hub, namespace")
        assert "It moves, starts or stops 2 of 2 workloads, gains " in question


async def test_a_read_only_server_says_so_and_has_no_tool_that_approves() -> None:
    async with serving() as service, Client(service.mcp) as client:
        text, _ = await told(client)
        assert "so nothing moves until somebody plans and applies. Next: plan_placement" in text
        await declare(service, "Approve")
        text, _ = await told_of(client, "ReadOnly")
        assert "allow writes (the chart's allowWrites)" in text
        with pytest.raises(ToolError, match="Unknown tool"):
            await told(client, "approve_kept_plan", **NAMED, digest="0" * 64)


async def test_an_answer_says_how_old_it_is_if_a_watch_told_it() -> None:
    async with serving() as service, Client(service.mcp) as client:

        async def aged() -> Any:
            found = await client.call_tool("fleet_overview", {})
            return found if "age_seconds" in found.structured_content else None

        found = await eventually(aged)  # once the hub is watched
        age = found.structured_content["age_seconds"]
        assert found.content[-1].text == f"Read from the hub at most {age} s ago."
    hub = await scenario_hub()
    unwatched = create_mcp(lambda: Optimizer(hub, now=utc_now))
    async with Client(unwatched) as client:
        found = await client.call_tool("fleet_overview", {})
        assert "age_seconds" not in found.structured_content
        assert len(found.content) == 1
