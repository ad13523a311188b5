"""Simulated registration: clusters join the hub, report ClusterClaims, and are tainted when lost.

Source: pkg/registration/hub of OCM v1.2.1, and
https://open-cluster-management.io/docs/concepts/cluster-inventory/managedcluster/
"""

from collections.abc import Iterable, Mapping

from dsf.api.conditions import Condition, find, merged
from dsf.api.names import ADDON
from dsf.kube.changes import Change, Create, Patch
from dsf.kube.kinds import MANAGED_CLUSTER, MANAGED_CLUSTER_ADD_ON, MANAGED_CLUSTER_SET, NAMESPACE
from dsf.kube.port import Object
from dsf.placement import DEFAULT_SETS, SET_LABEL, UNAVAILABLE, UNREACHABLE
from dsf.sim.controllers.musthave import set_status

_JOINED = (
    Condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted"),
    Condition("ManagedClusterJoined", "True", "ManagedClusterJoined"),
    Condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable"),
)
_UNKNOWN = Condition(
    "ManagedClusterConditionAvailable",
    "Unknown",
    "ManagedClusterLeaseUpdateStopped",
    "Registration agent stopped updating its lease.",
)
_LEASED = (Condition("Available", "True", "ManagedClusterAddOnLeaseUpdated"),)
LEASE_SECONDS = 60
LEASE_GRACE_SECONDS = 5 * LEASE_SECONDS
"""After so long without a renewal of its Lease, a cluster counts as lost.

Source: leaseDurationTimes in pkg/registration/hub/lease of OCM v1.2.1.
"""

_TAINT_OF_AVAILABLE = {"True": "", "False": UNAVAILABLE}


def join(name: str, labels: Mapping[str, str], *, now: str) -> list[Change]:
    """Return the changes that register a cluster: accepted, joined, available, add-on enabled."""
    cluster = MANAGED_CLUSTER.object(
        metadata={"name": name, "labels": {SET_LABEL: "default", **labels}},
        spec={"hubAcceptsClient": True, "leaseDurationSeconds": LEASE_SECONDS},
    )
    add_on = MANAGED_CLUSTER_ADD_ON.object(metadata={"name": ADDON, "namespace": name}, spec={})
    namespace = NAMESPACE.object(metadata={"name": name})
    return [
        Create(NAMESPACE, namespace),
        Create(MANAGED_CLUSTER, cluster),
        *set_status(MANAGED_CLUSTER, cluster, {"conditions": merged([], _JOINED, now=now)}),
        Create(MANAGED_CLUSTER_ADD_ON, add_on),
        *set_status(MANAGED_CLUSTER_ADD_ON, add_on, {"conditions": merged([], _LEASED, now=now)}),
    ]


def report_availability(cluster: Object, *, available: bool, now: str) -> list[Change]:
    """Return the change to the condition of a cluster whose Lease is renewed, or is not."""
    found = _JOINED[-1] if available else _UNKNOWN
    before = (cluster.get("status") or {}).get("conditions") or []
    return set_status(MANAGED_CLUSTER, cluster, {"conditions": merged(before, [found], now=now)})


def report_claims(cluster: Object, claims: Iterable[Object]) -> list[Change]:
    """Return the change that copies a cluster's ClusterClaims into its ManagedCluster status."""
    reported = sorted(
        (
            {"name": claim["metadata"]["name"], "value": claim.get("spec", {}).get("value", "")}
            for claim in claims
        ),
        key=lambda claim: str(claim["name"]),
    )
    return set_status(MANAGED_CLUSTER, cluster, {"clusterClaims": reported})


def default_sets(existing: Iterable[Object]) -> list[Change]:
    """Return the changes that create the cluster sets that every hub has."""
    names = {item["metadata"]["name"] for item in existing}
    kind = MANAGED_CLUSTER_SET
    return [
        Create(kind, kind.object(metadata={"name": name}, spec=dict(spec)))
        for name, spec in DEFAULT_SETS.items()
        if name not in names
    ]


def availability_taints(cluster: Object, *, now: str) -> list[Change]:
    """Return the change that taints a cluster as its condition Available says.

    False gives the taint unavailable, Unknown and a missing condition unreachable, both with the
    effect NoSelect. Other taints stay.
    """
    metadata, spec = cluster["metadata"], cluster.get("spec") or {}
    if metadata.get("deletionTimestamp"):
        return []
    conditions = (cluster.get("status") or {}).get("conditions") or ()
    available = find(conditions, "ManagedClusterConditionAvailable") or {}
    key = _TAINT_OF_AVAILABLE.get(available.get("status", "Unknown"), UNREACHABLE)
    taints = spec.get("taints") or []
    kept = [item for item in taints if item["key"] not in {UNAVAILABLE, UNREACHABLE} - {key}]
    if key and all(item["key"] != key for item in kept):
        kept.append({"key": key, "effect": "NoSelect", "timeAdded": now})
    if kept == taints:
        return []
    return [Patch(MANAGED_CLUSTER, metadata["name"], None, {"spec": {"taints": kept}})]
