"""Registers the tools: each with title, annotations and output schema."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from fastmcp.server.providers import LocalProvider
from fastmcp.tools.function_tool import FunctionTool
from mcp_types import Icon, Tool, ToolAnnotations

from mcp_server import icons
from mcp_server.confirmation import WhenClientCannotAsk
from mcp_server.results.fleet_results import DiagnosisView, ScorerView, ScoresView
from mcp_server.results.history_results import HistoryView
from mcp_server.results.kept_results import KeptView
from mcp_server.results.plan_results import ComparisonView, FollowView, PlanView, RollbackView
from mcp_server.results.tool_result import outline
from mcp_server.results.write_results import AppliedView, ConstraintsView, ResetView
from mcp_server.tools.chat_view import FOR_VIEW_ONLY, OPENS_VIEW, ViewAnswer, ViewTools
from mcp_server.tools.fleet_tools import FleetTools
from mcp_server.tools.hub_calls import CallerRights
from mcp_server.tools.plan_tools import PlanTools
from mcp_server.tools.simulation_tools import SimulationTools
from mcp_server.tools.write_tools import WriteTools
from optimizer.follow.overview.fleet_overview import FleetOverview, WorkloadDescription
from optimizer.follow.overview.placement_answer import PlacementAnswer
from optimizer.twin.evaluation.figures import SimulationResult
from optimizer.wire.base import ResultPart

_READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_WRITES = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)


_WRITES_AGAIN = _WRITES.model_copy(update={"idempotent_hint": False})
"""A repeated rollback goes back by one more plan."""


TOOLSETS = ("fleet", "plans", "rollouts")
"""Tools that belong together. The overview, and how far a plan is, belong to each."""


class _ToolDefinition(NamedTuple):
    """A tool: its title, the method that it calls and its result.

    `toolset`: of TOOLSETS; empty: of each. `meta`: what a host that can show a view is told.
    """

    title: str
    method: Callable[..., Any]
    result: type[ResultPart]
    meta: dict[str, Any] | None = None
    toolset: str = ""


def add_tools(
    provider: LocalProvider,
    caller: CallerRights,
    *,
    read_only: bool,
    when_client_cannot_ask: WhenClientCannotAsk,
    hub_name: str = "",
    toolsets: Collection[str] = (),
) -> None:
    """Add the tools to a server; a read-only one has no tool that writes. No `toolsets`: all."""
    plans = PlanTools(caller, read_only=read_only)
    chosen = {"", *(toolsets or TOOLSETS)}
    reading = [*_reading(FleetTools(caller), plans)]
    if caller().service.prometheus_url:  # a tool that can only refuse costs each conversation
        reading.append(_simulating(SimulationTools(caller)))
    for item in reading:
        if item.toolset in chosen:
            _add(provider, item, _READS)
    view = ViewTools(caller, plans, read_only=read_only)
    page_data = _ToolDefinition("Data of the page", view.page_data, ViewAnswer, FOR_VIEW_ONLY)
    _add(provider, page_data, _READS)
    if not read_only:
        write = WriteTools(caller, plans, when_client_cannot_ask, hub_name)
        for item in _writing(write):
            if item.toolset not in chosen:
                continue
            repeats = item.method == write.rollback
            _add(provider, item, _WRITES_AGAIN if repeats else _WRITES)


def tool_results() -> dict[str, type[ResultPart]]:
    """Return the type of each tool's result, by the tool's name."""
    return {
        name: item.result
        for item in (
            *_reading(FleetTools, PlanTools),
            _simulating(SimulationTools),
            *_writing(WriteTools),
        )
        for name in [item.method.__name__]
    }


def _reading(
    fleet: FleetTools | type[FleetTools], plans: PlanTools | type[PlanTools]
) -> tuple[_ToolDefinition, ...]:
    return (
        _ToolDefinition("Fleet overview", fleet.fleet_overview, FleetOverview, OPENS_VIEW),
        _ToolDefinition("Scores by cluster", fleet.list_scores, ScoresView, toolset="fleet"),
        _ToolDefinition("One scorer", fleet.describe_scorer, ScorerView, toolset="fleet"),
        _ToolDefinition(
            "One workload", fleet.describe_workload, WorkloadDescription, toolset="fleet"
        ),
        _ToolDefinition("Plan or what-if", plans.plan_placement, PlanView, OPENS_VIEW, "plans"),
        _ToolDefinition(
            "Why here, why not there", plans.explain_placement, PlacementAnswer, toolset="plans"
        ),
        _ToolDefinition("Plans side by side", plans.compare_plans, ComparisonView, toolset="plans"),
        _ToolDefinition("Follow a plan", fleet.follow_rollout, FollowView),
        _ToolDefinition("Plans so far", plans.plan_history, HistoryView, toolset="plans"),
        _ToolDefinition("Kept by itself", fleet.kept_placements, KeptView, toolset="rollouts"),
        _ToolDefinition("What is broken", fleet.diagnose, DiagnosisView, toolset="fleet"),
    )


def _simulating(simulation: SimulationTools | type[SimulationTools]) -> _ToolDefinition:
    asked = simulation.simulate_settings
    return _ToolDefinition(
        "What other settings were worth", asked, SimulationResult, toolset="plans"
    )


def _writing(write: WriteTools | type[WriteTools]) -> tuple[_ToolDefinition, ...]:
    return (
        _ToolDefinition("Apply a plan", write.apply_plan, AppliedView, toolset="plans"),
        _ToolDefinition(
            "Approve a plan that waits", write.approve_kept_plan, KeptView, toolset="rollouts"
        ),
        _ToolDefinition(
            "Remember or forget", write.keep_constraints, ConstraintsView, toolset="plans"
        ),
        _ToolDefinition(
            "Pause, resume, turn back", write.change_rollout, FollowView, toolset="rollouts"
        ),
        _ToolDefinition(
            "Go back to an earlier plan", write.rollback, RollbackView, toolset="plans"
        ),
        _ToolDefinition(
            "Delete what was generated", write.reset_placements, ResetView, toolset="plans"
        ),
    )


def _add(provider: LocalProvider, item: _ToolDefinition, annotations: ToolAnnotations) -> None:
    provider.add_tool(
        _Tool.from_function(
            item.method,
            title=item.title,
            annotations=annotations,
            output_schema=outline(item.result),
            meta=item.meta,
            icons=[_icon(item, annotations)],
        )
    )


def _icon(item: _ToolDefinition, annotations: ToolAnnotations) -> Icon:
    if annotations is not _READS:
        return icons.WRITES
    return icons.PLANS if item.toolset == "plans" else icons.READS


class _Tool(FunctionTool):
    """A tool whose definition has no metadata of FastMCP's own: each costs nine tokens."""

    def to_mcp_tool(self, **overrides: Any) -> Tool:
        """Return the definition that a client gets."""
        return super().to_mcp_tool(**{"_meta": self.meta, **overrides})
