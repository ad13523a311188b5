"""Fleets that differ in one thing, and changes of limits in words."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, Supply, Workload
from optimizer.model.nodes.node_fit import FreedOnNode
from optimizer.model.parameters import NO_DEVICE

FleetChange = Callable[[Fleet], Fleet]

ScoreKey = tuple[str, tuple[str, str, str]]
"""The name of a score, and the cluster, app and device that it is for."""


@dataclass(frozen=True, slots=True, eq=False)
class LimitChange:
    """A change in words, what it does to a fleet, and its relative size."""

    message: str
    apply: FleetChange
    size: float


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


def with_freed_node(cluster: Cluster, freed: FreedOnNode) -> Cluster:
    """Return a cluster in which others hold less on one node."""
    groups = list(cluster.nodes or ())
    own = groups[freed.group]
    taken = {**own.taken, **{name: own.taken[name] - much for name, much in freed.amounts}}
    rest = [replace(own, count=own.count - 1, names=own.names[1:])] if own.count > 1 else []
    groups[freed.group : freed.group + 1] = [
        replace(own, count=1, names=own.names[:1], taken=taken),
        *rest,
    ]
    return replace(cluster, nodes=tuple(groups))


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


def with_scores(fleet: Fleet, missing: Iterable[ScoreKey], value: float = 0.0) -> Fleet:
    """Return a fleet in which some scores have a value."""
    added: dict[str, dict[tuple[str, str, str], float]] = {name: {} for name in fleet.scores}
    for name, key in missing:
        added[name][key] = value
    scores = {name: held.with_values(added[name]) for name, held in fleet.scores.items()}
    return replace(fleet, scores=scores)


def supplied(cluster: Cluster) -> Iterator[Supply]:
    """Yield what a cluster has without a policy, and with each of its candidate policies.

    A device that others use up is one too, with an amount of 0.
    """
    base: dict[tuple[str, str], float] = {item[:2]: 0.0 for item in cluster.used_by_others}
    for supply in cluster.base:
        base[supply[:2]] = base.get(supply[:2], 0.0) + supply.amount
    yield from (Supply(*resource, amount) for resource, amount in base.items())
    for candidate in cluster.candidates:
        for supply in candidate.supplies:
            yield supply._replace(amount=supply.amount + base.get(supply[:2], 0.0))
