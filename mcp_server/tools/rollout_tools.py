"""The tool that follows a plan after it was applied."""

from fastmcp.tools.base import ToolResult

from mcp_server.results import plan_results
from mcp_server.results.plan_results import follow_view
from mcp_server.tools.arguments import Namespace, Optimization
from mcp_server.tools.hub_calls import (
    CallerRights,
    answer,
    asked,
    recorded_plans,
    recorded_rollouts,
)
from optimizer.follow.record.plan_history import history_of
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.fleet import placement_status
from optimizer.wire.rollout import RolloutStatus


class RolloutTools:
    """The tools that follow; they write nothing."""

    def __init__(self, caller: CallerRights) -> None:
        self._caller = caller

    async def follow_rollout(
        self, namespace: Namespace = "default", optimization: Optimization = "default"
    ) -> ToolResult:
        """Say how far an applied plan is: steps, compliance, what each workload waits for."""
        return await followed(self._caller(), namespace, optimization)


async def followed(
    caller: AuthorizedOptimizer,
    namespace: str,
    optimization: str,
    rollout: RolloutStatus | None = None,
) -> ToolResult:
    """Return how far an optimization is; its newest rollout is read unless it is given."""
    status = await asked(placement_status(caller, namespace, optimization))
    if rollout is None:
        rollouts = await asked(recorded_rollouts(caller, namespace))
        rollout = next((item for item in rollouts if item.optimization == optimization), None)
    history = history_of(await asked(recorded_plans(caller, namespace)), optimization)
    if rollout and history and rollout.record != history[0].name:
        rollout = None
    view = follow_view(status, rollout, history)
    return answer(plan_results.follow_text(view, optimization), view)
