"""Problems in which something must be: the price of a place, a policy, or of doing without one.

What must be is put as a task above all others that only it serves, so that any engine, which knows
nothing of force, keeps to it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Assignment, Decision
from optimizer.explain.solver_ports import ProblemSolver
from optimizer.model.problem import (
    ClusterResource,
    Problem,
    ProblemPolicy,
    ProblemWorkload,
    tier_values,
    upper_bound,
)
from optimizer.wire.explanation import ObjectiveLoss

FORCED = "forced "
"""Kind and name of what is added; no Kubernetes name has a space."""


class ForcedSolution(NamedTuple):
    """The best decision under force; possible is None where that is not known."""

    possible: bool | None
    decision: Decision = Decision()
    lost: ObjectiveLoss | None = None


def forcing_workload(
    problem: Problem, workload: str, clusters: Iterable[int], *, times: int = 1
) -> Problem:
    """Return the problem in which a workload must run on so many of some clusters."""
    number = problem.workload_index[workload]
    if problem.workloads[number].replicas == 1 and len(problem.tiers) == 1:
        return _worth_most(problem, number, clusters)
    there = [ClusterResource(cluster, FORCED, workload) for cluster in clusters]
    task = ProblemWorkload(
        name=FORCED + workload,
        app="",
        kind=FORCED,
        amount=1.0,
        replicas=times,
        priority=_above(problem),
        near=((workload,),),
    )
    return _added(problem, task, there, np.ones(len(there)), problem.policies)


def _worth_most(problem: Problem, task: int, clusters: Iterable[int]) -> Problem:
    """Return the problem in which one task's place is worth more than all others together.

    It keeps the shape that engines solve fast; a place must be on one of some clusters.
    """
    values, there = problem.values.copy(), np.isin(problem.resource_cluster, list(clusters))
    values[task] += upper_bound(problem) - _lower_bound(problem) + 1.0
    values[task, ~there] = np.nan
    return replace(problem, values=values)


def _lower_bound(problem: Problem) -> float:
    """Return a value that no decision falls below."""
    worst = np.fmin.reduce(problem.values, axis=1, initial=0.0)
    replicas = np.array([task.replicas for task in problem.workloads])
    return float(worst @ replicas) + sum(option.value for option in problem.policies)


def forcing_policy(problem: Problem, option: int) -> Problem:
    """Return the problem in which a policy must be enforced."""
    chosen, new = problem.policies[option], len(problem.resources)
    served = chosen._replace(supplies=(*chosen.supplies, (new, 1.0)))
    options = (*problem.policies[:option], served, *problem.policies[option + 1 :])
    task = ProblemWorkload(FORCED + chosen.name, "", FORCED, 1.0, priority=_above(problem))
    slot = ClusterResource(chosen.cluster, FORCED, chosen.name)
    return _added(problem, task, [slot], np.zeros(1), options)


def excluding(problem: Problem, places: Iterable[Assignment]) -> Problem:
    """Return the problem that lacks some places."""
    usable = ~np.isnan(problem.values)
    for place in places:
        found = problem.indexes(place)
        if found is not None:
            usable[found] = False
    return problem.restricted(usable, np.ones(len(problem.policies), dtype=np.bool_))


def solve_forced(
    problem: Problem,
    before: Decision,
    changed: Problem,
    solve: ProblemSolver,
    *,
    times: int = 0,
    workload: str = "",
) -> ForcedSolution:
    """Solve a changed problem; `times`: how often what is forced, or a workload, must be there.

    What is lost is against the decision before, by the values of the problem as it is.
    """
    solution = solve(changed)
    decision, there = _without_force(solution.decision)
    if workload and not any(task.kind == FORCED for task in changed.workloads):
        there = sum(place.workload == workload for place in decision.assignments)
    if solution.status == "Optimal" or (solution.status == "Infeasible" and not times):
        if there < times:
            return ForcedSolution(possible=False)
        return ForcedSolution(True, decision, objective_loss(problem, before, decision))
    if solution.status == "Infeasible":
        return ForcedSolution(possible=False)
    return ForcedSolution(possible=None)


def objective_loss(problem: Problem, before: Decision, after: Decision) -> ObjectiveLoss:
    """Return how much less one decision is worth than another."""
    pairs = zip(tier_values(problem, before), tier_values(problem, after), strict=True)
    by_tier = [round(old - new, 9) + 0.0 for old, new in pairs]
    named = dict(zip(problem.tiers, by_tier, strict=False)) if len(problem.tiers) > 1 else {}
    return ObjectiveLoss(total=round(sum(by_tier), 9) + 0.0, by_priority=named)


def _without_force(decision: Decision) -> tuple[Decision, int]:
    kept = tuple(place for place in decision.assignments if not place.workload.startswith(FORCED))
    return Decision(decision.policies, kept), len(decision.assignments) - len(kept)


def _above(problem: Problem) -> int:
    return max(problem.tiers, default=0) + 1


def _added(
    problem: Problem,
    task: ProblemWorkload,
    slots: Sequence[ClusterResource],
    base: Floats,
    options: tuple[ProblemPolicy, ...],
) -> Problem:
    """Return the problem with a task that runs on some new slots alone, worth 1 each."""
    tasks, wide = problem.values.shape[0] + 1, problem.values.shape[1] + len(slots)
    values = np.full((tasks, wide), np.nan)
    values[:-1, : wide - len(slots)] = problem.values
    values[-1, wide - len(slots) :] = 1.0
    return replace(
        problem,
        resources=(*problem.resources, *slots),
        policies=options,
        workloads=(*problem.workloads, task),
        values=values,
        base=np.concatenate([problem.base, base]),
        limits=tuple(
            replace(
                item,
                counted=np.pad(item.counted, (0, len(slots))),
                workloads=np.pad(item.workloads, (0, 1)),
                assignments=None
                if item.assignments is None
                else np.pad(item.assignments, ((0, 1), (0, len(slots)))),
            )
            for item in problem.limits
        ),
    )
