"""MultiKueue's worker clusters: which managed cluster each is, and what it can take."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from dsf.api.conditions import conditions_of, find
from dsf.api.pod_spec import read_amount
from dsf.api.times import read_time
from dsf.api.untrusted_text import UntrustedName
from dsf.hub.dispatch.workloads import PodSet
from dsf.kube.port import Object
from dsf.placement import read_taints, state_obstacle, taint_obstacle, untolerated

MULTI_KUEUE = "kueue.x-k8s.io/multikueue"
"""The controllerName of the admission checks that MultiKueue answers."""

Named = Mapping[str, Object]
"""Cluster-scoped objects of one kind by name."""


def managed_cluster_of(worker: str, config: str, workers: Named, managed: Named) -> str:
    """Return which managed cluster a MultiKueueCluster is; empty if OCM knows none.

    That is the one of its ClusterProfile, or of its own name. Older releases of OCM's Kueue add-on
    put the name of the MultiKueueConfig in front.
    """
    spec = (workers.get(worker) or {}).get("spec") or {}
    profile = ((spec.get("clusterSource") or {}).get("clusterProfileRef") or {}).get("name", "")
    names = (profile, worker, worker.removeprefix(f"{config}-"))
    return next((name for name in names if name in managed), "")


def obstacle(
    worker: str, workers: Named, managed: Object | None, *, nominated: bool, now: datetime
) -> str:
    """Return why a worker cluster can't take a Workload; empty if it can.

    A cluster that is nominated already stays so with a taint NoSelectIfNew. A cluster that OCM does
    not know is MultiKueue's own affair.
    """
    found = workers.get(worker)
    if found is None:
        return f"there is no MultiKueueCluster {UntrustedName(worker)}"
    active = find(conditions_of(found), "Active")
    if active is not None and active.get("status") == "False":
        reason = UntrustedName(str(active.get("reason")))
        return f"Kueue is not connected to {UntrustedName(worker)}: {reason}"
    if managed is None:
        return ""
    if state := state_obstacle(managed):
        return state.message
    taint = untolerated(read_taints(managed), (), selected=nominated, now=now)
    return taint_obstacle(managed["metadata"]["name"], taint).message if taint else ""


class Room(NamedTuple):
    """What is free on a cluster: groups of equal nodes, when observed, and until when valid."""

    groups: Sequence[tuple[int, Mapping[str, float]]]
    observed: datetime
    until: datetime

    def fits(self, pod_sets: Iterable[PodSet], taken: Mapping[str, float]) -> bool:
        """Return whether each set of Pods fits on the nodes, and all together besides `taken`."""
        sets = tuple(pod_sets)
        for resource, amount in total(sets).items():
            free = sum(count * each.get(resource, 0.0) for count, each in self.groups)
            if free - taken.get(resource, 0.0) < amount:
                return False
        return all(
            sum(nodes * _times(free, requests) for nodes, free in self.groups) >= count
            for count, requests in sets
        )


def total(pod_sets: Iterable[PodSet]) -> dict[str, float]:
    """Return what sets of Pods request together."""
    found = dict[str, float]()
    for count, requests in pod_sets:
        for resource, amount in requests.items():
            found[resource] = found.get(resource, 0.0) + count * amount
    return found


def read_room(inventory: Object) -> Room | None:
    """Return what a NodeInventory says of ready nodes; None if it can't be relied on."""
    metadata, status = inventory["metadata"], inventory.get("status") or {}
    observed, until = read_time(status.get("observedTime")), read_time(status.get("validUntil"))
    if metadata["name"] != metadata["namespace"] or observed is None or until is None:
        return None
    try:
        groups = [
            (int(item["count"]), _free(item))
            for item in status.get("nodes") or ()
            if item.get("ready") and not item.get("unschedulable")
        ]
    except ValueError:
        return None
    return Room(groups, observed, until)


def _free(item: Mapping[str, Any]) -> dict[str, float]:
    requested = item.get("requested") or {}
    return {
        resource: read_amount(amount) - read_amount(requested.get(resource, "0"))
        for resource, amount in item["allocatable"].items()
    }


def _times(free: Mapping[str, float], requests: Mapping[str, float]) -> int:
    """Return how many Pods with these requests fit on a node."""
    return max(
        0,
        min(
            (int(free.get(name, 0.0) // most) for name, most in requests.items() if most), default=0
        ),
    )
