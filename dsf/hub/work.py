"""The ManifestWork that carries the scorer summaries to one managed cluster.

Source: https://open-cluster-management.io/docs/concepts/work-distribution/manifestwork/
"""

from typing import Any

from dsf.api import names
from dsf.hub.observed import Object

LIMIT_BYTES = 500 * 1024
"""OCM's admission refuses manifests of more: `ManifestLimit` in pkg/work/webhook/common."""
WARNING_BYTES = 400 * 1024
ROOM_BYTES = 1024
"""What the manifests take besides the summaries, with room to spare."""


def manifest_work(cluster: str, text: str, agent_namespace: str) -> dict[str, Any]:
    """Return the work of a cluster; `text` is the value of `data.summaries`.

    The agent's namespace goes along, so that the ConfigMap can be applied before the add-on is
    installed; removing the work leaves the namespace, since the agent and its secrets live there.
    Nothing is stated that an API server of another OCM version would default or drop.
    """
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": agent_namespace}}
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.CONFIG_MAP, "namespace": agent_namespace},
        "data": {names.SUMMARIES_KEY: text},
    }
    kept = {"resource": "namespaces", "name": agent_namespace}
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "name": names.MANIFEST_WORK,
            "namespace": cluster,
            "labels": {names.MANAGED_BY_LABEL: names.ADDON},
        },
        "spec": {
            "workload": {"manifests": [namespace, config_map]},
            "deleteOption": {
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": {"orphaningRules": [kept]},
            },
        },
    }


def summaries_text(work: Object) -> str:
    """Return the `data.summaries` that a work carries; empty where it carries none."""
    workload = (work.get("spec") or {}).get("workload") or {}
    for manifest in workload.get("manifests") or []:
        data = manifest.get("data") or {}
        if manifest.get("kind") == "ConfigMap" and names.SUMMARIES_KEY in data:
            return str(data[names.SUMMARIES_KEY])
    return ""
