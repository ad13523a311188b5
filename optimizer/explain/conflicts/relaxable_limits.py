"""Every limit of a fleet that can keep a workload out, by name.

What no change can give is not among them: a workload runs at most once on a cluster.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import counted, joined, listed
from dsf.kube.selectors import valid_selector
from optimizer.candidates.further_layouts import NO_FURTHER_LAYOUTS, FurtherLayouts
from optimizer.domain.arrays import members_by_key
from optimizer.domain.fleet import Cluster, Fleet, Workload
from optimizer.domain.issue import NODES_UNAVAILABLE, TakenIssue, withheld
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
from optimizer.model.nodes.node_fit import least_freed, missing_node
from optimizer.model.parameters import NO_DEVICE
from optimizer.model.predicates import FoundOnNodes, ResourceIndex

_SHOWN_USERS = 3
"""Workloads that a message names as users of a device."""


def relaxable_limits(
    fleet: Fleet,
    required: RequiredReplicas,
    layouts: FurtherLayouts = NO_FURTHER_LAYOUTS,
    found: FoundOnNodes | None = None,
) -> tuple[RelaxableLimit, ...]:
    """Return every limit on one more assignment of a workload, its own constraints first.

    `found`: what `ResourceIndex` has found of nodes before, so that it is not sought again.
    """
    target = next(item for item in fleet.workloads if item.name == required.workload)
    return (
        *own_constraints(fleet, target),
        *_anti_affinities_to(fleet, target),
        *_drained(fleet),
        *_fleet_wide(fleet),
        *_capacities(fleet),
        *_candidate_layouts(layouts),
        *_pools(fleet),
        *_nodes(fleet, target, {} if found is None else found),
        *_unscored(fleet, target),
        *_running(fleet, required),
    )


def relaxed(fleet: Fleet, limits: Iterable[RelaxableLimit]) -> Fleet:
    """Return the fleet in which some limits do not hold."""
    return reduce(lambda made, limit: limit.relax(made), limits, fleet)


def own_constraints(fleet: Fleet, target: Workload) -> Iterator[WorkloadConstraint]:
    """Yield the constraints that a workload states itself."""
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
        ("device", "devices", f"runs only on {listed(target.devices)}{_only(fleet, target)}"),
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


def _only(fleet: Fleet, target: Workload) -> str:
    """Return which devices there are, where none is one that a workload names."""
    kinds = (item for own in fleet.clusters for item in supplied(own) if item.kind == target.kind)
    there = {item.device for item in kinds} if target.devices else set[str]()
    unknown = there and there.isdisjoint(target.devices)
    return f", and clusters and policies supply only {listed(sorted(there))}" if unknown else ""


def partners(fleet: Fleet, name: str) -> set[str]:
    """Return the workloads with which a workload has to share its clusters."""
    own = next(item for item in fleet.workloads if item.name == name)
    text = own.workload_affinity
    matching = (i.name for i in fleet.workloads if text and valid_selector(text).matches(i.labels))
    return {*own.together_with, *matching} - {name}


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
        if limit.cluster:
            many = counted(int(limit.most), "workload")
            message = f"cluster {limit.cluster} runs at most {many}"
        yield FleetWideLimit("limits", message, limit.name)


def _capacities(fleet: Fleet) -> Iterator[RelaxableLimit]:
    """Yield what each cluster supplies of devices that workloads could use."""
    kinds = {item.kind for item in fleet.workloads}
    further = {kind for item in fleet.workloads for kind, _ in item.requests}
    taken = members_by_key(
        (item.cluster, item) for item in fleet.issues if isinstance(item, TakenIssue)
    )
    for cluster in fleet.clusters:
        resources = {(supply.kind, supply.device) for supply in supplied(cluster)}
        lacking = kinds - {kind for kind, _ in resources} - further
        resources |= {(kind, NO_DEVICE) for kind in further | lacking}
        for kind, device in sorted(resources):
            if kind in kinds | further:
                found, devices = taken.get(cluster.name, ()), (device,) if device else ()
                concerned = [item for item in found if item.concerns({kind}, devices)]
                yield _capacity(cluster, kind, device, concerned)


def _capacity(
    cluster: Cluster, kind: str, device: str, taken_from: Sequence[TakenIssue]
) -> RelaxableLimit:
    amounts = [item.amount for item in supplied(cluster) if item[:2] == (kind, device)]
    free, what = max(amounts, default=0.0), f"{kind} {device}".strip()
    message = f"cluster {cluster.name} supplies at most {format_quantity(free)} {what}"
    taken = sum(i.amount for i in cluster.used_by_others if i[:2] == (kind, device))
    taken += withheld(taken_from, cluster.name).get((kind, device), 0.0)
    if taken or (taken_from and not amounts):
        of = f"{format_quantity(free)} of {format_quantity(free + taken)}" if taken else "no"
        every = f"{of} {what}"
        users = [user for item in taken_from for user in item.users]
        owners = dict.fromkeys(item.owner.rstrip(",") for item in taken_from if item.owner)
        held = f" (held by {joined(owners, _SHOWN_USERS)})" if owners else ""
        used = f" (used by {listed(users, _SHOWN_USERS)})" if users else held
        message = f"cluster {cluster.name} has {every} free{used}"
    if any(item.reason == NODES_UNAVAILABLE for item in taken_from):
        message += ", as nodes with more are cordoned or not ready"
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


def _nodes(fleet: Fleet, target: Workload, found: FoundOnNodes) -> Iterator[RelaxableLimit]:
    index = ResourceIndex(fleet, found)
    pods = index.pods[target.name]
    missing = index.missing_nodes(pods) if pods else ()
    sought = {index.resources[at].cluster: item.sought for at, item in enumerate(missing) if item}
    supplying = {item.cluster for item in index.resources}
    for number, cluster in enumerate(fleet.clusters) if pods else ():
        nodes = index.nodes[number][0]
        if nodes is not None:
            message = f"each Pod on cluster {cluster.name} has to fit on one node"
            if number not in supplying and (lacking := missing_node(nodes, pods)):
                sought[number] = lacking.sought
            if number in sought:
                where = f"on cluster {cluster.name} each Pod of workload {target.name}"
                message = f"{where} needs {sought[number]}"
            yield NodeBoundary("node_fit", message, cluster.name, least_freed(nodes, pods))


def _unscored(fleet: Fleet, target: Workload) -> Iterator[RelaxableLimit]:
    if any(missing_scores(fleet, target)):
        message = f"app {target.app} runs only on devices for which it has a usable score"
        yield MissingScores("unscored", message, target.app, target.kind)


def _running(fleet: Fleet, required: RequiredReplicas) -> Iterator[RelaxableLimit]:
    there = {item.name for item in fleet.workloads if item.current}
    for name, count in required.counts.items():
        if name != required.workload and count:
            keeps = "keeps running" if name in there else "is placed"
            where = keeps if count == 1 else f"{keeps} on {count} clusters"
            yield RunningWorkload("runs", f"workload {name} {where}", name)
