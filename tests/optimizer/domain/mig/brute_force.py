"""MIG by brute force; only the tables are shared with the product.

A layout is a subset of all placements. It takes no memory slice twice, the media engines at most
once, and at most the compute slices of the GPU. The supplies of a group are all sums.
"""

from collections import Counter
from itertools import combinations, product

from optimizer.domain.mig.geometry import Geometry

Placement = tuple[str, int]


def placements(geometry: Geometry, numbers: set[int]) -> list[Placement]:
    return [
        (profile.name, start)
        for profile in geometry.profiles
        if profile.profile_id in numbers
        for start in profile.starts
    ]


def legal_layouts(geometry: Geometry, numbers: set[int]) -> set[frozenset[Placement]]:
    shape = {profile.name: profile for profile in geometry.profiles}
    possible = placements(geometry, numbers)
    found = {frozenset[Placement]()}
    for size in range(1, geometry.memory_slices + 1):
        bigger = {
            layout | {extra}
            for layout in found
            if len(layout) == size - 1
            for extra in possible
            if extra not in layout
        }
        found |= {layout for layout in bigger if _legal(geometry, shape, layout)}
    return found


def _legal(geometry: Geometry, shape: dict, layout: frozenset[Placement]) -> bool:
    slices = [
        piece for name, start in layout for piece in range(start, start + shape[name].memory_slices)
    ]
    return (
        len(slices) == len(set(slices))
        and max(slices, default=0) < geometry.memory_slices
        and sum(shape[name].compute_slices for name, _ in layout) <= geometry.compute_slices
        and sum(name.endswith("+me") for name, _ in layout) <= 1
    )


def counted(layout: frozenset[Placement]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(name for name, _ in layout).items()))


def legal_counts(geometry: Geometry, numbers: set[int]) -> set[tuple[tuple[str, int], ...]]:
    """By the rule for empty GPUs: compute and memory slices suffice, one set of media engines."""
    profiles = [item for item in geometry.profiles if item.profile_id in numbers]
    found = set()
    for amounts in product(*(range(item.max_instances + 1) for item in profiles)):
        pairs = list(zip(profiles, amounts, strict=True))
        if (
            sum(item.compute_slices * amount for item, amount in pairs) <= geometry.compute_slices
            and sum(item.memory_slices * amount for item, amount in pairs) <= geometry.memory_slices
            and sum(amount for item, amount in pairs if item.name.endswith("+me")) <= 1
        ):
            found.add(tuple(sorted((item.name, amount) for item, amount in pairs if amount)))
    return found


def inclusion_maximal(multisets: set[tuple[tuple[str, int], ...]]) -> set:
    return {
        small
        for small in multisets
        if not any(
            small != big and all(dict(big).get(name, 0) >= amount for name, amount in small)
            for big in multisets
        )
    }


def best_value(requests: dict[str, list[tuple[int, float]]], supply: dict[str, int]) -> float:
    """The best value of requests that fit a supply, over all subsets."""
    total = 0.0
    for device, items in requests.items():
        total += max(
            sum(value for _, value in chosen)
            for size in range(len(items) + 1)
            for chosen in combinations(items, size)
            if sum(amount for amount, _ in chosen) <= supply.get(device, 0)
        )
    return total
