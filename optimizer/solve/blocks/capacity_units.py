"""Amounts as small whole numbers, kind by kind, as knapsacks need them.

Where that is impossible exactly, demands are rounded down and supplies up: bounds stay valid, and
the true capacity becomes a further row.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from optimizer.model.problem import Problem

MOST_UNITS = 512
"""The largest supply of a slot that knapsacks work with."""

_APPROXIMATE_UNITS = 64
_DENOMINATOR = 1_000


@dataclass(frozen=True, slots=True)
class CapacityUnits:
    """By kind, one unit as an amount; `exact`: the kinds whose amounts all are whole units."""

    unit: dict[str, float]
    exact: frozenset[str]

    def demand(self, kind: str, amount: float) -> int:
        """Return an amount asked for, in units."""
        if kind in self.exact:
            return round(amount / self.unit[kind])
        return floor(amount / self.unit[kind] + 1e-9)

    def supply(self, kind: str, amount: float) -> int:
        """Return an amount supplied, in units."""
        whole = amount / self.unit[kind]
        return floor(whole + 1e-9) if kind in self.exact else ceil(whole - 1e-9)


def capacity_units(problem: Problem) -> CapacityUnits:
    """Return the units of a problem's kinds."""
    supplied = [0.0] * len(problem.resources)
    for slot, amount in enumerate(problem.base.tolist()):
        supplied[slot] = amount
    for slot, amount in _largest_supplies(problem):
        supplied[slot] += amount
    unit: dict[str, float] = {}
    exact = set()
    for kind in dict.fromkeys(slot.kind for slot in problem.resources):
        asked = {task.amount for task in problem.workloads if task.kind == kind}
        largest = max(
            (supplied[index] for index, slot in enumerate(problem.resources) if slot.kind == kind),
            default=0.0,
        )
        common = _greatest_common_divisor(asked)
        if common is not None and largest / common <= MOST_UNITS:
            unit[kind] = common
            exact.add(kind)
        else:
            unit[kind] = largest / _APPROXIMATE_UNITS or 1.0
    return CapacityUnits(unit, frozenset(exact))


def _largest_supplies(problem: Problem) -> Iterator[tuple[int, float]]:
    """Yield, slot by slot, what each pool supplies at most."""
    best: dict[tuple[int, int, str], float] = {}
    for option in problem.policies:
        for slot, amount in option.supplies:
            key = slot, option.cluster, option.pool
            best[key] = max(best.get(key, 0.0), amount)
    for (slot, _, _), amount in best.items():
        yield slot, amount


def _greatest_common_divisor(amounts: Iterable[float]) -> float | None:
    """Return the largest amount of which all amounts are whole multiples; None if there is none."""
    exact = [Fraction(amount).limit_denominator(_DENOMINATOR) for amount in amounts if amount > 0]
    if any(
        float(found) != amount
        for found, amount in zip(exact, (a for a in amounts if a > 0), strict=True)
    ):
        return None
    if not exact:
        return 1.0
    denominator = lcm(*(found.denominator for found in exact))
    return float(Fraction(gcd(*(int(found * denominator) for found in exact)), denominator))
