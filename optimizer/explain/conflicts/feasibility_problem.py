"""The problem that asks whether workloads can run together, without regard to values.

Every required assignment is worth the same and everything else nothing, so any solver can decide:
all can run if and only if the optimum has all required assignments.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Decision, Solution
from optimizer.explain.conflicts.limit_kinds import RelaxableLimit, RequiredReplicas
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem

WORTH = 1000.0
"""Value of a required assignment; prices of a sizing problem add up to less than half of it."""


def replica_counts(decision: Decision) -> dict[str, int]:
    """Return on how many clusters each workload runs."""
    found: dict[str, int] = {}
    for item in decision.assignments:
        found[item.workload] = found.get(item.workload, 0) + 1
    return found


def required_without(
    required: RequiredReplicas, relaxing: Iterable[RelaxableLimit]
) -> dict[str, int]:
    """Return how many replicas of each workload must run where some limits are relaxed."""
    free = {limit.keeps_running for limit in relaxing}
    return {name: count for name, count in required.counts.items() if name not in free}


def feasibility_problem(fleet: Fleet, needed: Mapping[str, int]) -> Problem | None:
    """Return the problem that asks whether all that is needed can run.

    None: a workload has no candidate assignment at all, so it can't.
    """
    problem = formulate(without_costs(fleet, needed))
    if not set(needed) <= set(problem.workload_index):
        return None
    worth = np.array([WORTH if item.name in needed else 0.0 for item in problem.workloads])
    usable = ~np.isnan(problem.values)
    return replace(problem, values=np.where(usable, worth[:, np.newaxis], np.nan))


def all_placed(solution: Solution, count: int) -> bool | None:
    """Tell whether a solution has all `count` required assignments, or proves that none can.

    None: the solution is not good enough and its bound is not tight enough to decide.
    """
    least = (count - 0.5) * WORTH
    if solution.objective_value > least:
        return True
    if solution.bound is not None and solution.bound < least:
        return False
    return None


def without_costs(fleet: Fleet, needed: Mapping[str, int]) -> Fleet:
    """Return the fleet with the replicas that are needed, no priorities, and no costs."""
    return replace(
        fleet,
        workloads=tuple(
            replace(item, replicas=needed.get(item.name, item.replicas), priority=0, move_cost=0.0)
            for item in fleet.workloads
        ),
        clusters=tuple(
            replace(item, candidates=tuple(replace(own, cost=0.0) for own in item.candidates))
            for item in fleet.clusters
        ),
    )
