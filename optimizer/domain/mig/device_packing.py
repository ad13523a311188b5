"""Which layouts the GPUs of a cluster have, by the numbers of devices that it supplies.

Nobody reports which instance lies on which GPU. What is returned here is one legal answer.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache

from optimizer.domain.fleet import ProfileCounts
from optimizer.domain.mig.geometry import GEOMETRIES, Geometry
from optimizer.domain.mig.layouts import distinct_profile_counts, in_geometry_order

PackedGpus = tuple[tuple[ProfileCounts, int], ...]
"""Numbers of equal GPUs, each with the instances that one of them has."""


def packed_gpus(geometry: Geometry, devices: Mapping[str, int], number: int = 0) -> PackedGpus:
    """Return GPUs that together have so many MIG devices of each name, and no others.

    `number` equal GPUs where that is possible, else as few equal ones as possible, else first fit,
    the largest instances first. Names that are no profile of the geometry are left out.
    """
    profiles = sorted(geometry.profiles, key=lambda item: -item.memory_slices)
    left = {item.name: devices[item.device] for item in profiles if devices.get(item.device, 0) > 0}
    equal = {
        many: counts
        for counts in _legal(geometry)
        if counts and left
        for many in [left.get(counts[0][0], 0) // counts[0][1]]
        if {name: amount * many for name, amount in counts} == left
    }
    if equal:
        many = number if number in equal else min(equal)
        return ((equal[many], many),)
    found = list[tuple[ProfileCounts, int]]()
    while left:
        one = Counter[str]()
        for name, amount in left.items():
            while one[name] < amount and _is_legal(geometry, {**one, name: one[name] + 1}):
                one[name] += 1
        many = min(left[name] // amount for name, amount in one.items() if amount)
        found.append((in_geometry_order(geometry, one), many))
        rest = {name: amount - many * one[name] for name, amount in left.items()}
        left = {name: amount for name, amount in rest.items() if amount}
    return tuple(found)


def geometries_with(devices: Mapping[str, int]) -> tuple[Geometry, ...]:
    """Return the geometries that have each of these MIG devices; those with fewest GPUs first."""
    having = [item for item in GEOMETRIES if all(map(item.profile, devices))]

    def gpus(item: Geometry) -> int:
        return sum(many for _, many in packed_gpus(item, devices))

    return tuple(sorted(having, key=gpus))


def _is_legal(geometry: Geometry, counts: Mapping[str, int]) -> bool:
    return in_geometry_order(geometry, counts) in _legal(geometry)


@cache
def _legal(geometry: Geometry) -> dict[ProfileCounts, None]:
    return dict.fromkeys(distinct_profile_counts(geometry))
