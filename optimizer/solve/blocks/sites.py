"""Sites, the parts of clusters that are decided together, with their modes; and capacity units.

A capacity unit makes the amounts of a kind small whole numbers for the knapsacks. Where no exact
unit is small enough, demands are rounded down and supplies up: the bound stays valid, and the true
capacity becomes a linking row.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import ceil, floor, prod

from optimizer.domain.arrays import members_by_key
from optimizer.model.allocation import EXACT
from optimizer.model.parameters import ProblemPolicy, common_divisor, largest_supplies
from optimizer.model.problem import Problem

_MODES_PER_SITE = 1_000
"""Modes up to which a site is decided as one; they multiply with the pools."""

_EXACT_UNITS, _APPROXIMATE_UNITS = 512, 64
"""Units of the largest supply: up to the first, amounts are exact; else rounded to the second."""


@dataclass(frozen=True, slots=True)
class Site:
    """Resources that policies of the same pools supply, or one resource without any policy.

    `modes`: the policies of each mode, by number; the first mode has none.
    """

    cluster: int
    resources: tuple[int, ...]
    modes: tuple[tuple[int, ...], ...]


def sites_of(
    problem: Problem, resources: Mapping[int, int], policies: frozenset[int]
) -> list[Site] | None:
    """Return the sites of some resources; None where one has too many modes.

    `resources`: numbers of the relevant resources, with their clusters. `policies`: those that may
    be enforced.
    """
    by_cluster = members_by_key((cluster, resource) for resource, cluster in resources.items())
    pools: dict[int, dict[str, list[int]]] = {}
    for number, policy in enumerate(problem.policies):
        if number in policies and any(resource in resources for resource, _ in policy.supplies):
            pools.setdefault(policy.cluster, {}).setdefault(policy.pool, []).append(number)
    found = []
    for cluster, own in by_cluster.items():
        for members, groups in _connected(problem, own, pools.get(cluster, {})):
            if prod(1 + len(group) for group in groups) > _MODES_PER_SITE:
                return None
            modes = product(*([None, *group] for group in groups))
            chosen = tuple(tuple(o for o in mode if o is not None) for mode in modes)
            found.append(Site(cluster, tuple(sorted(members)), chosen))
    return found


def undominated_policies(problem: Problem, tied: frozenset[int]) -> frozenset[int]:
    """Return the policies without those that another one of their pool dominates.

    `tied`: policies with an entry in a linking row; they stay, and dominate none.
    """
    kept: set[int] = set()
    for members in problem.pools.values():
        free = [number for number in members if number not in tied]
        gone: set[int] = set()
        for number in free:
            rivals = (rival for rival in free if rival != number and rival not in gone)
            if any(_dominates(problem, rival, number) for rival in rivals):
                gone.add(number)
        kept |= set(members) - gone
    return frozenset(kept)


def _dominates(problem: Problem, rival: int, number: int) -> bool:
    """Tell whether a rival supplies as much of everything, costs no more, and wins a tie."""
    better, worse = problem.policies[rival], problem.policies[number]
    given = _amounts(better)
    enough = all(given.get(resource, -1.0) >= amount for resource, amount in worse.supplies)
    if not enough or better.value < worse.value:
        return False
    if worse.value == better.value and _amounts(worse) == given:
        return (not better.current, rival) < (not worse.current, number)
    return not worse.current or better.value > worse.value or better.current


def _amounts(policy: ProblemPolicy) -> dict[int, float]:
    amounts: dict[int, float] = {}
    for resource, amount in policy.supplies:
        amounts[resource] = amounts.get(resource, 0.0) + amount
    return amounts


def _connected(
    problem: Problem, resources: list[int], pools: Mapping[str, list[int]]
) -> Iterator[tuple[set[int], list[list[int]]]]:
    """Yield sets of resources that share pools, with the policies of each pool."""
    wanted = set(resources)
    groups: list[tuple[set[int], list[list[int]]]] = [({resource}, []) for resource in resources]
    for policies in pools.values():
        touched = {
            resource for policy in policies for resource, _ in problem.policies[policy].supplies
        } & wanted
        hit = [group for group in groups if group[0] & touched]
        groups = [group for group in groups if not group[0] & touched]
        resources_of = set().union(*(group[0] for group in hit))
        groups.append((resources_of, [*(pool for group in hit for pool in group[1]), policies]))
    yield from groups


@dataclass(frozen=True, slots=True)
class CapacityUnits:
    """`unit`: the amount of one unit of a kind; `exact`: kinds whose amounts are whole units."""

    unit: dict[str, float]
    exact: frozenset[str]

    def demand(self, kind: str, amount: float) -> int:
        """Return a demand in units, rounded down."""
        if kind in self.exact:
            return round(amount / self.unit[kind])
        return floor(amount / self.unit[kind] + EXACT)

    def supply(self, kind: str, amount: float) -> int:
        """Return a supply in units, rounded up unless the kind is exact."""
        whole = amount / self.unit[kind]
        return floor(whole + EXACT) if kind in self.exact else ceil(whole - EXACT)


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
        common = common_divisor(asked)
        if common is not None and largest / common <= _EXACT_UNITS:
            unit[kind] = common
            exact.add(kind)
        else:
            unit[kind] = largest / _APPROXIMATE_UNITS or 1.0
    return CapacityUnits(unit, frozenset(exact))
