"""What explanations ask of a solver; the shell passes it in, with a budget of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optimizer.problem import Floats, Problem
from optimizer.results import Status
from optimizer.rules import Row
from optimizer.solution import Solution


class Spent(Exception):
    """The time for explanations is over; raised by the shell, and caught where a part begins."""


Resolve = Callable[[Problem], Solution]
"""Solves a problem; raises Spent where the budget is."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a linear program gave: values by variable, and prices by row where it was relaxed."""

    status: Status
    values: Floats
    prices: Floats


Linear = Callable[[Floats, Sequence[Row], bool], Answer]
"""Maximises weights under rows, over 0 or 1, or anything between where the last is true.

Raises Spent as Resolve does.
"""
