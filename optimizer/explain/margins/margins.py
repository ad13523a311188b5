"""What is lost without a place: first what decisions at hand show, then what solving does.

Any decision without the place bounds the margin from above, and one that loses nothing settles it,
since nothing is better than the best. Where equals can change hands there is such a decision;
elsewhere one is sought in which the policies stay and the workload's best other devices change
hands. Each that is met on the way tells of every place that it lacks. What is left is chosen among
the decisions close to the best one, or solved without the place.
"""

from collections.abc import Iterator
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from optimizer.domain.arrays import Bools
from optimizer.domain.solution import Assignment, Decision, Solution
from optimizer.domain.time_left import TimeLeft, unlimited
from optimizer.explain.margins.forced_problems import excluding, objective_loss, solve_forced
from optimizer.explain.margins.symmetric_exchange import SymmetricExchange
from optimizer.explain.solver_ports import (
    BudgetExceeded,
    FindNearOptimal,
    NearOptimalDecisions,
    ProblemSolver,
    find_none,
)
from optimizer.model.problem import Problem, objective, tier_values
from optimizer.model.rules import violations
from optimizer.wire.explanation import ObjectiveLoss

_NEAR = 8
"""Other devices of a workload whose places change hands in a first, small problem."""


class Margin(NamedTuple):
    """What is lost in a decision without a place; exact: no other loses less."""

    place: int
    lost: ObjectiveLoss
    exact: bool
    decision: Decision


class Margins:
    """The margins of an optimal solution's places, by number, ever more of them exact."""

    def __init__(
        self,
        problem: Problem,
        solution: Solution,
        resolve: ProblemSolver,
        nearby: FindNearOptimal = find_none,
        time_left: TimeLeft = unlimited,
    ) -> None:
        self._problem, self._decision = problem, solution.decision
        self._resolve, self._nearby, self._time_left = resolve, nearby, time_left
        self._equals = SymmetricExchange(problem)
        self._values = dict[int, tuple[tuple[float, ...], Decision]]()
        self._open = set(range(len(solution.decision.assignments)))

    def bounds(self) -> Iterator[Margin]:
        """Yield what decisions show that are found without solving the whole problem again."""
        for number in sorted(self._open):
            if not self._time_left():
                raise BudgetExceeded
            other = self._equals.without(self._decision, self._place(number))
            if other is not None:
                yield self._settled(number, other)
        for number in sorted(self._open):
            if number in self._open:
                yield from self._close(number)
        repair = _Neighbourhood(self._problem, self._decision)
        for number in sorted(self._open):
            if number in self._open:
                repaired = repair.without(self._place(number), self._resolve)
                if repaired.status != "NotSolved":
                    yield from self._met(repaired.decision)

    def exact(self) -> Iterator[Margin]:
        """Yield the margins that are left, those first that are known to be small."""
        for number in self._smallest_first():
            yield from self._sought(number)
        for number in self._smallest_first():
            without = excluding(self._problem, [self._place(number)])
            found = solve_forced(self._problem, self._decision, without, self._resolve)
            if found.lost is not None:
                yield from self._best(number, found.decision)

    def _smallest_first(self) -> Iterator[int]:
        """Yield the places whose margins are open when their turn comes."""
        every = sorted(self._open, key=lambda number: (self._most(number), number))
        yield from (number for number in every if number in self._open)

    def _close(self, number: int) -> Iterator[Margin]:
        """Yield a margin that is known from decisions close to the best one."""
        found = self._near.without(self._place(number), self._most(number))
        known = self._values.get(number)
        if found.status == "Infeasible" and known is not None:
            yield from self._best(number, known[1])
        if found.status == "Optimal":
            yield from self._found(number, found.decision)

    def _sought(self, number: int) -> Iterator[Margin]:
        if not self._time_left():
            raise BudgetExceeded
        found = self._near.search_without(self._place(number))
        if found.status == "Optimal":
            yield from self._found(number, found.decision)
        elif found.status == "Feasible":
            yield from self._met(found.decision)

    def _found(self, number: int, best: Decision) -> Iterator[Margin]:
        """Yield what the best decision without a place tells, which equals of it may lack."""
        place = self._place(number)
        if place in best.assignments:
            best = self._equals.without(best, place) or best
        if place not in best.assignments and not violations(self._problem, best):
            yield from self._best(number, best)

    def _best(self, number: int, best: Decision) -> Iterator[Margin]:
        yield self._settled(number, best)
        yield from self._met(best)

    def _place(self, number: int) -> Assignment:
        return self._decision.assignments[number]

    def _settled(self, number: int, best: Decision) -> Margin:
        self._open.discard(number)
        return Margin(
            number, objective_loss(self._problem, self._decision, best), exact=True, decision=best
        )

    def _met(self, decision: Decision) -> Iterator[Margin]:
        """Yield what a decision tells of the open places that it lacks."""
        if violations(self._problem, decision):
            return
        values, taken = tier_values(self._problem, decision), set(decision.assignments)
        loses = objective_loss(self._problem, self._decision, decision)
        nothing = not loses.total and not any(loses.by_priority.values())
        for number in sorted(self._open):
            known = self._values.get(number)
            if self._place(number) not in taken and (known is None or values > known[0]):
                self._values[number] = values, decision
                yield Margin(number, loses, exact=nothing, decision=decision)
                self._open -= {number} if nothing else set()

    def _most(self, number: int) -> float:
        """Return what is lost at most without a place, as far as it is known."""
        known = self._values.get(number)
        return (
            inf if known is None else objective_loss(self._problem, self._decision, known[1]).total
        )

    @cached_property
    def _near(self) -> NearOptimalDecisions:
        value = objective(self._problem, self._decision)
        return self._nearby(self._problem, value)


class _Neighbourhood:
    """Decisions without a place in which the policies stay, and most workloads too."""

    def __init__(self, problem: Problem, decision: Decision) -> None:
        chosen = [problem.policy_index[item] for item in decision.policies]
        there = np.array(problem.base > 0)
        for option in chosen:
            there[[slot for slot, _ in problem.policies[option].supplies]] = True
        taken = [at for item in decision.assignments if (at := problem.indexes(item)) is not None]
        self._problem = problem
        self._options = np.isin(np.arange(len(problem.policies)), chosen)
        self._usable = ~np.isnan(problem.values) & there
        self._task = np.array([task for task, _ in taken], dtype=np.int64)
        self._slot = np.array([slot for _, slot in taken], dtype=np.int64)
        self._idle = np.setdiff1d(np.arange(len(problem.workloads)), self._task)

    def without(self, place: Assignment, resolve: ProblemSolver) -> Solution:
        """Return the best solution without a place near the one that has it."""
        found = self._problem.indexes(place)
        if found is None:
            raise KeyError(place)
        free = self._free(*found)
        return resolve(self._problem.restricted(free, self._options))

    def _free(self, task: int, slot: int) -> Bools:
        """Return the places of a small problem: what runs on few slots may change hands."""
        values = np.where(self._usable[task], self._problem.values[task], -np.inf)
        best = np.argsort(-values, kind="stable")[:_NEAR]
        near = np.union1d(best[np.isfinite(values[best])], [slot])
        free = np.zeros_like(self._usable)
        moving = np.isin(self._slot, near)
        movers = np.union1d(np.concatenate([self._task[moving], self._idle]), [task])
        corner = np.ix_(movers, near)
        free[corner] = self._usable[corner]
        free[self._task, self._slot] = True
        free[task, slot] = False
        return free
