"""What explanations ask of a solver; the shell passes it in, with a budget of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Assignment, Decision, Solution
from optimizer.domain.status import Status
from optimizer.model.problem import Problem
from optimizer.model.rules import Row


class BudgetExceeded(Exception):
    """The time for explanations is over; raised by the shell, and caught where a part begins."""


ProblemSolver = Callable[[Problem], Solution]
"""Solves a problem; raises Spent where the budget is."""


@dataclass(frozen=True, slots=True)
class LinearSolution:
    """What a linear program gave: values by variable, and prices by row where it was relaxed."""

    status: Status
    values: Floats
    prices: Floats


LinearSolver = Callable[[Floats, Sequence[Row], bool], LinearSolution]
"""Maximises weights under rows, over 0 or 1, or anything between where the last is true.

Raises Spent as Resolve does.
"""


class NearOptimalDecisions(Protocol):
    """Knows the decisions of a problem that lose little against its optimum."""

    def without(self, place: Assignment, most: float, /) -> Solution:
        """Return the best decision that lacks a place and loses less than `most`.

        Infeasible: there is none. NotSolved: not known.
        """
        ...

    def search_without(self, place: Assignment, /) -> Solution:
        """Return a good decision that lacks a place; Optimal where nothing can be better."""
        ...

    def with_workload(self, name: str, /) -> Solution:
        """Return the best decision that has a workload, or one just like it, as often as it runs.

        NotSolved: not known.
        """
        ...


FindNearOptimal = Callable[[Problem, float], NearOptimalDecisions]
"""Returns what is near the optimum of a problem, given what that is worth."""


class _NoDecisions:
    def without(self, _place: Assignment, _most: float) -> Solution:
        return Solution("NotSolved", Decision(), 0.0, None, 0.0, "none")

    def with_workload(self, _name: str) -> Solution:
        return Solution("NotSolved", Decision(), 0.0, None, 0.0, "none")

    def search_without(self, _place: Assignment) -> Solution:
        return Solution("NotSolved", Decision(), 0.0, None, 0.0, "none")


def find_none(_problem: Problem, _value: float) -> NearOptimalDecisions:
    """Know nothing: whole problems are solved instead."""
    return _NoDecisions()
