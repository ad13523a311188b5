"""What the objective loses in the best decision without an assignment: why it is here.

Any decision without the assignment bounds its margin from above. If one loses nothing, the margin
is 0, because no decision is better than the optimum. So each decision that is found bounds the
margins of all assignments that it lacks.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, islice
from math import inf
from typing import NamedTuple

import numpy as np

from optimizer.domain.solution import Assignment, Decision, Solution, TimeLeft, unlimited
from optimizer.explain.case import BudgetExceeded, ProblemSolver
from optimizer.explain.forced_problems import (
    SymmetricExchange,
    excluding,
    objective_loss,
    solve_forced,
)
from optimizer.model.allocation import Allocation
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.model.wire_values import assignment_value, placed
from optimizer.solve.greedy import fill_remaining
from optimizer.wire.explanation import AssignmentReason, ObjectiveLoss, RunnerUp

_SHOWN = 3
"""Workloads on a better place that are told."""


class Margin(NamedTuple):
    """What a decision without an assignment loses; exact: no other loses less."""

    lost: ObjectiveLoss
    exact: bool
    decision: Decision


class Margins:
    """The margins of an optimal solution's assignments, or of those of some workloads.

    `known`: by number of the assignment, its margin, or the least bound so far.
    """

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        solve: ProblemSolver,
        time_left: TimeLeft = unlimited,
        is_about: Callable[[str], bool] = bool,
    ) -> None:
        self._problem, self._solution, self._optimum = problem, solution, solution.decision
        self._solve, self._time_left = solve, time_left
        self._symmetry = SymmetricExchange(problem)
        self._allocation = Allocation(problem, self._optimum)
        placed_on = enumerate(self._optimum.assignments)
        self._asked = [number for number, item in placed_on if is_about(item.workload)]
        self.known = dict[int, Margin]()

    def steps(self) -> Iterator[None]:
        """Find what needs no solver, then solve for one assignment at a time.

        Raises BudgetExceeded.
        """
        for number, assignment in self._open():
            other = self._symmetry.without(self._optimum, assignment)
            if other is not None:
                self._close(number, other)
        for _, assignment in self._open():
            self._bound(self._refilled(assignment))
        yield
        for number, assignment in self._open():
            without = excluding(self._problem, assignment)
            forced = solve_forced(self._problem, self._optimum, without, self._solve)
            if forced.lost is not None:
                self._close(number, forced.decision)
            yield

    def reasons(self) -> Iterator[AssignmentReason]:
        """Yield each assignment with its runner-up and its margin, or a bound of the margin."""
        every = tuple(placed(self._problem, self._solution))
        for number in self._asked:
            item = every[number]
            assignment, known = self._optimum.assignments[number], self.known.get(number)
            others = known.decision.assignments if known else ()
            yield AssignmentReason(
                **item.model_dump(),
                runner_up=runner_up(self._allocation, assignment),
                margin=known.lost if known and known.exact else None,
                at_most=known.lost if known else None,
                instead=tuple(
                    assignment_value(other)
                    for other in others
                    if other.workload == assignment.workload
                ),
            )

    def _open(self) -> Iterator[tuple[int, Assignment]]:
        """Yield the assignments without an exact margin, by number; the smallest bounds first."""

        def bound(number: int) -> float:
            return self.known[number].lost.total if number in self.known else inf

        for number in sorted(self._asked, key=bound):
            if number not in self.known or not self.known[number].exact:
                if not self._time_left():
                    raise BudgetExceeded
                yield number, self._optimum.assignments[number]

    def _refilled(self, assignment: Assignment) -> Decision:
        """Return the optimum without an assignment, and with what has room then."""
        left = tuple(item for item in self._optimum.assignments if item != assignment)
        return fill_remaining(
            excluding(self._problem, assignment),
            replace(self._optimum, assignments=left),
            lambda: not self._time_left(),
        )

    def _close(self, number: int, best: Decision) -> None:
        """Learn from the best decision without an assignment."""
        self.known[number] = Margin(self._loss(best), exact=True, decision=best)
        self._bound(best)

    def _bound(self, decision: Decision) -> None:
        """Learn the margins that a decision bounds: of the open assignments that it lacks."""
        if violations(self._problem, decision):
            return
        loss, taken = self._loss(decision), set(decision.assignments)
        found = Margin(loss, exact=not any(_by_priority(loss)), decision=decision)
        for number in self._asked:
            assignment, known = self._optimum.assignments[number], self.known.get(number)
            less = known is None or _by_priority(loss) < _by_priority(known.lost)
            if assignment not in taken and less and not (known and known.exact):
                self.known[number] = found

    def _loss(self, decision: Decision) -> ObjectiveLoss:
        return objective_loss(self._problem, self._optimum, decision)


def _by_priority(loss: ObjectiveLoss) -> tuple[float, ...]:
    """Return the losses by priority, the highest first."""
    return tuple(loss.by_priority.values()) or (loss.total,)


def runner_up(allocation: Allocation, assignment: Assignment) -> RunnerUp | None:
    """Return the best resource by score alone that a workload is not on; None if none is usable.

    The gain of staying on a current cluster does not count.
    """
    problem = allocation.problem
    found = problem.indexes(assignment)
    if found is None:
        return None
    workload, taken = found
    scores = problem.values[workload].copy()
    staying = np.isin(
        problem.resource_cluster, np.array(problem.workloads[workload].running, dtype=np.int64)
    )
    scores[staying] -= problem.workloads[workload].move_cost
    scores[allocation.resources_of[workload]] = np.nan
    if np.isnan(scores).all():
        return None
    best = int(np.nanargmax(scores))
    other = problem.assignment(workload, best)
    return RunnerUp(
        cluster=other.cluster,
        device=other.device,
        score=float(scores[best]),
        taken_by=_taken_by(allocation, workload, taken, best),
    )


def _taken_by(allocation: Allocation, workload: int, here: int, there: int) -> tuple[str, ...]:
    """Return who has a resource, or else its cluster, if that leaves no room for a workload."""
    problem = allocation.problem
    allocation.unassign(workload, here)
    same = np.flatnonzero(problem.resource_cluster == problem.resource_cluster[there]).tolist()
    users = allocation.workloads_on[there] or chain(*map(allocation.workloads_on.__getitem__, same))
    room = allocation.has_capacity(workload, there)
    names = () if room else tuple(problem.workloads[i].name for i in islice(users, _SHOWN))
    allocation.assign(workload, here)
    return names
