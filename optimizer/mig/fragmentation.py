"""How many instances a layout still has room for, and how many are lost by its placement starts."""

from functools import cache

from optimizer.domain.gpu_layout import ProfileCounts
from optimizer.mig.geometry import Geometry
from optimizer.mig.layouts import Layout, layouts, layouts_with_counts, profile_counts


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
