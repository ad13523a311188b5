"""Simulated registration: clusters join the hub and report their ClusterClaims.

Source: https://open-cluster-management.io/docs/concepts/cluster-inventory/managedcluster/
"""

from collections.abc import Iterable, Mapping

from dsf.api.names import ADDON
from dsf.kube.changes import Change, Create, Patch
from dsf.kube.kinds import MANAGED_CLUSTER, MANAGED_CLUSTER_ADD_ON, NAMESPACE
from dsf.kube.port import Object

SET_LABEL = "cluster.open-cluster-management.io/clusterset"
_JOINED = {
    "HubAcceptedManagedCluster": "HubClusterAdminAccepted",
    "ManagedClusterJoined": "ManagedClusterJoined",
    "ManagedClusterConditionAvailable": "ManagedClusterAvailable",
}


def join(name: str, labels: Mapping[str, str], *, now: str) -> list[Change]:
    """Return the changes that register a cluster: accepted, joined, available, add-on enabled."""
    cluster = {
        "apiVersion": MANAGED_CLUSTER.api_version,
        "kind": MANAGED_CLUSTER.kind,
        "metadata": {"name": name, "labels": {SET_LABEL: "default", **labels}},
        "spec": {"hubAcceptsClient": True, "leaseDurationSeconds": 60},
    }
    add_on = {
        "apiVersion": MANAGED_CLUSTER_ADD_ON.api_version,
        "kind": MANAGED_CLUSTER_ADD_ON.kind,
        "metadata": {"name": ADDON, "namespace": name},
        "spec": {},
    }
    conditions = [
        {
            "type": type_,
            "status": "True",
            "reason": reason,
            "message": "",
            "lastTransitionTime": now,
        }
        for type_, reason in _JOINED.items()
    ]
    return [
        Create(NAMESPACE, _namespace(name)),
        Create(MANAGED_CLUSTER, cluster),
        Patch(MANAGED_CLUSTER, name, None, {"status": {"conditions": conditions}}, "status"),
        Create(MANAGED_CLUSTER_ADD_ON, add_on),
    ]


def report_claims(cluster: Object, claims: Iterable[Object]) -> list[Change]:
    """Return the change that copies a cluster's ClusterClaims into its ManagedCluster status."""
    wanted = sorted(
        (
            {"name": claim["metadata"]["name"], "value": claim.get("spec", {}).get("value", "")}
            for claim in claims
        ),
        key=lambda claim: str(claim["name"]),
    )
    if wanted == (cluster.get("status", {}).get("clusterClaims") or []):
        return []
    name = cluster["metadata"]["name"]
    return [Patch(MANAGED_CLUSTER, name, None, {"status": {"clusterClaims": wanted}}, "status")]


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": name}}
