"""Compares decisions tier by tier, highest priority first."""

from collections.abc import Sequence

from optimizer.domain.solution import Decision
from optimizer.model.problem import Problem, tier_values
from optimizer.model.rules import violations

SAME_VALUE = 1e-6
"""Values of a tier that differ by at most this much are equal: sums of scores are rounded."""


def better(problem: Problem, one: Decision | None, other: Decision | None) -> Decision | None:
    """Return the better of two decisions, the first where equal; infeasible ones never win."""
    if other is None or other == one or violations(problem, other):
        return one
    if one is None or worth_more(tier_values(problem, other), tier_values(problem, one)):
        return other
    return one


def worth_more(values: Sequence[float], than: Sequence[float]) -> bool:
    """Tell whether the first tier with different values has the larger one."""
    for value, other in zip(values, than, strict=True):
        if abs(value - other) > SAME_VALUE:
            return value > other
    return False


def equal(problem: Problem, one: Decision, other: Decision) -> bool:
    """Tell whether another decision is feasible and has the same value in every tier."""
    if other == one:
        return True
    values = zip(tier_values(problem, one), tier_values(problem, other), strict=True)
    return not violations(problem, other) and all(abs(a - b) <= SAME_VALUE for a, b in values)
