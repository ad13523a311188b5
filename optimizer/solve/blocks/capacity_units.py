"""Amounts as small whole numbers of capacity units, kind by kind, for the knapsacks.

Where no exact unit is small enough, demands are rounded down and supplies up: the bound stays
valid, and the true capacity becomes a linking row.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from optimizer.model.problem import Problem, largest_supplies
from optimizer.solve.tuning import (
    AMOUNT_TOLERANCE,
    APPROXIMATE_UNITS,
    EXACT_UNITS,
    LARGEST_DENOMINATOR,
)


@dataclass(frozen=True, slots=True)
class CapacityUnits:
    """`unit`: the amount of one unit of a kind; `exact`: kinds whose amounts are whole units."""

    unit: dict[str, float]
    exact: frozenset[str]

    def demand(self, kind: str, amount: float) -> int:
        """Return a demand in units, rounded down."""
        if kind in self.exact:
            return round(amount / self.unit[kind])
        return floor(amount / self.unit[kind] + AMOUNT_TOLERANCE)

    def supply(self, kind: str, amount: float) -> int:
        """Return a supply in units, rounded up unless the kind is exact."""
        whole = amount / self.unit[kind]
        return (
            floor(whole + AMOUNT_TOLERANCE)
            if kind in self.exact
            else ceil(whole - AMOUNT_TOLERANCE)
        )


def capacity_units(problem: Problem) -> CapacityUnits:
    """Return the units of the kinds of a problem."""
    supplied = problem.base.tolist()
    for resource, amount in largest_supplies(problem.policies):
        supplied[resource] += amount
    unit: dict[str, float] = {}
    exact = set()
    for kind in dict.fromkeys(resource.kind for resource in problem.resources):
        asked = {workload.amount for workload in problem.workloads if workload.kind == kind}
        largest = max(
            (
                supplied[index]
                for index, resource in enumerate(problem.resources)
                if resource.kind == kind
            ),
            default=0.0,
        )
        common = _greatest_common_divisor(asked)
        if common is not None and largest / common <= EXACT_UNITS:
            unit[kind] = common
            exact.add(kind)
        else:
            unit[kind] = largest / APPROXIMATE_UNITS or 1.0
    return CapacityUnits(unit, frozenset(exact))


def _greatest_common_divisor(amounts: Iterable[float]) -> float | None:
    """Return the largest amount that divides all positive amounts; None if there is none."""
    exact = [
        Fraction(amount).limit_denominator(LARGEST_DENOMINATOR) for amount in amounts if amount > 0
    ]
    if any(
        float(found) != amount
        for found, amount in zip(exact, (a for a in amounts if a > 0), strict=True)
    ):
        return None
    if not exact:
        return 1.0
    denominator = lcm(*(found.denominator for found in exact))
    return float(Fraction(gcd(*(int(found * denominator) for found in exact)), denominator))
