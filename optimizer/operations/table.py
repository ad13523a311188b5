"""The table of operations that the HTTP API has; other doors ask some of them, too."""

from typing import Any

from optimizer.operations.constraints import keep_constraints, list_constraints
from optimizer.operations.fleet import fleet, follow_fleet, placement_status
from optimizer.operations.kept_placements import (
    approve_plan,
    list_optimizations,
    show_optimization,
    show_waiting_plan,
)
from optimizer.operations.operation import Operation
from optimizer.operations.planning import optimize, plan
from optimizer.operations.recorded_plans import list_plans, rollback, show_plan
from optimizer.operations.rollouts import (
    change_rollout,
    follow_rollout,
    list_rollouts,
    rollout_status,
)
from optimizer.operations.scores import list_scores, metrics, score_history, scorer_history
from optimizer.operations.writes import reset

OPERATIONS: tuple[Operation[..., Any], ...] = (
    list_scores,
    placement_status,
    reset,
    fleet,
    follow_fleet,
    score_history,
    scorer_history,
    optimize,
    plan,
    list_plans,
    show_plan,
    rollback,
    list_rollouts,
    rollout_status,
    follow_rollout,
    change_rollout,
    list_optimizations,
    show_optimization,
    show_waiting_plan,
    approve_plan,
    list_constraints,
    keep_constraints,
    metrics,
)
"""In the order of the OpenAPI document."""
