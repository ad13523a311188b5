"""What explanations ask of a solver; the shell passes it in, with a budget of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optimizer.problem import Floats, Problem
from optimizer.results import Status
from optimizer.rules import Row
from optimizer.solution import Solution

Resolve = Callable[[Problem], Solution]
"""Solves a problem; status NotSolved where the budget is spent."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a linear program gave: values by variable, and prices by row where it was relaxed."""

    status: Status
    values: Floats
    prices: Floats


Linear = Callable[[Floats, Sequence[Row], bool], Answer]
"""Maximises weights under rows, over 0 or 1, or anything between where the last is true."""
