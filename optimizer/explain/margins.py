"""Margins: what the objective loses in the best decision without one assignment.

Any decision without the assignment bounds its margin from above. If one loses nothing, the margin
is 0, because no decision is better than the optimum. Such decisions come, the cheapest first, from

1. swaps of interchangeable workloads or clusters (`symmetric_exchange`),
2. the columns of which all near-optimal decisions consist (`NearOptimalDecisions`),
3. small problems around the optimum (`neighbourhood`),
4. the whole problem without the assignment.

Each decision found bounds the margins of all assignments that it lacks.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from optimizer.domain.arrays import Bools
from optimizer.domain.solution import Assignment, Decision, Solution, TimeLeft, unlimited
from optimizer.explain.case import (
    BudgetExceeded,
    FindNearOptimal,
    NearOptimalDecisions,
    ProblemSolver,
    find_none,
)
from optimizer.explain.forced_problems import (
    SymmetricExchange,
    excluding,
    objective_loss,
    solve_forced,
)
from optimizer.explain.tuning import MARGIN_RESOURCES
from optimizer.explain.wire_values import assignment_value
from optimizer.model.problem import Problem, objective, tier_values
from optimizer.model.rules import violations
from optimizer.wire.explanation import AssignmentReason, ObjectiveLoss, Placed, RunnerUp


class Margin(NamedTuple):
    """What a decision without an assignment, by number, loses; exact: no other loses less."""

    number: int
    lost: ObjectiveLoss
    exact: bool
    decision: Decision


class Margins:
    """The margins of an optimal solution's assignments, ever more of them exact."""

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        solve: ProblemSolver,
        find_near: FindNearOptimal = find_none,
        time_left: TimeLeft = unlimited,
    ) -> None:
        self._problem, self._optimum = problem, solution.decision
        self._solve, self._find_near, self._time_left = solve, find_near, time_left
        self._symmetry = SymmetricExchange(problem)
        self._best = dict[int, tuple[tuple[float, ...], Decision]]()
        self._open = set(range(len(solution.decision.assignments)))

    def bounds(self) -> Iterator[Margin]:
        """Yield what steps 1 to 3 find, without solving the whole problem again."""
        for number in sorted(self._open):
            if not self._time_left():
                raise BudgetExceeded
            other = self._symmetry.without(self._optimum, self._assignment(number))
            if other is not None:
                yield self._closed(number, other)
        for number in sorted(self._open):
            if number in self._open:
                yield from self._near_optimal(number)
        neighbourhood = Neighbourhood(self._problem, self._optimum)
        for number in sorted(self._open):
            if number in self._open:
                found = neighbourhood.without(self._assignment(number), self._solve)
                if found.status != "NotSolved":
                    yield from self._bounded_by(found.decision)

    def exact(self) -> Iterator[Margin]:
        """Yield the margins that are left, the smallest bounds first: a short search, then step 4.

        A search can end early because its decision is as good as the optimum.
        """
        for number in self._smallest_first():
            yield from self._searched(number)
        for number in self._smallest_first():
            without = excluding(self._problem, [self._assignment(number)])
            found = solve_forced(self._problem, self._optimum, without, self._solve)
            if found.lost is not None:
                yield from self._closed_by(number, found.decision)

    def _smallest_first(self) -> Iterator[int]:
        """Yield the open margins by their bounds; one that was closed meanwhile is left out."""
        every = sorted(self._open, key=lambda number: (self._upper_bound(number), number))
        yield from (number for number in every if number in self._open)

    def _near_optimal(self, number: int) -> Iterator[Margin]:
        """Yield what the near-optimal decisions tell of an assignment."""
        found = self._near.without(self._assignment(number), self._upper_bound(number))
        known = self._best.get(number)
        if found.status == "Infeasible" and known is not None:
            yield from self._closed_by(number, known[1])
        if found.status == "Optimal":
            yield from self._closed_by_equal(number, found.decision)

    def _searched(self, number: int) -> Iterator[Margin]:
        if not self._time_left():
            raise BudgetExceeded
        found = self._near.search_without(self._assignment(number))
        if found.status == "Optimal":
            yield from self._closed_by_equal(number, found.decision)
        elif found.status == "Feasible":
            yield from self._bounded_by(found.decision)

    def _closed_by_equal(self, number: int, best: Decision) -> Iterator[Margin]:
        """Yield what the best decision tells: it, or a swap in it, may lack the assignment."""
        assignment = self._assignment(number)
        if assignment in best.assignments:
            best = self._symmetry.without(best, assignment) or best
        if assignment not in best.assignments and not violations(self._problem, best):
            yield from self._closed_by(number, best)

    def _closed_by(self, number: int, best: Decision) -> Iterator[Margin]:
        yield self._closed(number, best)
        yield from self._bounded_by(best)

    def _assignment(self, number: int) -> Assignment:
        return self._optimum.assignments[number]

    def _closed(self, number: int, best: Decision) -> Margin:
        self._open.discard(number)
        return Margin(number, self._loss(best), exact=True, decision=best)

    def _bounded_by(self, decision: Decision) -> Iterator[Margin]:
        """Yield the better bounds that a decision gives for the open assignments it lacks."""
        if violations(self._problem, decision):
            return
        values, taken = tier_values(self._problem, decision), set(decision.assignments)
        loss = self._loss(decision)
        nothing = not loss.total and not any(loss.by_priority.values())
        for number in sorted(self._open):
            known = self._best.get(number)
            if self._assignment(number) not in taken and (known is None or values > known[0]):
                self._best[number] = values, decision
                yield Margin(number, loss, exact=nothing, decision=decision)
                self._open -= {number} if nothing else set()

    def _upper_bound(self, number: int) -> float:
        """Return what is lost at most without an assignment; infinity where nothing is known."""
        known = self._best.get(number)
        return inf if known is None else self._loss(known[1]).total

    def _loss(self, decision: Decision) -> ObjectiveLoss:
        return objective_loss(self._problem, self._optimum, decision)

    @cached_property
    def _near(self) -> NearOptimalDecisions:
        return self._find_near(self._problem, objective(self._problem, self._optimum))


