"""Which of two decisions is better: tier by tier, highest priority first."""

from collections.abc import Sequence

from optimizer.domain.solution import Decision
from optimizer.model.problem import Problem, tier_values
from optimizer.model.rules import violations

SAME_VALUE = 1e-6
"""Sums that differ by so little differ by rounding alone."""


def better(problem: Problem, one: Decision | None, other: Decision | None) -> Decision | None:
    """Return the better of two decisions, the first of equal ones; what breaks a rule is none."""
    if other is None or other == one or violations(problem, other):
        return one
    if one is None or worth_more(tier_values(problem, other), tier_values(problem, one)):
        return other
    return one


def worth_more(values: Sequence[float], than: Sequence[float]) -> bool:
    """Tell whether the first tier that differs has more."""
    for value, other in zip(values, than, strict=True):
        if abs(value - other) > SAME_VALUE:
            return value > other
    return False


def equal(problem: Problem, one: Decision, other: Decision) -> bool:
    """Tell whether another decision keeps every rule and has as much in every tier."""
    if other == one:
        return True
    values = zip(tier_values(problem, one), tier_values(problem, other), strict=True)
    return not violations(problem, other) and all(abs(a - b) <= SAME_VALUE for a, b in values)
