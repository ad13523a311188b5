"""MultiKueue's worker clusters: what keeps each from a Workload, and what is free there."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from dsf.api.conditions import conditions_of, find
from dsf.api.crd.inventory_times import InventoryTimes
from dsf.api.pod_spec import read_amount
from dsf.api.untrusted_text import UntrustedName
from dsf.hub.dispatch.workloads import PodSet
from dsf.kube.port import Object
from dsf.placement import read_taints, state_obstacle, taint_obstacle, untolerated

MULTI_KUEUE = "kueue.x-k8s.io/multikueue"
"""The controllerName of the admission checks that MultiKueue answers."""

KUEUE_ADD_ON_WORK = "addon-multicluster-kueue-manager-deploy-0"
"""The ManifestWork by which OCM's Kueue add-on sends the queues of a worker cluster.

Source: kueue-addon of open-cluster-management-io/addon-contrib; pkg/addonmanager/constants of
open-cluster-management.io/addon-framework.
"""


def obstacle(
    worker: str, found: Object | None, managed: Object | None, *, nominated: bool, now: datetime
) -> str:
    """Return why a worker cluster can't take a Workload; empty if it can.

    `found` is its MultiKueueCluster. A cluster that is nominated already stays so with a taint
    NoSelectIfNew. A cluster that OCM does not know is MultiKueue's own affair.
    """
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
    """What is free on a cluster: groups of equal nodes, and when that was observed."""

    groups: Sequence[tuple[int, Mapping[str, float]]]
    times: InventoryTimes

    def free(self, resource: str) -> float:
        """Return how much of a resource is free on all nodes together."""
        return sum(count * each.get(resource, 0.0) for count, each in self.groups)

    def fits(self, pod_sets: Iterable[PodSet], taken: Mapping[str, float]) -> bool:
        """Return whether each set of Pods fits on the nodes, and all together besides `taken`."""
        sets = tuple(pod_sets)
        for resource, amount in total(sets).items():
            if self.free(resource) - taken.get(resource, 0.0) < amount:
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


QUOTA = " of "
"""Part of the name of a quota, and of no resource."""


def quota_of(queue: tuple[str, str], resource: str) -> str:
    """Return the name of a LocalQueue's quota of a resource, which is the name of no resource."""
    return f"{resource}{QUOTA}{queue[0]}/{queue[1]}"


def read_quotas(work: Object) -> Mapping[str, float]:
    """Return the quotas that the Kueue add-on's ManifestWork sends to a cluster, by `quota_of`.

    A ClusterQueue in a cohort may borrow, so it sets no limit. Empty if they can't be read.
    """
    found = defaultdict[str, float](float)
    try:
        manifests = work["spec"]["workload"]["manifests"]
        queues = {
            each["metadata"]["name"]: each["spec"]
            for each in manifests
            if each["kind"] == "ClusterQueue" and not each["spec"].keys() & {"cohort", "cohortName"}
        }
        for each in (item for item in manifests if item["kind"] == "LocalQueue"):
            queue = (each["metadata"]["namespace"], each["metadata"]["name"])
            for group in queues.get(each["spec"]["clusterQueue"], {}).get("resourceGroups") or ():
                for item in (item for flavor in group["flavors"] for item in flavor["resources"]):
                    found[quota_of(queue, item["name"])] += read_amount(str(item["nominalQuota"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}
    return found


def read_room(inventory: Object) -> Room | None:
    """Return what a NodeInventory says of ready nodes; None if that can't be read.

    An agent can create objects in the namespace of its cluster only, but under any name.
    """
    metadata, status = inventory["metadata"], inventory.get("status") or {}
    times = InventoryTimes.of(inventory)
    if metadata["name"] != metadata["namespace"] or times is None:
        return None
    try:
        groups = [
            (int(item["count"]), _free(item))
            for item in status.get("nodes") or ()
            if item.get("ready") and not item.get("unschedulable")
        ]
    except ValueError:
        return None
    return Room(groups, times)


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
