"""The GPUs of a cluster by pool and node, and the layouts that each may get."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from optimizer.domain.fleet import GpuPattern, ProfileCounts
from optimizer.domain.mig.demand import Demand
from optimizer.domain.mig.geometry import Geometry
from optimizer.domain.mig.layouts import Layout, maximal_profile_counts, profile_counts
from optimizer.domain.nodes import WHOLE_GPU

ReconfigurationMode = Literal["gpu", "instance", "drain"]
"""When a GPU may change: `gpu` while idle, `instance` if busy instances stay, `drain` always."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU and its state; `layout` is None if it is unknown or MIG is disabled.

    `busy`: GPU instances in use. `foreign`: those in use by workloads that are not in the request;
    they supply nothing. With `mig_disabled` these are `in_use` and `foreign_use` of the whole GPU.
    `node_busy`: another GPU of its node is in use; turning MIG on or off would reset it.
    """

    geometry: Geometry
    layout: Layout | None = None
    busy: Layout = ()
    foreign: Layout = ()
    mig_disabled: bool = False
    in_use: bool = False
    foreign_use: bool = False
    node_busy: bool = False


@dataclass(frozen=True, slots=True)
class ReconfigurationCosts:
    """What reconfiguring costs, in units of the objective: per GPU, and per busy instance lost."""

    reconfigure: float = 0.0
    drain: float = 0.0


NO_COST = ReconfigurationCosts()


@dataclass(frozen=True, slots=True)
class ReconfigurationRules:
    """How GPUs may be reconfigured, and how many candidates a pool may have."""

    mode: ReconfigurationMode = "gpu"
    costs: ReconfigurationCosts = NO_COST
    most: int = 64


def patterns(
    gpu: Gpu,
    demand: Demand,
    mode: ReconfigurationMode = "gpu",
    costs: ReconfigurationCosts = NO_COST,
) -> tuple[GpuPattern, ...]:
    """Return the current pattern of a GPU and the nondominated ones that it may change to.

    A pattern is dominated where another one supplies as much for no more cost. Of equal patterns
    the least fragmented stays. The order is stable.
    """
    found = sorted(dict.fromkeys(_open(gpu, demand, mode, costs)), key=_preference)
    kept: list[GpuPattern] = []
    for item in found:
        if not item.changed or not any(_no_better(item, other) for other in kept):
            kept.append(item)
    return tuple(
        item
        for item in kept
        if not item.changed
        or not any(item is not other and _no_better(item, other) for other in kept)
    )


def pattern_with(
    gpu: Gpu,
    instances: ProfileCounts | None,
    demand: Demand,
    mode: ReconfigurationMode,
    costs: ReconfigurationCosts,
) -> GpuPattern | None:
    """Return the possible pattern with these instances, or None; names are profiles or devices."""
    wanted = dict(device_counts(instances))
    found = (
        item
        for item in _open(gpu, demand, mode, costs)
        if dict(device_counts(item.instances)) == wanted
    )
    return min(found, key=_preference, default=None)


def current_pattern(gpu: Gpu, demand: Demand) -> GpuPattern | None:
    """Return the pattern that changes nothing, or None where it is not known."""
    if gpu.mig_disabled:
        return _pattern(gpu, None, demand)
    if gpu.layout is None:
        return None
    return _pattern(gpu, profile_counts(gpu.geometry, gpu.layout), demand)


def device_counts(instances: ProfileCounts | None) -> tuple[tuple[str, int], ...]:
    """Return the number of each device that a layout has; None stands for MIG disabled."""
    if instances is None:
        return ((WHOLE_GPU, 1),)
    return tuple((name.replace("+", "."), amount) for name, amount in instances)


def _open(
    gpu: Gpu, demand: Demand, mode: ReconfigurationMode, costs: ReconfigurationCosts
) -> Iterator[GpuPattern]:
    unchanged = current_pattern(gpu, demand)
    if unchanged:
        yield unchanged
    # A profile with media engines is created only if it is requested.
    among = frozenset(
        item.name
        for item in gpu.geometry.profiles
        if not item.media or item.device in demand.devices
    )
    if gpu.busy and mode == "instance":
        for counts in maximal_profile_counts(gpu.geometry, gpu.busy, among):
            yield _pattern(gpu, counts, demand, cost=costs.reconfigure)
    if (gpu.busy or gpu.in_use) and mode != "drain":
        return
    drained = costs.drain * (len(gpu.busy) + gpu.in_use)
    for other in (*maximal_profile_counts(gpu.geometry, (), among), None):
        if mode == "gpu" and gpu.node_busy and (other is None) != gpu.mig_disabled:
            continue
        pattern = _pattern(gpu, other, demand, cost=costs.reconfigure + drained, drained=True)
        if pattern.changed:  # what is there already drains nobody
            yield pattern


def _pattern(
    gpu: Gpu,
    instances: ProfileCounts | None,
    demand: Demand,
    *,
    cost: float = 0.0,
    drained: bool = False,
) -> GpuPattern:
    counts = _supplied(gpu, instances, drained)
    if instances is None:
        changed = not gpu.mig_disabled
    else:
        changed = gpu.layout is None or instances != profile_counts(gpu.geometry, gpu.layout)
    return GpuPattern(
        supply=tuple(
            min(counts.get(device, 0), cap)
            for device, cap in zip(demand.devices, demand.caps, strict=True)
        ),
        cost=cost if changed else 0.0,
        changed=changed,
        pieces=_pieces(gpu.geometry, instances),
        instances=instances,
        supplies=tuple((device, amount) for device, amount in counts.items() if amount),
    )


def _pieces(geometry: Geometry, instances: ProfileCounts | None) -> int:
    if instances is None:
        return 1
    compute = {item.name: item.compute_slices for item in geometry.profiles}
    return geometry.compute_slices - sum(amount * (compute[name] - 1) for name, amount in instances)


def _supplied(gpu: Gpu, instances: ProfileCounts | None, drained: bool) -> dict[str, int]:
    if instances is None:
        return {WHOLE_GPU: 0 if gpu.foreign_use and not drained else 1}
    foreign = {} if drained else dict(profile_counts(gpu.geometry, gpu.foreign))
    profiles = {profile.name: profile.device for profile in gpu.geometry.profiles}
    return {profiles[name]: amount - foreign.get(name, 0) for name, amount in instances}


def _preference(item: GpuPattern) -> tuple[float, bool, int, tuple[int, ...], ProfileCounts]:
    return (item.cost, item.changed, item.pieces, item.supply, item.instances or ())


def _no_better(item: GpuPattern, other: GpuPattern) -> bool:
    return item.cost >= other.cost and all(
        mine <= its for mine, its in zip(item.supply, other.supply, strict=True)
    )


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """A node by name and its GPUs by index; no name stands for the one node that has GPUs."""

    name: str
    gpus: tuple[Gpu, ...]


@dataclass(frozen=True, slots=True)
class GpuPool:
    """The GPUs of a cluster whose layout one policy at a time sets."""

    cluster: str
    nodes: tuple[NodeGpus, ...]
    name: str = ""


GpuPools = Mapping[str, Sequence[GpuPool]]
"""GPU pools by cluster."""


def possible_devices(pool: GpuPool) -> dict[str, int]:
    """Return the devices that a pool's GPUs can supply, and at most how many of each."""
    most: Counter[str] = Counter()
    for node in pool.nodes:
        for gpu in node.gpus:
            most.update(
                {
                    WHOLE_GPU: 1,
                    **{item.device: item.max_instances for item in gpu.geometry.profiles},
                }
            )
    return dict(sorted(most.items()))
