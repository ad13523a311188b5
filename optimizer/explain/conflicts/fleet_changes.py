"""Fleets that differ in one thing, changes of limits in words, and amounts of a kind.

Where the policies of a cluster are generated from its GPUs, another GPU can be divided like one of
those that are there. It supplies the devices of that layout whichever policy is enforced, because a
layout is chosen for each GPU independently.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from itertools import chain
from math import ceil, gcd, lcm
from typing import Any

from optimizer.domain.fleet import (
    GPU_KIND,
    CandidatePolicy,
    Cluster,
    Fleet,
    ProfileCounts,
    Supply,
    Workload,
)
from optimizer.domain.mig.gpu_pools import device_counts
from optimizer.model.problem import NO_DEVICE

FleetChange = Callable[[Fleet], Fleet]

ScoreKey = tuple[str, tuple[str, str, str]]
"""The name of a score, and the cluster, app and device that it is for."""


@dataclass(frozen=True, slots=True, eq=False)
class LimitChange:
    """A change in words, what it does to a fleet, and its relative size."""

    message: str
    apply: FleetChange
    size: float


@dataclass(frozen=True, slots=True, eq=False)
class AddedSupply(LimitChange):
    """More of a device on a cluster, available whichever policy the cluster enforces."""

    cluster: str
    supply: Supply


def applied(fleet: Fleet, changes: Iterable[LimitChange]) -> Fleet:
    """Return the fleet after changes."""
    return reduce(lambda made, change: change.apply(made), changes, fleet)


def with_workload(fleet: Fleet, name: str, **changed: Any) -> Fleet:
    """Return a fleet in which a workload differs in some fields."""
    own = (replace(item, **changed) if item.name == name else item for item in fleet.workloads)
    return replace(fleet, workloads=tuple(own))


def without_workload(fleet: Fleet, name: str) -> Fleet:
    """Return a fleet without a workload."""
    return replace(fleet, workloads=tuple(item for item in fleet.workloads if item.name != name))


def with_cluster(fleet: Fleet, name: str, change: Callable[[Cluster], Cluster]) -> Fleet:
    """Return a fleet in which a cluster differs."""
    clusters = (change(item) if item.name == name else item for item in fleet.clusters)
    return replace(fleet, clusters=tuple(clusters))


def with_supplies(fleet: Fleet, cluster: str, added: Iterable[Supply]) -> Fleet:
    """Return a fleet in which a cluster has more without any policy."""
    new = tuple(added)
    return with_cluster(fleet, cluster, lambda item: replace(item, base=(*item.base, *new)))


def with_candidates(fleet: Fleet, cluster: str, added: Iterable[CandidatePolicy]) -> Fleet:
    """Return a fleet in which a cluster has more candidate policies."""
    new = tuple(added)
    return with_cluster(
        fleet, cluster, lambda item: replace(item, candidates=(*item.candidates, *new))
    )


def with_limit(fleet: Fleet, name: str, most: float) -> Fleet:
    """Return a fleet in which a fleet-wide limit has another value."""
    limits = (replace(item, most=most) if item.name == name else item for item in fleet.limits)
    return replace(fleet, limits=tuple(limits))


def missing_scores(fleet: Fleet, target: Workload) -> Iterator[ScoreKey]:
    """Yield the scores that a workload lacks on devices of its kind."""
    for cluster in fleet.clusters:
        devices = {item.device for item in supplied(cluster) if item.kind == target.kind}
        for device in sorted(devices or {NO_DEVICE}):
            key = cluster.name, target.app, device
            yield from ((name, key) for name, held in fleet.scores.items() if key not in held)


def with_scores(fleet: Fleet, missing: Iterable[ScoreKey]) -> Fleet:
    """Return a fleet in which some scores are 0."""
    added: dict[str, dict[tuple[str, str, str], float]] = {name: {} for name in fleet.scores}
    for name, key in missing:
        added[name][key] = 0.0
    scores = {name: held.with_values(added[name]) for name, held in fleet.scores.items()}
    return replace(fleet, scores=scores)


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
