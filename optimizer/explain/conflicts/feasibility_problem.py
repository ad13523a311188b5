"""Whether a workload can run while everything that is placed keeps running, whatever it is worth.

The question is put as a problem in which each wanted place is worth the same, so that any engine
answers it: it is possible if and only if the optimum has all of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from optimizer.domain.fleet import CandidatePolicy, Fleet, Workload
from optimizer.domain.solution import Decision, Solution
from optimizer.explain.conflicts.relaxable_limits import RelaxableLimit, RequiredReplicas
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem

WORTH = 1000.0
"""Value of each wanted place; what is minimised besides never adds up to one."""


def replica_counts(decision: Decision) -> dict[str, int]:
    """Return on how many clusters each workload runs."""
    found: dict[str, int] = {}
    for place in decision.assignments:
        found[place.workload] = found.get(place.workload, 0) + 1
    return found


def required_without(wanted: RequiredReplicas, without: Iterable[RelaxableLimit]) -> dict[str, int]:
    """Return what must run where some limits do not hold."""
    free = {barrier.keeps_running for barrier in without if barrier.keeps_running}
    return {name: count for name, count in wanted.counts.items() if name not in free}


def feasibility_problem(fleet: Fleet, needed: Mapping[str, int]) -> Problem | None:
    """Return the problem that asks whether all that is needed can run; None: it can't."""
    problem = formulate(without_costs(fleet, needed))
    if not set(needed) <= set(problem.workload_index):
        return None
    worth = np.array([WORTH if task.name in needed else 0.0 for task in problem.workloads])
    usable = ~np.isnan(problem.values)
    return replace(problem, values=np.where(usable, worth[:, np.newaxis], np.nan))


def all_placed(solution: Solution, count: int) -> bool | None:
    """Tell whether a solution of a requirement has all places, or proves that none can."""
    most = (count - 0.5) * WORTH
    if solution.objective_value > most:
        return True
    if solution.bound is not None and solution.bound < most:
        return False
    return None


def without_costs(fleet: Fleet, needed: Mapping[str, int]) -> Fleet:
    """Return the fleet in which moving and changing cost nothing and no workload comes first."""

    def wish(item: Workload) -> Workload:
        count = needed.get(item.name, item.replicas)
        return replace(item, replicas=count, priority=0, move_cost=0.0)

    def free(item: CandidatePolicy) -> CandidatePolicy:
        return replace(item, cost=0.0)

    return replace(
        fleet,
        workloads=tuple(wish(item) for item in fleet.workloads),
        clusters=tuple(
            replace(item, candidates=tuple(map(free, item.candidates))) for item in fleet.clusters
        ),
    )
