"""The tool that follows a plan after it was applied."""

from fastmcp.tools.base import ToolResult

from mcp_server.results import plan_text
from mcp_server.results.plan_views import follow_view
from mcp_server.tools.arguments import Namespace, Optimization
from mcp_server.tools.hub_calls import CallerRights, asked, recorded_plans, recorded_rollouts
from optimizer.record.plan_history import history_of


class RolloutTools:
    """The tools that follow; they write nothing."""

    def __init__(self, caller: CallerRights) -> None:
        self._caller = caller

    async def follow_rollout(
        self, namespace: Namespace = "default", optimization: Optimization = "default"
    ) -> ToolResult:
        """Say how far an applied plan is: steps, compliance, what each workload waits for."""
        caller = self._caller()
        status = await asked(caller.placement_status(namespace, optimization))
        rollouts = await asked(recorded_rollouts(caller, namespace))
        rollout = next((item for item in rollouts if item.optimization == optimization), None)
        history = history_of(await asked(recorded_plans(caller, namespace)), optimization)
        applied = (item.spec.digest for item in history if item.phase == "Applied")
        view = follow_view(status, rollout, next(applied, ""))
        return ToolResult(content=plan_text.follow_text(view), structured_content=view)
