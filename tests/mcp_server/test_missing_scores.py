"""A missing score is a finding where something in force asks for it, or where it is named."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fastmcp import Client

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, PLACEMENT_OPTIMIZATION
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.evals.fleets import guide, running
from tests.mcp_server.service import PERFORMANCE, POWER, request

CARBON = "carbon-intensity"
NIGHT = {"schedule": "0 22 * * *", "duration": "8h"}


async def lacking(hub: EmbeddedHub) -> EmbeddedHub:
    """Remove each score from worker02, which has another one."""
    for name in (PERFORMANCE, POWER, CARBON):
        await hub.delete(ADD_ON_PLACEMENT_SCORE, name, "worker02")
    other = {"metadata": {"name": "other", "namespace": "worker02"}}
    await hub.create(ADD_ON_PLACEMENT_SCORE, other)
    return hub


async def kept() -> EmbeddedHub:
    """The guide's fleet, which is to be kept for power, and at night for carbon."""
    hub = await guide()
    at_night = {"preference": {"addonPlacementScore": CARBON}, **NIGHT}
    spec = {"preference": request(POWER)["preference"], "schedules": [at_night]}
    metadata = {"name": "prod", "namespace": "default"}
    await hub.create(PLACEMENT_OPTIMIZATION, {"metadata": metadata, "spec": spec})
    return hub


async def missing(hub: EmbeddedHub, tool: str, **said: Any) -> set[str]:
    """Return the scores of which a tool says that clusters lack them."""
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now))) as client:
        text = (await client.call_tool(tool, said)).content[0].text
    lines = [line for line in text.splitlines() if ": ScoreMissing" in line]
    return {name for name in (PERFORMANCE, POWER, CARBON) for line in lines if name in line}


@pytest.mark.parametrize("tool", ["diagnose", "fleet_overview"])
@pytest.mark.parametrize(
    ("fleet", "found"),
    [(running, {PERFORMANCE}), (kept, {POWER, CARBON}), (guide, {PERFORMANCE, POWER, CARBON})],
    ids=["a plan in force", "kept, with a schedule", "nothing is asked for yet"],
)
async def test_a_missing_score_is_told_if_something_in_force_asks_for_it(
    fleet: Callable[[], Awaitable[EmbeddedHub]], found: set[str], tool: str
) -> None:
    assert await missing(await lacking(await fleet()), tool) == found


async def test_a_missing_score_is_told_to_who_names_it() -> None:
    hub = await lacking(await running())
    assert await missing(hub, "diagnose", name=CARBON) == {CARBON, PERFORMANCE}
    assert await missing(hub, "diagnose", name="worker02") == {PERFORMANCE}