class Neighbourhood:
    """Decisions in which the policies stay, and most workloads too."""

    def __init__(self, problem: Problem, decision: Decision) -> None:
        enforced = [problem.policy_index[item] for item in decision.policies]
        exists = np.array(problem.base > 0)
        for policy in enforced:
            exists[[resource for resource, _ in problem.policies[policy].supplies]] = True
        taken = problem.indexes_of(decision.assignments)
        self._problem = problem
        self._policies = np.isin(np.arange(len(problem.policies)), enforced)
        self._usable = ~np.isnan(problem.values) & exists
        self._workload = np.array([workload for workload, _ in taken], dtype=np.int64)
        self._resource = np.array([resource for _, resource in taken], dtype=np.int64)
        self._idle = np.setdiff1d(np.arange(len(problem.workloads)), self._workload)

    def without(self, assignment: Assignment, solve: ProblemSolver) -> Solution:
        """Return the best solution without an assignment in the neighbourhood."""
        found = self._problem.indexes(assignment)
        if found is None:
            raise KeyError(assignment)
        return solve(self._problem.restricted(self._free(*found), self._policies))

    def _free(self, workload: int, resource: int) -> Bools:
        """Return the candidate assignments [workloads, resources] that may be decided again.

        These are the present ones, and on the workload's best resources those of all workloads that
        run there or nowhere.
        """
        values = np.where(self._usable[workload], self._problem.values[workload], -np.inf)
        best = np.argsort(-values, kind="stable")[:MARGIN_RESOURCES]
        near = np.union1d(best[np.isfinite(values[best])], [resource])
        free = np.zeros_like(self._usable)
        moving = self._workload[np.isin(self._resource, near)]
        movers = np.union1d(np.concatenate([moving, self._idle]), [workload])
        corner = np.ix_(movers, near)
        free[corner] = self._usable[corner]
        free[self._workload, self._resource] = True
        free[workload, resource] = False
        return free


def assignment_reasons(
    problem: Problem, solution: Solution, placed: Sequence[Placed], found: Mapping[int, Margin]
) -> Iterator[AssignmentReason]:
    """Yield every assignment with its runner-up and its margin, or an upper bound of the margin."""
    for number, (item, assignment) in enumerate(
        zip(placed, solution.decision.assignments, strict=True)
    ):
        known = found.get(number)
        others = known.decision.assignments if known else ()
        yield AssignmentReason(
            **item.model_dump(),
            runner_up=runner_up(problem, assignment),
            margin=known.lost if known and known.exact else None,
            at_most=known.lost if known else None,
            instead=tuple(
                assignment_value(other) for other in others if other.workload == assignment.workload
            ),
        )


def runner_up(problem: Problem, assignment: Assignment) -> RunnerUp | None:
    """Return the workload's best other resource by score alone; None where no other is usable.

    The gain of staying on a current cluster does not count.
    """
    found = problem.indexes(assignment)
    if found is None:
        return None
    workload, taken = found
    scores = problem.values[workload].copy()
    staying = np.isin(
        problem.resource_cluster, np.array(problem.workloads[workload].current, dtype=np.int64)
    )
    scores[staying] -= problem.workloads[workload].move_cost
    scores[taken] = np.nan
    if np.isnan(scores).all():
        return None
    best = int(np.nanargmax(scores))
    other = problem.assignment(workload, best)
    return RunnerUp(cluster=other.cluster, device=other.device, score=float(scores[best]))
