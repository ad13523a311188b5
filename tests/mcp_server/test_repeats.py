"""A repeated apply_plan counts while that very plan is in force, whatever server is asked."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, NotFound
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, PLACEMENT_PLAN, Kind
from dsf.kube.port import Kube, ObjectList
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.evals.fleets import guide
from tests.kube_wrappers.fault_injection import Call, Fault, Faulty
from tests.kube_wrappers.wrapper import Wrapper
from tests.mcp_server.service import generated
from tests.optimizer.follow.rollout.guide_rollout import guide_rollout


@asynccontextmanager
async def server(hub: Kube) -> AsyncIterator[Client[Any]]:
    """A server that has just started: it remembers nothing."""
    optimizer = Optimizer(hub, now=utc_now)
    async with Client(create_mcp(lambda: optimizer, read_only=False)) as client:
        yield client


async def plan(client: Client[Any], objective: str) -> str:
    found = await client.call_tool("plan_placement", {"objective": objective})
    return str(found.structured_content["digest"])


async def apply(client: Client[Any], digest: str) -> Any:
    return await client.call_tool("apply_plan", {"digest": digest})


async def applied(client: Client[Any], objective: str) -> str:
    digest = await plan(client, objective)
    await apply(client, digest)
    return digest


async def go_back(client: Client[Any]) -> str:
    shown = await client.call_tool("rollback", {})
    digest = str(shown.structured_content["plan"]["digest"])
    await apply(client, digest)
    return digest


async def refused(client: Client[Any], digest: str) -> str:
    with pytest.raises(ToolError) as raised:
        await apply(client, digest)
    return str(raised.value)


async def versions(hub: EmbeddedHub) -> list[Any]:
    lists = [(await hub.list(kind, "default")).items for kind in (PLACEMENT, PLACEMENT_PLAN)]
    return [obj["metadata"]["resourceVersion"] for found in lists for obj in found]


async def test_a_plan_in_force_is_repeated_by_any_server_and_writes_nothing() -> None:
    hub = await guide()
    async with server(hub) as client:
        digest = await applied(client, "power")
    before = await versions(hub)
    async with server(hub) as client:
        for said in (digest, digest[:8]):
            result = await apply(client, said)
            assert result.structured_content["repeated"] is True
            assert result.structured_content["record"] == "default-1"
            assert len(result.structured_content["applied"]) == 6
            assert "is in force as PlacementPlan default-1 with its 6 changes" in (
                result.content[0].text
            )
    assert await versions(hub) == before


async def test_after_another_plan_a_rollback_or_a_reset_the_digest_is_refused() -> None:
    hub = await guide()
    async with server(hub) as client:
        power = await applied(client, "power")
        performance = await applied(client, "performance")
        assert 'revision 1 is Superseded: \\"revision 2 was applied\\"' in (
            await refused(client, power)
        )
        back = await go_back(client)
        assert 'revision 2 is RolledBack: \\"revision 3 restored revision 1\\"' in (
            await refused(client, performance)
        )
        assert "not in force" in await refused(client, power)
        assert (await apply(client, back)).structured_content["repeated"] is True
        followed = await client.call_tool("follow_rollout", {})
        assert followed.structured_content["current"] == back
        assert f"revision 3, which restored revision 1 (plan {back[:12]})" in (
            followed.content[0].text
        )
        goes = await client.call_tool("reset_placements", {"namespace": "default"})
        digest = goes.structured_content["digest"]
        await client.call_tool("reset_placements", {"namespace": "default", "digest": digest})
        assert "a reset deleted the generated objects" in await refused(client, back)
    assert await generated(hub) == []


async def test_a_plan_whose_objects_somebody_has_edited_is_no_repeat() -> None:
    hub = await guide()
    async with server(hub) as client:
        digest = await applied(client, "power")
        [name, *_] = [item for item in await generated(hub) if item.startswith("placement-")]
        await hub.patch(PLACEMENT, name, {"spec": {"tolerations": [{"key": "a"}]}}, "default")
        said = await refused(client, digest)
    assert f"the hub is not as it left it: Placement {name}: " in said


async def test_a_digest_of_nobody_is_told_nothing_of_others() -> None:
    hub = await guide()
    async with server(hub) as client:
        digest = await plan(client, "power")
        for wrong in ("0" * 64, digest[:7], digest[:-1] + "x", ""):
            said = await refused(client, wrong)
            assert said.startswith("no plan with digest ")
            assert digest not in said.replace(wrong or "-", "")
    assert await generated(hub) == []


class _NoRecords(Wrapper):
    """A hub that does not serve PlacementPlan."""

    async def list(self, kind: Kind, *args: Any, **rest: Any) -> ObjectList:
        if kind is PLACEMENT_PLAN:
            raise NotFound("the server could not find the requested resource")
        return await super().list(kind, *args, **rest)


async def test_on_a_hub_without_records_nothing_is_claimed_of_a_plan_applied_before() -> None:
    hub = await guide()
    async with server(_NoRecords(hub)) as client:
        digest = await applied(client, "power")
        assert "it was applied already; call plan_placement again" in await refused(client, digest)


async def test_a_plan_that_changes_nothing_may_be_applied_again() -> None:
    hub = await guide()
    async with server(hub) as client:
        await applied(client, "power")
        digest = await plan(client, "power")
        for _ in range(2):
            result = await apply(client, digest)
            assert result.structured_content["applied"] == []
            assert "Nothing was to be written" in result.content[0].text


async def test_a_repeated_rollout_says_that_it_goes_on() -> None:
    hub = await guide()
    asked = {"objective": "power", "request": {"rollout": "Stepwise"}}
    async with server(hub) as client:
        shown = (await client.call_tool("plan_placement", asked)).structured_content
        first = await apply(client, shown["digest"])
        again = await apply(client, shown["digest"])
    steps = len(shown["steps"])
    assert first.structured_content["steps"] == again.structured_content["steps"] == steps > 0
    assert f"The rollout of PlacementPlan default-1 writes its {steps} step" in (
        first.content[0].text
    )
    assert "nothing was written now" in again.content[0].text


async def test_what_is_in_force_is_said_alike_by_all_while_a_rollout_replaces_it() -> None:
    rollout = await guide_rollout()
    (first,) = await rollout.service().plans("default")
    async with server(rollout.hub) as client:

        async def in_force() -> str:
            followed = await client.call_tool("follow_rollout", {})
            assert followed.structured_content["current"] == first.spec.digest
            lines = followed.content[0].text.splitlines()
            return next(line for line in lines if line.startswith("In force: "))

        async def planned_after() -> str:
            shown = await client.call_tool("plan_placement", {})
            return str(shown.structured_content["objective_from"]["record"])

        asked = {"objective": "power", "request": {"rollout": "Stepwise"}}
        shown = (await client.call_tool("plan_placement", asked)).structured_content
        digest, steps = shown["digest"], len(shown["steps"])
        await apply(client, digest)
        mark = f"revision 1 (plan {first.spec.digest[:12]})"
        assert await in_force() == (
            f'In force: "{mark}, being replaced by revision 2 (step 0 of {steps})".'
        )
        assert await planned_after() == "default-1"
        assert "revision 2" in await refused(client, first.spec.digest)
        await rollout.command("pause")
        repeated = (await apply(client, digest)).content[0].text
        assert "nothing was written now" in repeated
        assert "Paused" in repeated
        assert "one by one" not in repeated
        await rollout.command("cancel")
        assert await in_force() == f'In force: "{mark}".'
        assert await planned_after() == "default-1"
        assert "its rollout was cancelled" in await refused(client, digest)
        shown = (await client.call_tool("plan_placement", asked)).structured_content
        await apply(client, shown["digest"])
        await rollout.advance("default-3")
        await rollout.command("undo")
        await rollout.command("cancel")
        said = await in_force()
        assert said.startswith(f'In force: "{mark}, a part of which was replaced: revision 3 is')
        assert "its rollout was cancelled" in said
        assert await planned_after() == "default-1"


@pytest.mark.parametrize(
    ("kinds", "said", "refusal"),
    [
        ((PLACEMENT, PLACEMENT_BINDING), "; nothing of a later plan was written", "all 8"),
        ((PLACEMENT_BINDING,), ", a part of which was replaced", "4 of 8"),
    ],
)
async def test_a_plan_of_which_the_hub_refused_all_replaced_nothing(
    kinds: tuple[Kind, ...], said: str, refusal: str
) -> None:
    async with server(await failed_plan(*kinds)) as client:
        followed = await client.call_tool("follow_rollout", {})
        lines = followed.content[0].text.splitlines()
    (line,) = (line for line in lines if line.startswith("In force: "))
    said += f': revision 2 is Failed: \\"the hub refused {refusal} writes: '
    assert re.sub(r" \(plan \w+\)", "", line).startswith(f'In force: "revision 1{said}')


async def failed_plan(*kinds: Kind) -> EmbeddedHub:
    """The guide's fleet placed for performance; writes of these kinds for power were refused."""

    def refuse(call: Call) -> Fault | None:
        wrote = call.verb in ("create", "patch", "delete") and call.kind in kinds
        return Fault(Forbidden("no more")) if wrote else None

    hub = await guide()
    async with server(hub) as client:
        await applied(client, "performance")
    async with server(Faulty(hub, refuse)) as client:
        await refused(client, await plan(client, "power"))
    return hub
