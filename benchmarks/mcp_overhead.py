"""What a tool call costs over the optimizer's function that it shows, in CPU milliseconds.

python -m benchmarks.mcp_overhead

The guide's fleet on an embedded hub, in one process: a client of FastMCP over its in-memory
transport, so encoding, validation and dispatch count, and sockets do not. Medians of RUNS calls
that take turns, so that drift of the machine hits both.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastmcp import Client

from dsf.kube.clock import utc_now
from mcp_server.server import create_mcp
from optimizer.follow.overview.plan_request import PartialRequest
from optimizer.follow.overview.question_completion import PlanningQuestion, complete_question
from optimizer.service.optimizer import Optimizer
from tests.mcp_server.service import scenario_hub

RUNS = 40


async def main() -> None:
    """Print a row for each tool: the function, the call, and the difference."""
    hub = await scenario_hub()
    optimizer = Optimizer(hub, now=utc_now)

    async def fleet() -> None:
        await optimizer.fleet("default")

    async def status() -> None:
        await optimizer.placement_status("default", "default")
        await optimizer.rollouts.of_namespace("default")
        await optimizer.plans("default")

    async def plan() -> None:
        made = complete_question(await optimizer.fleet("default"), PartialRequest({"power": 1}))
        if isinstance(made, PlanningQuestion):
            await optimizer.plan(made.request)

    cases: dict[str, tuple[Callable[[], Awaitable[None]], dict[str, Any]]] = {
        "fleet_overview": (fleet, {}),
        "list_scores": (fleet, {}),
        "diagnose": (fleet, {}),
        "follow_rollout": (status, {}),
        "plan_placement": (plan, {"objective": "power"}),
    }
    print(f"{'tool':<18}{'function ms':>13}{'call ms':>10}{'over it ms':>12}")
    async with Client(create_mcp(lambda: optimizer)) as client:
        await client.list_tools()
        for tool, (function, arguments) in cases.items():
            bare, called = list[float](), list[float]()
            for _ in range(RUNS):
                bare.append(await _seconds(function))
                called.append(await _seconds(lambda: client.call_tool(tool, arguments)))  # noqa: B023
            low, high = (1000 * statistics.median(found) for found in (bare, called))
            print(f"{tool:<18}{low:>13.1f}{high:>10.1f}{high - low:>12.1f}")


async def _seconds(work: Callable[[], Awaitable[Any]]) -> float:
    """Return the CPU seconds of this process; a solver's process does not count."""
    before = time.process_time()
    await work()
    return time.process_time() - before


if __name__ == "__main__":
    asyncio.run(main())
