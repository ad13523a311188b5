"""Repairs that an administrator can make: a GPU more instead of some devices more.

Where the policies of a cluster are generated from its GPUs, another GPU can be divided like one of
those that are there. It supplies the devices of that layout whichever policy is enforced, because a
layout is chosen for each GPU independently.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from math import ceil

from optimizer.domain.fleet import GPU_KIND, Fleet, ProfileCounts, Supply
from optimizer.explain.conflicts.fleet_changes import AddedSupply, LimitChange, with_supplies
from optimizer.mig.gpu_pools import device_counts


def as_gpus(fleet: Fleet, changes: Sequence[LimitChange]) -> tuple[LimitChange, ...]:
    """Return changes in which devices are added as whole GPUs wherever GPUs are described."""
    return tuple(
        _as_gpu(fleet, item) if isinstance(item, AddedSupply) else item for item in changes
    )


def _as_gpu(fleet: Fleet, change: AddedSupply) -> LimitChange:
    kind, device, amount = change.supply
    counts = {
        layout: dict(device_counts(layout)).get(device, 0) for layout in _layouts(fleet, change)
    }
    most = max(counts.values(), default=0)
    if kind != GPU_KIND or not most:
        return change
    layout = next(item for item, count in counts.items() if count == most)
    gpus = ceil(amount / most)
    added = tuple(
        Supply(GPU_KIND, name, float(count * gpus)) for name, count in device_counts(layout)
    )
    many = "a GPU" if gpus == 1 else f"{gpus} GPUs"
    message = f"add {many} to cluster {change.cluster}, {layout_words(layout)}"
    apply = partial(with_supplies, cluster=change.cluster, added=added)
    return LimitChange(message, apply, change.size)


def _layouts(fleet: Fleet, change: AddedSupply) -> Iterator[ProfileCounts | None]:
    """Yield the layouts of the cluster's GPUs in the policies that can be generated for it."""
    own = next(item for item in fleet.clusters if item.name == change.cluster)
    nodes = (node for candidate in own.candidates for node in candidate.layouts)
    return chain.from_iterable(node.gpus for node in nodes)


def layout_words(layout: ProfileCounts | None) -> str:
    """Return a layout in words, such as `divided into 2 x 3g.48gb`."""
    if layout is None:
        return "not divided"
    return "divided into " + " and ".join(f"{count} x {name}" for name, count in layout)
