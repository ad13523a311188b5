"""What keeps running while one policy of a pool replaces another.

mig-parted changes the layout of a GPU only while the GPU is idle, and skips GPUs that already have
the wanted layout. Where MIG is turned on or off on one GPU of a node, it resets all GPUs of the
node (https://github.com/NVIDIA/mig-parted, cmd/nvidia-mig-parted/apply). Therefore:

- Where both layouts are known, workloads stay on the GPUs whose layout does not change.
- Where a layout is unknown, no workload on a GPU stays.
- A kind without devices, such as cpu, is no part of a GPU: the smaller supply of both stays.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from optimizer.domain.fleet import CandidatePolicy, Fleet, NodeLayout, gpu_name
from optimizer.domain.mig.gpu_pools import device_counts
from optimizer.domain.nodes import GPU_KIND
from optimizer.domain.solution import PolicyEnforcement
from optimizer.model.parameters import NO_DEVICE, ClusterResource


class PolicyReplacement(NamedTuple):
    """What stays during a replacement, and which GPUs have to be idle for it.

    `stays`: the amount of each device that stays, at most what both policies supply; None: all of
    that. `idle`: names of the GPUs that must be idle first; None: all of the pool, names unknown.
    """

    stays: Mapping[str, float] | None
    idle: tuple[str, ...] | None

    def kept(
        self, resource: ClusterResource, before: float, after: float, *, of_gpus: bool
    ) -> float:
        """Return the amount of a resource that stays; the policies supply `before` and `after`."""
        both = min(before, after)
        if self.stays is None or not of_gpus:
            return both
        return min(both, self.stays.get(resource.device, 0.0))


def gpu_kinds(resources: Iterable[ClusterResource]) -> frozenset[str]:
    """Return the kinds of these resources that may be parts of GPUs."""
    return frozenset(
        resource.kind
        for resource in resources
        if resource.device != NO_DEVICE or resource.kind == GPU_KIND
    )


ReplacementLookup = Callable[[PolicyEnforcement, PolicyEnforcement], PolicyReplacement]
"""Returns what stays and what must be idle when the second policy replaces the first."""

_UNKNOWN = PolicyReplacement({}, None)
_NOTHING = PolicyReplacement(None, ())


def nothing_stays(_old: PolicyEnforcement, _new: PolicyEnforcement) -> PolicyReplacement:
    """Return that no device stays: the safe assumption where layouts are unknown."""
    return _UNKNOWN


def policy_replacements(fleet: Fleet) -> ReplacementLookup:
    """Return the lookup for a fleet, from the layouts that its candidate policies state."""
    known = {
        PolicyEnforcement(cluster.name, item.policy): item
        for cluster in fleet.clusters
        for item in cluster.candidates
    }

    def lookup(old: PolicyEnforcement, new: PolicyEnforcement) -> PolicyReplacement:
        if fleet.busy_devices_stay:
            return _NOTHING
        return _replacement(_layouts(known.get(old)), _layouts(known.get(new)))

    return lookup


def _layouts(item: CandidatePolicy | None) -> tuple[NodeLayout, ...]:
    return (item.layouts or item.declared_layouts) if item else ()


def _replacement(before: Iterable[NodeLayout], after: Iterable[NodeLayout]) -> PolicyReplacement:
    old, new = ({item.node: item for item in found} for found in (before, after))
    if not old or not new:
        return _UNKNOWN
    stays, idle = Counter[str](), list[str]()
    for node in sorted({*old, *new}):
        first, second = old.get(node), new.get(node)
        kept = set(_kept(first, second)) if first and second else set[int]()
        count = max(len(item.gpus) for item in (first, second) if item)
        idle += [gpu_name(node, index) for index in range(count) if index not in kept]
        if first and second:
            for index in kept:
                stays.update(_usable(first, second, index))
    return PolicyReplacement(dict(stays), tuple(idle))


def _kept(before: NodeLayout, after: NodeLayout) -> Iterator[int]:
    """Yield the indexes of the GPUs of a node whose layout does not change."""
    pairs = list(zip(before.gpus, after.gpus, strict=False))
    switched = any((old is None) != (new is None) for old, new in pairs)
    if len(before.gpus) == len(after.gpus) and not switched:
        counts = (tuple(dict(device_counts(item)) for item in pair) for pair in pairs)
        yield from (index for index, (old, new) in enumerate(counts) if old == new)


def _usable(before: NodeLayout, after: NodeLayout, gpu: int) -> dict[str, int]:
    """Return how much of each device of an unchanged GPU workloads can use."""
    taken = Counter[str]()
    for layout in (before, after):
        if layout.taken:
            taken |= Counter(dict(layout.taken[gpu]))
    return {
        device: amount - taken[device]
        for device, amount in device_counts(after.gpus[gpu])
        if amount > taken[device]
    }
