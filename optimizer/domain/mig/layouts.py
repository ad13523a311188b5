"""The legal layouts of one GPU, empty or partly occupied.

A layout is legal if no two instances overlap in memory slices, at most one takes the media engines,
and the sum of compute slices is at most the GPU's. On the GPUs of `geometry` the starts imply the
sum of compute slices.

Nobody reports which instance of a cluster lies on which GPU: `packed_gpus` returns a legal answer.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from typing import NamedTuple

from optimizer.domain.fleet import ProfileCounts
from optimizer.domain.mig.geometry import GEOMETRIES, Geometry, Profile


class GpuInstance(NamedTuple):
    """A GPU instance by its profile's name and its first memory slice."""

    profile: str
    start: int


Layout = tuple[GpuInstance, ...]
"""The instances of one GPU by their start."""


def layouts(
    geometry: Geometry, kept: Iterable[GpuInstance] = (), among: Collection[str] | None = None
) -> Iterator[Layout]:
    """Yield every legal layout that contains the instances `kept`, the smallest one included.

    `among`: the profiles that may be added; None allows all. Yields nothing if `kept` is illegal.
    """
    by_start = attrgetter("start")
    held = tuple(sorted(kept, key=by_start))
    if conflict(geometry, held):
        return
    profiles = [item for item in geometry.profiles if among is None or item.name in among]
    taken, compute, media = 0, geometry.compute_slices, False
    for profile, start in _profiles(geometry, held):
        taken |= profile.mask(start)
        compute -= profile.compute_slices
        media |= profile.media
    for added in _grow(geometry, profiles, _Room(taken, compute, media), 0):
        yield tuple(sorted((*held, *added), key=by_start))


def conflict(geometry: Geometry, layout: Iterable[GpuInstance]) -> str:
    """Return why instances can't be on one GPU together; empty if they can."""
    taken: dict[int, GpuInstance] = {}
    found = Counter[str]()
    compute = 0
    for instance in layout:
        profile = geometry.profile(instance.profile)
        if profile is None:
            known = ", ".join(item.name for item in geometry.profiles)
            return f"{geometry.model} has no profile {instance.profile}; it has {known}"
        if instance.start not in profile.starts:
            starts = ", ".join(map(str, profile.starts))
            return f"{profile.name} can't start at {instance.start}, only at {starts}"
        for piece in range(instance.start, instance.start + profile.memory_slices):
            if piece in taken:
                return f"{_instance_text(instance)} overlaps {_instance_text(taken[piece])}"
            taken[piece] = instance
        found["media"] += profile.media
        compute += profile.compute_slices
    if found["media"] > 1:
        return "only one instance can have the media engines"
    return "" if compute <= geometry.compute_slices else f"{compute} compute slices are too many"


def profile_counts(geometry: Geometry, layout: Iterable[GpuInstance]) -> ProfileCounts:
    """Return the number of instances of each profile in a layout."""
    return in_geometry_order(geometry, Counter(instance.profile for instance in layout))


def in_geometry_order(geometry: Geometry, counts: Mapping[str, int]) -> ProfileCounts:
    """Return counts by profile name as a ProfileCounts."""
    names = (profile.name for profile in geometry.profiles)
    return tuple((name, counts[name]) for name in names if counts.get(name))


@cache
def distinct_profile_counts(
    geometry: Geometry, kept: Layout = (), among: frozenset[str] | None = None
) -> tuple[ProfileCounts, ...]:
    """Return the distinct profile counts of the layouts that contain `kept`, sorted."""
    return tuple(
        sorted({profile_counts(geometry, item) for item in layouts(geometry, kept, among)})
    )


@cache
def maximal_profile_counts(
    geometry: Geometry, kept: Layout = (), among: frozenset[str] | None = None
) -> tuple[ProfileCounts, ...]:
    """Return the profile counts that no other layout's counts contain."""
    counted = [(item, dict(item)) for item in distinct_profile_counts(geometry, kept, among)]
    return tuple(
        item
        for item, counts in counted
        if not any(
            item != other and all(amount <= more.get(name, 0) for name, amount in counts.items())
            for other, more in counted
        )
    )


def layouts_with_counts(
    geometry: Geometry, counts: ProfileCounts, kept: Layout = ()
) -> tuple[Layout, ...]:
    """Return the legal layouts with exactly these profile counts that contain `kept`."""
    among = frozenset(name for name, _ in counts)
    return tuple(
        layout
        for layout in layouts(geometry, kept, among)
        if profile_counts(geometry, layout) == counts
    )


def _grow(
    geometry: Geometry, profiles: list[Profile], room: "_Room", first: int
) -> Iterator[Layout]:
    yield ()
    for start in range(first, geometry.memory_slices):
        for profile in profiles:
            left = room.without(profile, start)
            if left is not None:
                for others in _grow(geometry, profiles, left, start + profile.memory_slices):
                    yield (GpuInstance(profile.name, start), *others)


class _Room(NamedTuple):
    taken: int
    compute: int
    media: bool

    def without(self, profile: Profile, start: int) -> "_Room | None":
        """Return the room left after one more instance; None if the instance does not fit."""
        mask = profile.mask(start)
        if (
            start not in profile.starts
            or self.taken & mask
            or profile.compute_slices > self.compute
            or (profile.media and self.media)
        ):
            return None
        return _Room(
            self.taken | mask, self.compute - profile.compute_slices, self.media or profile.media
        )


def _profiles(geometry: Geometry, layout: Layout) -> Iterator[tuple[Profile, int]]:
    for instance in layout:
        profile = geometry.profile(instance.profile)
        if profile is not None:
            yield profile, instance.start


def _instance_text(instance: GpuInstance) -> str:
    return f"{instance.profile} at {instance.start}"


@cache
def addable_instances(geometry: Geometry, layout: Layout) -> tuple[int, ...]:
    """Return how many instances of each profile alone could still be added."""
    return tuple(
        max(len(more) for more in layouts(geometry, layout, {profile.name})) - len(layout)
        for profile in geometry.profiles
    )


@cache
def fragmentation(geometry: Geometry, layout: Layout) -> int:
    """Return the compute slices lost by the placement starts; 0 where none are.

    Sum over profiles p of compute_p * (most instances of p that any layout with the same instances
    has room for - instances of p that this layout has room for). A 1g at memory slice 0 loses the
    4g that fits where the 1g starts at 6.
    """
    here = addable_instances(geometry, layout)
    best = _best_room(geometry, profile_counts(geometry, layout))
    return sum(
        profile.compute_slices * (most - now)
        for profile, most, now in zip(geometry.profiles, best, here, strict=True)
    )


def least_fragmented_layout(
    geometry: Geometry, counts: ProfileCounts, kept: Layout = ()
) -> Layout | None:
    """Return the least fragmented legal layout of these instances that holds `kept`, or None."""
    legal = layouts_with_counts(geometry, counts, kept)
    return min(legal, key=lambda layout: (fragmentation(geometry, layout), layout), default=None)


@cache
def _best_room(geometry: Geometry, counts: ProfileCounts) -> tuple[int, ...]:
    rooms = [
        addable_instances(geometry, layout) for layout in layouts_with_counts(geometry, counts)
    ]
    return tuple(map(max, zip(*rooms, strict=True)))


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
