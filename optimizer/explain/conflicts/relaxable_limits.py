"""Every limit of a fleet that can keep a workload out, by name.

Relaxing one never makes anything impossible, so conflicts among them can be found by halving
(QuickXplain). What no change can give is not among them: a workload runs once per cluster.
"""

from collections.abc import Iterable, Iterator

from dsf.kube.selectors import valid_selector
from optimizer.domain.fleet import Cluster, Fleet, Workload
from optimizer.domain.quantity import format_quantity
from optimizer.explain.conflicts.fleet_changes import missing_scores
from optimizer.explain.conflicts.limit_kinds import (
    ExcludedClusters,
    FleetWideLimit,
    MinimumScore,
    MissingScores,
    OnePolicyPerPool,
    PinnedClusters,
    RelaxableLimit,
    RequiredReplicas,
    RunningWorkload,
    SuppliedCapacity,
    WorkloadConstraint,
)
from optimizer.explain.conflicts.supply_amounts import supplied
from optimizer.model.problem import NO_DEVICE


def relaxable_limits(fleet: Fleet, required: RequiredReplicas) -> tuple[RelaxableLimit, ...]:
    """Return every limit on one more assignment of a workload, its own constraints first."""
    target = next(item for item in fleet.workloads if item.name == required.workload)
    return (
        *_own_constraints(target),
        *_kept_apart(fleet, target),
        *_fleet_wide(fleet),
        *_capacities(fleet),
        *_pools(fleet),
        *_unscored(fleet, target),
        *_running(required),
    )


def relaxed(fleet: Fleet, limits: Iterable[RelaxableLimit]) -> Fleet:
    """Return the fleet in which some limits do not hold."""
    for limit in limits:
        fleet = limit.relax(fleet)
    return fleet


def _own_constraints(target: Workload) -> Iterator[RelaxableLimit]:
    for made in (_clusters(target), _values(target), _company(target)):
        for limit in made:
            if getattr(target, limit.field) != limit.nothing:
                yield limit


def _clusters(target: Workload) -> Iterator[WorkloadConstraint]:
    name = f"workload {target.name}"
    only = f"{name} runs on {', '.join(target.clusters)} alone"
    yield PinnedClusters("pinned", only, target.name, "clusters", ())
    never = f"{name} does not run on {', '.join(target.excluded)}"
    yield ExcludedClusters("excluded", never, target.name, "excluded", ())
    wants = f"{name} wants clusters with {target.affinity}"
    yield WorkloadConstraint("affinity", wants, target.name, "affinity", "")
    avoids = f"{name} wants none with {target.anti_affinity}"
    yield WorkloadConstraint("anti-affinity", avoids, target.name, "anti_affinity", "")


def _values(target: Workload) -> Iterator[WorkloadConstraint]:
    least = f"workload {target.name} accepts no value below {target.minimum}"
    yield MinimumScore("minimum", least, target.name, "minimum", None)


def _company(target: Workload) -> Iterator[WorkloadConstraint]:
    spreads = ", ".join(
        f"at most {item.most} {f'of group {item.group} ' if item.group else ''}per {item.key}"
        for item in target.spread
    )
    message = f"workload {target.name} spreads: {spreads}"
    yield WorkloadConstraint("spread", message, target.name, "spread", ())
    message = f"workload {target.name} runs near {' and '.join(target.near)}"
    yield WorkloadConstraint("near", message, target.name, "near", ())
    yield _apart(target)


def _apart(item: Workload) -> WorkloadConstraint:
    message = f"workload {item.name} runs apart from {' and '.join(item.apart)}"
    return WorkloadConstraint("apart", message, item.name, "apart", ())


def _kept_apart(fleet: Fleet, target: Workload) -> Iterator[RelaxableLimit]:
    """Yield the constraints by which other workloads run apart from this one."""
    for item in fleet.workloads:
        avoided = any(valid_selector(text).matches(target.labels) for text in item.apart)
        if avoided and item.name != target.name:
            yield _apart(item)


def _fleet_wide(fleet: Fleet) -> Iterator[RelaxableLimit]:
    for limit in fleet.limits:
        per = f" per {limit.per}" if limit.per else ""
        message = f"{limit.name} is at most {format_quantity(limit.most)}{per}"
        yield FleetWideLimit("limits", message, limit.name)


def _capacities(fleet: Fleet) -> Iterator[RelaxableLimit]:
    """Yield what each cluster supplies of each device that workloads could use."""
    kinds = {item.kind for item in fleet.workloads}
    extras = {kind for item in fleet.workloads for kind, _ in item.extras}
    for cluster in fleet.clusters:
        resources = {(supply.kind, supply.device) for supply in supplied(cluster)}
        lacking = kinds - {kind for kind, _ in resources} - extras
        resources |= {(kind, NO_DEVICE) for kind in extras | lacking}
        for kind, device in sorted(resources):
            if kind in kinds | extras:
                yield _capacity(cluster, kind, device)


def _capacity(cluster: Cluster, kind: str, device: str) -> RelaxableLimit:
    amounts = (item.amount for item in supplied(cluster) if item[:2] == (kind, device))
    what = f"{format_quantity(max(amounts, default=0.0))} {kind} {device}".strip()
    message = f"cluster {cluster.name} supplies at most {what}"
    return SuppliedCapacity("capacity", message, cluster.name, kind, device)


def _pools(fleet: Fleet) -> Iterator[RelaxableLimit]:
    for cluster in fleet.clusters:
        for pool in dict.fromkeys(item.pool for item in cluster.candidates):
            if sum(item.pool == pool for item in cluster.candidates) > 1:
                where = f"pool {pool} of cluster" if pool else "cluster"
                message = f"{where} {cluster.name} enforces one policy"
                yield OnePolicyPerPool("one_policy_per_pool", message, cluster.name, pool)


def _unscored(fleet: Fleet, target: Workload) -> Iterator[RelaxableLimit]:
    if any(missing_scores(fleet, target)):
        message = f"app {target.app} runs only on devices for which it has a usable score"
        yield MissingScores("unscored", message, target.app, target.kind)


def _running(required: RequiredReplicas) -> Iterator[RelaxableLimit]:
    for name, count in required.counts.items():
        if name != required.workload and count:
            where = "keeps running" if count == 1 else f"keeps running on {count} clusters"
            yield RunningWorkload("runs", f"workload {name} {where}", name)
