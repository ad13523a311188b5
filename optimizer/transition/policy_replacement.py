"""What keeps running while the policy of a pool is replaced by another.

mig-parted gives a GPU another layout only while nothing of it is in use, and passes over GPUs that
have theirs already; but where MIG is turned on or off on one GPU of a node, it clears and resets
all of the node (https://github.com/NVIDIA/mig-parted, cmd/nvidia-mig-parted/apply). So where the
layouts are known, the GPUs that keep theirs keep their workloads; where they are not, none does.
Kinds that have no devices, such as cpu, are no part of a GPU: what both policies supply stays.
GPUs of no named device are GPUs all the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from optimizer.domain.fleet import CandidatePolicy, Fleet
from optimizer.domain.gpu_layout import GPU_KIND, NodeLayout, ProfileCounts, gpu_name
from optimizer.domain.solution import PolicyEnforcement
from optimizer.mig.gpu_patterns import device_counts
from optimizer.model.problem import NO_DEVICE, ClusterResource


class PolicyReplacement(NamedTuple):
    """What replacing a policy asks.

    `stays`: by device, how much stays, but never more than both policies supply; None: all of
    that. `idle`: the GPUs that must be idle before; None: all, which are not known by name.
    """

    stays: Mapping[str, float] | None
    idle: tuple[str, ...] | None

    def kept(self, slot: ClusterResource, before: float, after: float, *, of_gpus: bool) -> float:
        """Return what stays of a slot of which the policies supply so much."""
        both = min(before, after)
        if self.stays is None or not of_gpus:
            return both
        return min(both, self.stays.get(slot.device, 0.0))


def gpu_kinds(slots: Iterable[ClusterResource]) -> frozenset[str]:
    """Return the kinds, of those that policies supply, that may be parts of GPUs."""
    return frozenset(
        slot.kind for slot in slots if slot.device != NO_DEVICE or slot.kind == GPU_KIND
    )


ReplacementLookup = Callable[[PolicyEnforcement, PolicyEnforcement], PolicyReplacement]
"""What replacing one policy of a pool by another asks."""

_UNKNOWN = PolicyReplacement({}, None)
_NOTHING = PolicyReplacement(None, ())


def nothing_stays(_old: PolicyEnforcement, _new: PolicyEnforcement) -> PolicyReplacement:
    """Take it that no device outlasts the replacing of a policy."""
    return _UNKNOWN


def policy_replacements(fleet: Fleet) -> ReplacementLookup:
    """Return what replacing policies asks by what a fleet's candidates say of their GPUs."""
    known = {
        PolicyEnforcement(cluster.name, item.policy): item
        for cluster in fleet.clusters
        for item in cluster.candidates
    }

    def found(old: PolicyEnforcement, new: PolicyEnforcement) -> PolicyReplacement:
        if fleet.busy_devices_stay:
            return _NOTHING
        return _swap(_layouts(known.get(old)), _layouts(known.get(new)))

    return found


def _layouts(item: CandidatePolicy | None) -> tuple[NodeLayout, ...]:
    return (item.layouts or item.declared_layouts) if item else ()


def _swap(before: Iterable[NodeLayout], after: Iterable[NodeLayout]) -> PolicyReplacement:
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
    """Yield the GPUs of a node that are not touched."""
    pairs = list(zip(before.gpus, after.gpus, strict=False))
    switched = any((old is None) != (new is None) for old, new in pairs)
    if len(before.gpus) == len(after.gpus) and not switched:
        yield from (index for index, pair in enumerate(pairs) if _same(*pair))


def _same(old: ProfileCounts | None, new: ProfileCounts | None) -> bool:
    return dict(device_counts(old)) == dict(device_counts(new))


def _usable(before: NodeLayout, after: NodeLayout, gpu: int) -> dict[str, int]:
    """Return what workloads can have of a GPU that stays, by device."""
    taken = Counter[str]()
    for layout in (before, after):
        if layout.taken:
            taken |= Counter(dict(layout.taken[gpu]))
    return {
        device: amount - taken[device]
        for device, amount in device_counts(after.gpus[gpu])
        if amount > taken[device]
    }
