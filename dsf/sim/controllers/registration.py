"""Simulated registration: clusters join the hub and report their ClusterClaims.

Source: https://open-cluster-management.io/docs/concepts/cluster-inventory/managedcluster/
"""

from collections.abc import Iterable, Mapping

from dsf.api.conditions import Condition, merged
from dsf.api.names import ADDON
from dsf.kube.changes import Change, Create
from dsf.kube.kinds import MANAGED_CLUSTER, MANAGED_CLUSTER_ADD_ON, NAMESPACE
from dsf.kube.port import Object
from dsf.sim.controllers.musthave import set_status

SET_LABEL = "cluster.open-cluster-management.io/clusterset"
_JOINED = (
    Condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted"),
    Condition("ManagedClusterJoined", "True", "ManagedClusterJoined"),
    Condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable"),
)


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
    namespace = {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": name}}
    return [
        Create(NAMESPACE, namespace),
        Create(MANAGED_CLUSTER, cluster),
        *set_status(MANAGED_CLUSTER, cluster, {"conditions": merged([], _JOINED, now=now)}),
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
    return set_status(MANAGED_CLUSTER, cluster, {"clusterClaims": wanted})
