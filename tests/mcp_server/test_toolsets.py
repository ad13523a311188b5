"""Which tools a client is shown: by toolset, by the rights of its user, and by a search."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from mcp_server.cli import mcp
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.command_line import invoked
from tests.mcp_server.service import generated, scenario_hub
from tests.mcp_server.tokens import definition_tokens
from tests.mcp_server.tool_names import READS, WRITES

ALWAYS = {"fleet_overview", "follow_rollout"}


def served(hub: EmbeddedHub, *toolsets: str, read_only: bool = True) -> Client[Any]:
    optimizer = Optimizer(hub, now=utc_now)
    return Client(create_mcp(lambda: optimizer, read_only=read_only, toolsets=toolsets))


async def names(client: Client[Any]) -> set[str]:
    return {tool.name for tool in await client.list_tools()}


async def test_toolsets_part_the_tools_and_each_has_the_overview() -> None:
    hub, every = await scenario_hub(), set[str]()
    for toolset in ("fleet", "plans", "rollouts"):
        async with served(hub, toolset, read_only=False) as client:
            found = await names(client)
        assert found >= ALWAYS
        assert not (found - ALWAYS) & every
        every |= found - ALWAYS
    assert every | ALWAYS == {*READS, *WRITES}


async def test_dynamic_tools_are_found_and_called_and_cost_a_third() -> None:
    async with served(await scenario_hub(), "dynamic", read_only=False) as client:
        tools = await client.list_tools()
        shown = [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in tools]
        assert {item.name for item in tools} == {
            "fleet_overview",
            "search_tools",
            "call_tool",
            *WRITES,
        }
        reading = [item for item in shown if item["name"] not in WRITES]
        assert definition_tokens(reading) < 900
        found = await client.call_tool("search_tools", {"query": "why is a score broken"})
        assert "diagnose" in found.content[0].text
        assert "svg" not in found.content[0].text
        asked = {"name": "list_scores", "arguments": {"score": "power"}}
        told = await client.call_tool("call_tool", asked)
        assert "example-powerconsumption-score" in told.content[0].text


@pytest.mark.parametrize("era", ["auto", "legacy"])
@pytest.mark.parametrize("agrees", [True, False])
async def test_a_write_that_was_found_by_a_search_asks_the_user_too(era: Any, agrees: bool) -> None:
    async def user(*_: object) -> ElicitResult[Any]:
        return ElicitResult(action="accept", content={"confirm": agrees})

    hub = await scenario_hub()
    optimizer = Optimizer(hub, now=utc_now)
    server = create_mcp(lambda: optimizer, read_only=False, toolsets=("dynamic",))
    async with Client(server, mode=era, elicitation_handler=user) as client:

        async def call(name: str, **arguments: Any) -> Any:
            asked = {"name": name, "arguments": arguments}
            return await client.call_tool("call_tool", asked, raise_on_error=False)

        plan = await call("plan_placement", objective="power")
        done = await call("apply_plan", digest=plan.structured_content["digest"])
    assert bool(done.is_error) is not agrees
    assert bool(await generated(hub)) is agrees


@pytest.mark.parametrize(
    ("allowed", "others", "shown"),
    [
        (("",), 0, set(WRITES)),
        (("default",), 0, set(WRITES)),
        (("elsewhere",), 0, set[str]()),
        # One of more namespaces than it asks for may be theirs.
        (("elsewhere",), 21, set(WRITES)),
    ],
)
async def test_tools_that_write_are_for_who_may_write_somewhere(
    allowed: Iterable[str], others: int, shown: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = await scenario_hub()
    create = hub.create
    [work, *_] = (await hub.list(kinds.MANIFEST_WORK_REPLICA_SET)).items
    for number in range(others):
        await create(kinds.NAMESPACE, kinds.NAMESPACE.object(metadata={"name": f"team-{number}"}))
        metadata = {
            "name": "work",
            "namespace": f"team-{number}",
            "labels": work["metadata"]["labels"],
        }
        await create(kinds.MANIFEST_WORK_REPLICA_SET, {**work, "metadata": metadata})

    async def reviewed(kind: Any, obj: Any, *rest: Any, **more: Any) -> Any:
        found = await create(kind, obj, *rest, **more)
        if kind.kind == "SelfSubjectAccessReview":
            asked = obj["spec"]["resourceAttributes"]
            return {**found, "status": {"allowed": asked.get("namespace", "") in allowed}}
        return found

    monkeypatch.setattr(hub, "create", reviewed)
    async with served(hub, read_only=False) as client:
        assert await names(client) & set(WRITES) == shown


def test_an_unknown_toolset_is_refused_with_those_that_there_are() -> None:
    code, _, err = invoked(mcp, "--toolsets", "fleet,plan")
    assert code == 2
    assert "no toolset 'plan'; there are fleet, plans, rollouts, dynamic" in err


async def test_the_rights_of_many_namespaces_are_asked_for_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub = await scenario_hub()
    create, both, waiting = hub.create, asyncio.Event(), set[str]()

    async def reviewed(kind: Any, obj: Any, *rest: Any, **more: Any) -> Any:
        found = await create(kind, obj, *rest, **more)
        if kind.kind == "SelfSubjectAccessReview":
            waiting.add(namespace := obj["spec"]["resourceAttributes"].get("namespace", ""))
            if waiting >= {"default", "team"}:
                both.set()
            if namespace:
                await both.wait()
            return {**found, "status": {"allowed": False}}
        return found

    [work, *_] = (await hub.list(kinds.MANIFEST_WORK_REPLICA_SET)).items
    await create(kinds.NAMESPACE, kinds.NAMESPACE.object(metadata={"name": "team"}))
    metadata = {"name": "work", "namespace": "team", "labels": work["metadata"]["labels"]}
    await create(kinds.MANIFEST_WORK_REPLICA_SET, {**work, "metadata": metadata})
    monkeypatch.setattr(hub, "create", reviewed)
    async with served(hub, read_only=False) as client:
        assert not await names(client) & set(WRITES)
    assert waiting == {"", "default", "team"}
