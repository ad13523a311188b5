"""Problems in which a workload or a policy is forced, or an assignment is excluded.

Solvers can't force a decision. So an artificial workload of the highest priority is added, which
can run only together with the forced part: the optimum contains it if that is possible. The loss is
then computed with the values of the original problem.
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
"""Kind and name of artificial workloads and resources; no Kubernetes name has a space."""


class ForcedSolution(NamedTuple):
    """The best decision with what is forced; `possible` is None where that is not known."""

    possible: bool | None
    decision: Decision = Decision()
    lost: ObjectiveLoss | None = None


def forcing_workload(
    problem: Problem, workload: str, clusters: Iterable[int], *, times: int = 1
) -> Problem:
    """Return the problem in which a workload must run on `times` of some clusters."""
    number = problem.workload_index[workload]
    if problem.workloads[number].replicas == 1 and len(problem.tiers) == 1:
        return _worth_most(problem, number, clusters)
    there = [ClusterResource(cluster, FORCED, workload) for cluster in clusters]
    artificial = ProblemWorkload(
        name=FORCED + workload,
        app="",
        kind=FORCED,
        amount=1.0,
        replicas=times,
        priority=_above(problem),
        workload_affinity=((workload,),),
    )
    return _added(problem, artificial, there, np.ones(len(there)), problem.policies)


def _worth_most(problem: Problem, workload: int, clusters: Iterable[int]) -> Problem:
    """Return the problem in which one workload is worth more than all others together.

    It adds no artificial workload, which keeps the structure that solvers are fast on. The workload
    can run only on the given clusters.
    """
    values, there = problem.values.copy(), np.isin(problem.resource_cluster, list(clusters))
    values[workload] += upper_bound(problem) - _lower_bound(problem) + 1.0
    values[workload, ~there] = np.nan
    return replace(problem, values=values)


def _lower_bound(problem: Problem) -> float:
    """Return a value that no decision falls below."""
    worst = np.fmin.reduce(problem.values, axis=1, initial=0.0)
    replicas = np.array([item.replicas for item in problem.workloads])
    return float(worst @ replicas) + sum(item.value for item in problem.policies)


def forcing_policy(problem: Problem, policy: int) -> Problem:
    """Return the problem in which a policy must be enforced."""
    chosen, new = problem.policies[policy], len(problem.resources)
    served = chosen._replace(supplies=(*chosen.supplies, (new, 1.0)))
    policies = (*problem.policies[:policy], served, *problem.policies[policy + 1 :])
    artificial = ProblemWorkload(FORCED + chosen.name, "", FORCED, 1.0, priority=_above(problem))
    resource = ClusterResource(chosen.cluster, FORCED, chosen.name)
    return _added(problem, artificial, [resource], np.zeros(1), policies)


def excluding(problem: Problem, assignments: Iterable[Assignment]) -> Problem:
    """Return the problem without some candidate assignments."""
    usable = ~np.isnan(problem.values)
    for found in problem.indexes_of(assignments):
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
    """Solve a changed problem and return its decision in terms of the problem as it was.

    `times`: how many assignments of what is forced, or of `workload`, the decision must have.
    The loss is against the decision `before`.
    """
    solution = solve(changed)
    found = solution.decision
    kept = tuple(item for item in found.assignments if not item.workload.startswith(FORCED))
    decision, there = Decision(found.policies, kept), len(found.assignments) - len(kept)
    if workload and not any(item.kind == FORCED for item in changed.workloads):
        there = sum(assignment.workload == workload for assignment in decision.assignments)
    if solution.status == "Optimal" or (solution.status == "Infeasible" and not times):
        if there < times:
            return ForcedSolution(possible=False)
        return ForcedSolution(True, decision, objective_loss(problem, before, decision))
    if solution.status == "Infeasible":
        return ForcedSolution(possible=False)
    return ForcedSolution(possible=None)


def objective_loss(problem: Problem, before: Decision, after: Decision) -> ObjectiveLoss:
    """Return how much less `after` is worth than `before`, in total and by priority."""
    pairs = zip(tier_values(problem, before), tier_values(problem, after), strict=True)
    by_tier = [round(old - new, 9) + 0.0 for old, new in pairs]
    named = dict(zip(problem.tiers, by_tier, strict=False)) if len(problem.tiers) > 1 else {}
    return ObjectiveLoss(total=round(sum(by_tier), 9) + 0.0, by_priority=named)


def _above(problem: Problem) -> int:
    return max(problem.tiers, default=0) + 1


def _added(
    problem: Problem,
    artificial: ProblemWorkload,
    resources: Sequence[ClusterResource],
    base: Floats,
    policies: tuple[ProblemPolicy, ...],
) -> Problem:
    """Return the problem with an artificial workload that runs only on new resources."""
    height, wide = problem.values.shape[0] + 1, problem.values.shape[1] + len(resources)
    values = np.full((height, wide), np.nan)
    values[:-1, : wide - len(resources)] = problem.values
    values[-1, wide - len(resources) :] = 1.0
    return replace(
        problem,
        resources=(*problem.resources, *resources),
        policies=policies,
        workloads=(*problem.workloads, artificial),
        values=values,
        base=np.concatenate([problem.base, base]),
        limits=tuple(
            replace(
                item,
                counted=np.pad(item.counted, (0, len(resources))),
                workloads=np.pad(item.workloads, (0, 1)),
                assignments=None
                if item.assignments is None
                else np.pad(item.assignments, ((0, 1), (0, len(resources)))),
            )
            for item in problem.limits
        ),
    )
