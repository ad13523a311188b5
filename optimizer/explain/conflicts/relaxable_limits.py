"""Every limit of a fleet that can keep a workload out, by name.

What no change can give is not among them: a workload runs at most once on a cluster.
"""

from collections.abc import Iterable, Iterator
from functools import reduce

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import listed
from dsf.kube.selectors import valid_selector
from optimizer.candidates.further_layouts import NO_FURTHER_LAYOUTS, FurtherLayouts
from optimizer.domain.fleet import Cluster, Fleet, Workload
from optimizer.explain.conflicts.fleet_changes import missing_scores, supplied
from optimizer.explain.conflicts.limits import (
    UNCONSTRAINED,
    DrainedCluster,
    FleetWideLimit,
    MissingScores,
    RelaxableLimit,
    RequiredReplicas,
    RunningWorkload,
    WorkloadConstraint,
)
from optimizer.explain.conflicts.supply_limits import (
    CandidateLayouts,
    NodeBoundary,
    OnePolicyPerPool,
    SuppliedCapacity,
)
from optimizer.model.problem import NO_DEVICE


def relaxable_limits(
    fleet: Fleet, required: RequiredReplicas, layouts: FurtherLayouts = NO_FURTHER_LAYOUTS
) -> tuple[RelaxableLimit, ...]:
    """Return every limit on one more assignment of a workload, its own constraints first."""
    target = next(item for item in fleet.workloads if item.name == required.workload)
    return (
        *_own_constraints(target),
        *_anti_affinities_to(fleet, target),
        *_drained(fleet),
        *_fleet_wide(fleet),
        *_capacities(fleet),
        *_candidate_layouts(layouts),
        *_pools(fleet),
        *_nodes(fleet, target),
        *_unscored(fleet, target),
        *_running(required),
    )


def relaxed(fleet: Fleet, limits: Iterable[RelaxableLimit]) -> Fleet:
    """Return the fleet in which some limits do not hold."""
    return reduce(lambda made, limit: limit.relax(made), limits, fleet)


def _own_constraints(target: Workload) -> Iterator[RelaxableLimit]:
    spreads = ", ".join(
        f"at most {item.most} {f'of group {item.group} ' if item.group else ''}per {item.key}"
        for item in target.spread
    )
    for rule, field, says in (
        ("pinned", "clusters", f"runs only on {listed(target.clusters)}"),
        ("excluded", "excluded_clusters", f"never runs on {listed(target.excluded_clusters)}"),
        (
            "selectable",
            "unselectable",
            f"has a Placement for which OCM can't select {listed(target.unselectable)}",
        ),
        ("seen", "unseen", f"starts on no cluster with an old inventory: {listed(target.unseen)}"),
        ("device", "devices", f"has Pods that name {listed(target.devices)}"),
        ("affinity", "affinity", f"runs only on clusters that match {target.affinity}"),
        (
            "anti-affinity",
            "anti_affinity",
            f"runs on no cluster that matches {target.anti_affinity}",
        ),
        ("minimum", "minimum_score", f"accepts no score below {target.minimum_score or 0:g}"),
        ("spread", "spread", f"spreads: {spreads}"),
        ("near", "workload_affinity", f"needs a workload that matches {target.workload_affinity}"),
        ("near", "together_with", f"runs together with {listed(target.together_with)}"),
    ):
        if getattr(target, field) != UNCONSTRAINED[field]:
            yield WorkloadConstraint(rule, f"workload {target.name} {says}", target.name, field)
    yield from _apart(target)


def _apart(item: Workload, other: Workload | None = None) -> Iterator[WorkloadConstraint]:
    """Yield the constraints of a workload that keep it apart, from one other if it is given."""
    text, names = item.workload_anti_affinity, item.apart_from
    said = f"workload {item.name} shares no cluster with"
    if text and (other is None or valid_selector(text).matches(other.labels)):
        yield WorkloadConstraint("apart", f"{said} {text}", item.name, "workload_anti_affinity")
    if names and (other is None or other.name in names):
        yield WorkloadConstraint("apart", f"{said} {listed(names)}", item.name, "apart_from")


