"""A namespace whose Placements can choose from every cluster."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from dsf.api.names import REPLICA_SET_LABEL
from tests.eventually import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .hub import Hub

BINDING = ("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding")
WORK = ("work.open-cluster-management.io/v1", "ManifestWork")
WORKLOAD = ("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet")
STOP_SECONDS = 60.0
"""OCM takes seconds; on a loaded machine more."""
PLACEMENT = ("cluster.open-cluster-management.io/v1beta1", "Placement")


@contextmanager
def bound(hub: Hub, namespace: str) -> Iterator[str]:
    """Bind a namespace to the cluster set of all clusters.

    Afterwards its workloads and Placements are deleted, those that a test made by hand too, because
    what they use and hold of a cluster counts for later tests.
    """
    hub.apply(
        {
            "apiVersion": BINDING[0],
            "kind": BINDING[1],
            "metadata": {"name": "global", "namespace": namespace},
            "spec": {"clusterSet": "global"},
        }
    )
    yield namespace
    remove_workloads(hub, namespace)
    for placement in hub.api.list(*PLACEMENT, namespace):
        hub.api.delete(*PLACEMENT, placement["metadata"]["name"], namespace)


def remove_workloads(hub: Hub, namespace: str) -> None:
    """Delete the ManifestWorkReplicaSets of a namespace, and wait while OCM stops what runs.

    What runs on a cluster that a test has lost does not stop, so nobody waits for it for long.
    """
    for workload in hub.api.list(*WORKLOAD, namespace):
        hub.api.delete(*WORKLOAD, workload["metadata"]["name"], namespace)
    with suppress(TimeoutError):
        until("works to stop", lambda: not _works(hub, namespace), seconds=STOP_SECONDS)


def _works(hub: Hub, namespace: str) -> list[str]:
    owners = (
        (work["metadata"].get("labels") or {}).get(REPLICA_SET_LABEL, "")
        for work in hub.api.list(*WORK, labels=REPLICA_SET_LABEL)
    )
    return [owner for owner in owners if owner.startswith(f"{namespace}.")]
