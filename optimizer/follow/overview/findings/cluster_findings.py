"""Managed clusters that are lost, drained, or not known well enough to plan with."""

from collections.abc import Collection, Iterator, Mapping

from dsf.api.untrusted_text import InvalidInput, UntrustedName
from dsf.kube.port import Object
from dsf.placement import Obstacle
from optimizer.follow.overview.capacity import ClusterCapacity
from optimizer.follow.overview.findings.finding import FleetFinding, Found, Stage, by_cause, finding
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.snapshot.annotations import PREFIX, read_annotations
from optimizer.snapshot.object_readers import has_unread_drain
from optimizer.wire.object_specs import ClusterSpec, WorkloadSpec

DRAINED = "Drained"
"""The reason of a cluster where people let no workload run for a while."""


def cluster_findings(faults: Mapping[str, Obstacle]) -> tuple[FleetFinding, ...]:
    """Return the findings about managed clusters that OCM selects for nothing new."""
    return tuple(by_cause(of_clusters(faults)))


def fault_of(clusters: Collection[str], faults: Mapping[str, Obstacle]) -> str:
    """Return why OCM selects none of these clusters; empty if it selects one."""
    reasons = {faults[name].reason for name in clusters if name in faults}
    return min(reasons) if reasons and all(name in faults for name in clusters) else ""


def of_clusters(faults: Mapping[str, Obstacle]) -> Iterator[Found]:
    """Yield the managed clusters that OCM selects for nothing new."""
    for name, fault in sorted(faults.items()):
        said, lost = fault.message, fault.reason == "ClusterLost"
        mend = "see that its agents run and reach the hub" if lost else "do what the message says"
        next_step = f"{mend}, or plan without the cluster"
        found = finding("cluster", name, fault.reason, said, next_step, since=fault.since)
        yield found, said.replace(name, "")


def of_drains(drained: Mapping[str, str]) -> Iterator[Found]:
    """Yield the drained clusters; `drained` says until when each of them is."""
    for name, until in sorted(drained.items()):
        said = f"{UntrustedName(name)} is drained {until}: plans place nothing there"
        next_step = (
            f"wait, or end it: `kubectl annotate managedcluster {UntrustedName(name)}"
            f" {PREFIX}drain-`"
        )
        yield finding("cluster", name, DRAINED, said, next_step, "info"), until


def of_annotations(
    stage: Stage, objects: Mapping[str, Object], spec: type[ClusterSpec | WorkloadSpec]
) -> Iterator[Found]:
    """Yield the objects with an annotation that can't be read, so that none of them counts."""
    next_step = "mend the annotation that the message names, or remove it: `kubectl annotate`"
    for name, obj in sorted(objects.items()):
        read = read_annotations(obj, spec)
        if isinstance(read, InvalidInput):
            does = "leave out" if spec is WorkloadSpec else "read no annotation of"
            closed = ", and place nothing new there" if has_unread_drain(obj) else ""
            said = f"plans {does} {UntrustedName(name)}{closed}: {read.message}"
            yield finding(stage, name, read.reason, said, next_step), read.message


def of_inventories(facts: FleetFacts) -> Iterator[Found]:
    """Yield what keeps plans from using the nodes of clusters."""
    for name, item in facts.capacity.items():
        cause = fault_of([name], facts.faults)
        for reason, said, next_step in _inventory_faults(item):
            since = item.observed if item.expired else None
            yield (
                finding(
                    "cluster", name, reason, said, next_step, "warning", since=since, cause=cause
                ),
                (item.unreadable, cause),
            )


def _inventory_faults(item: ClusterCapacity) -> Iterator[tuple[str, str, str]]:
    """Yield what keeps plans from using the nodes of a cluster: reason, message and next step."""
    shown = UntrustedName(item.cluster)
    if item.unreadable:
        said = f"the NodeInventory of {shown} can't be read: {item.unreadable}"
        next_step = "look at `kubectl get nodeinventory -A -o yaml`: who else writes it?"
        yield "InvalidInventory", said, next_step
    elif item.expired:
        said = f"the NodeInventory of {shown} has expired: what is free there is not known"
        next_step = "look at the log of the agent there: it renews its NodeInventory each minute"
        yield "InventoryExpired", said, next_step
    elif item.nodes and item.unavailable_nodes == item.nodes:
        said = f"no node of {shown} is ready and schedulable (of {item.nodes}): nothing new starts"
        next_step = "look at `kubectl get nodes` there; uncordon or repair them"
        yield "NodesUnavailable", said, next_step
    if item.current and not item.complete:
        said = f"the NodeInventory of {shown} does not count all: its condition Complete is False"
        next_step = (
            "`kubectl get nodeinventory -A -o yaml`: the condition says what, and what to do"
        )
        yield "InventoryIncomplete", said, next_step