def _anti_affinities_to(fleet: Fleet, target: Workload) -> Iterator[RelaxableLimit]:
    """Yield the constraints by which other workloads exclude this one from their clusters."""
    for item in fleet.workloads:
        if item.name != target.name:
            yield from _apart(item, target)


def _drained(fleet: Fleet) -> Iterator[RelaxableLimit]:
    for cluster in fleet.clusters:
        if cluster.drained:
            message = f"cluster {cluster.name} is drained {cluster.drained}"
            yield DrainedCluster("drained", message, cluster.name)


def _fleet_wide(fleet: Fleet) -> Iterator[RelaxableLimit]:
    for limit in fleet.limits:
        per = f" per {limit.per}" if limit.per else ""
        message = f"{limit.name} is at most {format_quantity(limit.most)}{per}"
        yield FleetWideLimit("limits", message, limit.name)


def _capacities(fleet: Fleet) -> Iterator[RelaxableLimit]:
    """Yield what each cluster supplies of devices that workloads could use."""
    kinds = {item.kind for item in fleet.workloads}
    further = {kind for item in fleet.workloads for kind, _ in item.requests}
    for cluster in fleet.clusters:
        resources = {(supply.kind, supply.device) for supply in supplied(cluster)}
        lacking = kinds - {kind for kind, _ in resources} - further
        resources |= {(kind, NO_DEVICE) for kind in further | lacking}
        for kind, device in sorted(resources):
            if kind in kinds | further:
                yield _capacity(cluster, kind, device)


def _capacity(cluster: Cluster, kind: str, device: str) -> RelaxableLimit:
    amounts = (item.amount for item in supplied(cluster) if item[:2] == (kind, device))
    what = f"{format_quantity(max(amounts, default=0.0))} {kind} {device}".strip()
    message = f"cluster {cluster.name} supplies at most {what}"
    return SuppliedCapacity("capacity", message, cluster.name, kind, device)


def _candidate_layouts(layouts: FurtherLayouts) -> Iterator[RelaxableLimit]:
    """Yield that a pool has no other layouts; before `_pools`, which puts candidates apart."""
    for (cluster, pool), further in layouts.items():
        used = sorted({name for item in further for name in item.freed})
        where = f"pool {pool} of cluster {cluster}" if pool else f"cluster {cluster}"
        message = f"{where} has candidates for only some layouts of its GPUs"
        if used:
            message = f"{where} keeps the layout of GPUs in use: {listed(used)}"
        yield CandidateLayouts("layouts", message, cluster, further)


def _pools(fleet: Fleet) -> Iterator[RelaxableLimit]:
    for cluster in fleet.clusters:
        for pool in dict.fromkeys(item.pool for item in cluster.candidates):
            if sum(item.pool == pool for item in cluster.candidates) > 1:
                where = f"pool {pool} of cluster" if pool else "cluster"
                message = f"{where} {cluster.name} enforces one policy"
                yield OnePolicyPerPool("one_policy_per_pool", message, cluster.name, pool)


def _nodes(fleet: Fleet, target: Workload) -> Iterator[RelaxableLimit]:
    for cluster in fleet.clusters if target.pods else ():
        if cluster.nodes is not None:
            message = f"each Pod on cluster {cluster.name} finds a node"
            yield NodeBoundary("node_fit", message, cluster.name)


def _unscored(fleet: Fleet, target: Workload) -> Iterator[RelaxableLimit]:
    if any(missing_scores(fleet, target)):
        message = f"app {target.app} runs only on devices for which it has a usable score"
        yield MissingScores("unscored", message, target.app, target.kind)


def _running(required: RequiredReplicas) -> Iterator[RelaxableLimit]:
    for name, count in required.counts.items():
        if name != required.workload and count:
            where = "keeps running" if count == 1 else f"keeps running on {count} clusters"
            yield RunningWorkload("runs", f"workload {name} {where}", name)
