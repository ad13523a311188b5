"""Objects of managed clusters as a source: a stand-in for metrics-server, and its scorer.

A CustomResourceDefinition stands for the aggregated API of metrics-server, which needs kubelets:
the same path, and objects of the same form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.dsf.agent.fetch.test_kubernetes_source import METRICS, definition
from tests.eventually import until

from ..harness.api import ApiError

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub

SCORE = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
SCORER = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "DynamicScorer")


def serve_metrics(cluster: ManagedCluster) -> None:
    """Let a managed cluster serve the metrics of two nodes."""
    cluster.apply(definition(METRICS))
    until("the stand-in to be served", lambda: applied(cluster, usage("n1", "2500m")))
    cluster.apply(usage("n2", "7900000000n"))


def usage(name: str, cpu: str) -> Object:
    """What metrics-server says of a node."""
    head = {"apiVersion": METRICS.api_version, "kind": METRICS.kind, "metadata": {"name": name}}
    return {**head, "usage": {"cpu": cpu, "memory": "512Mi"}}


def scorer(hub: Hub, framework: str, resource: str) -> Object:
    """A scorer of objects, at the API of the sample: each score is the mean of its samples."""
    sample = hub.api.get(*SCORER, "sample-scorer", framework)["spec"]
    objects = {
        "apiVersion": METRICS.api_version,
        "resource": resource,
        "values": {"cpu": ".usage.cpu"},
        "labels": {"node": ".metadata.name"},
    }
    return {
        "apiVersion": SCORER[0],
        "kind": SCORER[1],
        "metadata": {"name": f"of-{resource}", "namespace": framework},
        "spec": {
            "description": "CPU cores in use",
            "configURL": sample["configURL"],
            "configSyncMode": "None",
            "source": {"type": "Kubernetes", "kubernetes": objects},
            "scoring": {"params": {"name": f"used_{resource}", "interval": 1}},
            "scoreDimensionFormat": "${node}",
        },
    }


def applied(cluster: ManagedCluster, obj: Object) -> bool:
    """Whether an object could be applied."""
    try:
        cluster.apply(obj)
    except ApiError:
        return False
    return True


def status(hub: Hub, resource: str, cluster: str) -> Object:
    """The status of the score of objects of a managed cluster."""
    found: Object = (hub.api.find(*SCORE, f"used-{resource}", cluster) or {}).get("status") or {}
    return found


def entries(hub: Hub, resource: str, cluster: str) -> dict[str, int]:
    """The values of the score by node."""
    return {
        each["name"]: each["value"] for each in status(hub, resource, cluster).get("scores") or []
    }


def refusal(hub: Hub, resource: str, cluster: str) -> Object | None:
    """Why the source of the score could not be read, once that is so."""
    conditions = status(hub, resource, cluster).get("conditions") or []
    named = (one for one in conditions if one["type"] == "SourceFetched")
    return next((one for one in named if one["status"] == "False"), None)
