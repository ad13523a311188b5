"""Which managed clusters belong to the ManagedClusterSets that a namespace is bound to.

Source: pkg/apis/cluster/v1beta2 of open-cluster-management.io/sdk-go, and
https://open-cluster-management.io/docs/concepts/cluster-inventory/managedclusterset/
"""

from collections.abc import Iterable, Mapping
from typing import Any

from dsf.kube.port import Object
from dsf.kube.selectors import LabelSelector, Requirement, label_selector_of

SET_LABEL = "cluster.open-cluster-management.io/clusterset"
"""The label that names the one exclusive cluster set of a managed cluster."""

DEFAULT_SETS: Mapping[str, Mapping[str, Any]] = {
    "default": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}},
    "global": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}},
}
"""The specs of the cluster sets that every OCM hub has, by name."""


def sets_of(cluster: Object, cluster_sets: Iterable[Object]) -> frozenset[str]:
    """Return the names of the cluster sets that a managed cluster belongs to."""
    labels = cluster["metadata"].get("labels") or {}
    return frozenset(
        item["metadata"]["name"] for item in cluster_sets if _selector(item).matches(labels)
    )


def bound_sets(bindings: Iterable[Object], cluster_sets: Iterable[Object]) -> frozenset[str]:
    """Return the cluster sets that the bindings of a namespace name and that exist."""
    existing = {item["metadata"]["name"] for item in cluster_sets}
    return frozenset(existing & {item["metadata"]["name"] for item in bindings})


def _selector(cluster_set: Object) -> LabelSelector:
    """Return the selector of a cluster set; one that can't be parsed selects by the set's label."""
    name = cluster_set["metadata"]["name"]
    spec = (cluster_set.get("spec") or {}).get("clusterSelector") or {}
    if spec.get("selectorType") == "LabelSelector":
        parsed = label_selector_of(spec.get("labelSelector") or {})
        if isinstance(parsed, LabelSelector):
            return parsed
    return LabelSelector((Requirement(SET_LABEL, "In", frozenset([name])),))
