"""Force or forbid a part of a decision, and solve again: what the objective then loses.

Solvers can't force a decision. So an artificial workload of the highest priority is added, which
can run only together with the forced part: the optimum contains it if that is possible. The loss is
then computed with the values of the original problem.

Swapping two interchangeable workloads or clusters keeps every rule and the objective (exchange
argument; keys in `model.symmetry`). So an assignment that such a swap removes has the margin 0,
which needs no solver.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Assignment, Decision, Solution
from optimizer.explain.case import ProblemSolver
from optimizer.model.objective import tier_values, upper_bound
from optimizer.model.parameters import ClusterResource, ProblemPolicy, ProblemWorkload
from optimizer.model.problem import Problem
from optimizer.model.symmetry import ClusterForm, classes, cluster_forms, workload_keys
from optimizer.wire.explanation import ObjectiveLoss

_NOTHING: Mapping[int, int] = {}

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


def excluding(problem: Problem, assignment: Assignment) -> Problem:
    """Return the problem without a candidate assignment."""
    usable = ~np.isnan(problem.values)
    for found in problem.indexes_of([assignment]):
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


def solve_with_workload(
    problem: Problem, solution: Solution, workload: str, times: int, solve: ProblemSolver
) -> ForcedSolution:
    """Return the best decision in which a workload runs on so many clusters.

    A swap of equals is tried before the problem is solved.
    """
    best = solution.decision
    if solution.status not in ("Optimal", "Infeasible"):
        return ForcedSolution(possible=None)
    if times == 1 and solution.status == "Optimal":
        known = SymmetricExchange(problem).with_workload(best, workload)
        if known is not None:
            return ForcedSolution(True, known, objective_loss(problem, best, known))
    forced = forcing_workload(problem, workload, range(len(problem.clusters)), times=times)
    return solve_forced(problem, best, forced, solve, times=times, workload=workload)


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


class SymmetricExchange:
    """Swaps the interchangeable workloads and clusters of one problem."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def without(self, decision: Decision, assignment: Assignment) -> Decision | None:
        """Return a decision of equal value without an assignment; None where no swap gives one."""
        found = self._swaps(decision, assignment)
        return next((item for item in found if assignment not in item.assignments), None)

    def with_workload(self, decision: Decision, name: str) -> Decision | None:
        """Return a decision of equal value in which a workload runs in place of an equal one."""
        own, running = self._problem.workload_index.get(name, -1), self._running(decision)
        equal = (other for other in self._workloads.get(own, ()) if other in running)
        other = next(equal, None)
        return None if other is None else self._swapped(decision, _swap([own], [other]))

    def _swaps(self, decision: Decision, assignment: Assignment) -> Iterator[Decision]:
        """Yield what swaps of its workload and of its cluster give, first with those that run."""
        running = self._running(decision)
        for own, resource in self._problem.indexes_of([assignment]):
            for other in sorted(self._workloads.get(own, ()), key=lambda one: one not in running):
                yield self._swapped(decision, _swap([own], [other]))
            cluster = self._problem.resources[resource].cluster
            for other in self._clusters.get(cluster, ()):
                one, two = self._forms[cluster], self._forms[other]
                resources = _swap(one.resources, two.resources)
                yield self._swapped(decision, {}, resources, _swap(one.policies, two.policies))

    def _running(self, decision: Decision) -> set[int]:
        return {workload for workload, _ in self._problem.indexes_of(decision.assignments)}

    def _swapped(
        self,
        decision: Decision,
        workloads: Mapping[int, int],
        resources: Mapping[int, int] = _NOTHING,
        policies: Mapping[int, int] = _NOTHING,
    ) -> Decision:
        enforced, pairs = self._problem.numbered(decision)
        return self._problem.named(
            (policies.get(item, item) for item in enforced),
            ((workloads.get(own, own), resources.get(at, at)) for own, at in pairs),
        )

    @cached_property
    def _workloads(self) -> Mapping[int, list[int]]:
        """By workload, those that it can be swapped with; what affinity rules name has none."""
        return _others(workload_keys(self._problem))

    @cached_property
    def _clusters(self) -> Mapping[int, list[int]]:
        """By cluster, those that it can be swapped with."""
        return _others({at: form.key for at, form in enumerate(self._forms) if form.resources})

    @cached_property
    def _forms(self) -> Sequence[ClusterForm]:
        return cluster_forms(self._problem)


def _others(keys: Mapping[int, Hashable]) -> Mapping[int, list[int]]:
    """Return for each number those with an equal key."""
    return {
        number: [other for other in own if other != number]
        for own in classes(keys)
        for number in own
    }


def _swap(one: Sequence[int], other: Sequence[int]) -> Mapping[int, int]:
    return dict(zip((*one, *other), (*other, *one), strict=True))
