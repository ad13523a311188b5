"""Amounts of a kind: what a cluster supplies, what workloads can use, and steps to add it in."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import gcd, lcm

from optimizer.domain.fleet import Cluster, Fleet, Supply, Workload

MAX_STEPS = 2**12
"""Steps in which a supply is sized: an amount is exact to a 4096th of what workloads can use."""

_LARGEST_DENOMINATOR = 1000
"""Amounts are taken as multiples of a thousandth to find their common divisor."""


def useful_amount(fleet: Fleet, kind: str) -> float:
    """Return how much of a kind all workloads together can use; 1 where they ask for nothing.

    A workload that asks for an amount of 0 still needs a device to run on.
    """
    used = (item.replicas * amount for item in fleet.workloads for amount in asked(item, kind))
    return sum(used) or 1.0


def asked(workload: Workload, kind: str) -> Iterator[float]:
    """Yield the amounts of a kind that one replica of a workload asks for."""
    if workload.kind == kind:
        yield workload.amount
    yield from (amount for extra, amount in workload.requests if extra == kind)


def supplied(cluster: Cluster) -> Iterator[Supply]:
    """Yield what a cluster has without a policy, and with each of its candidate policies."""
    base: dict[tuple[str, str], float] = {}
    for supply in cluster.base:
        base[supply[:2]] = base.get(supply[:2], 0.0) + supply.amount
    yield from (Supply(*resource, amount) for resource, amount in base.items())
    for candidate in cluster.candidates:
        for supply in candidate.supplies:
            yield supply._replace(amount=supply.amount + base.get(supply[:2], 0.0))


def supply_step(fleet: Fleet, kind: str) -> float:
    """Return the least amount that a supply is changed by: what all amounts are multiples of."""
    amounts = [amount for item in fleet.workloads for amount in asked(item, kind)]
    amounts += [item.amount for c in fleet.clusters for item in c.supplies if item.kind == kind]
    return max(_common_divisor(amounts), useful_amount(fleet, kind) / MAX_STEPS)


def doubling_steps(fleet: Fleet, kind: str) -> Iterator[float]:
    """Yield a step, 2 steps, 4 steps ... that together are enough for all workloads."""
    step = supply_step(fleet, kind)
    while step < 2 * useful_amount(fleet, kind):
        yield step
        step *= 2


def _common_divisor(amounts: Iterable[float]) -> float:
    above = [amount for amount in amounts if amount > 0]
    parts = [Fraction(amount).limit_denominator(_LARGEST_DENOMINATOR) for amount in above]
    if not parts or min(parts) == 0:
        return min(above, default=1.0)
    below = lcm(*(part.denominator for part in parts))
    return float(Fraction(gcd(*(int(part * below) for part in parts)), below))
