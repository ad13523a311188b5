"""A namespace whose Placements can choose from every cluster."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .hub import Hub

BINDING = ("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding")
PLACEMENT = ("cluster.open-cluster-management.io/v1beta1", "Placement")


@contextmanager
def bound(hub: Hub, namespace: str) -> Iterator[str]:
    """Bind a namespace to the cluster set of all clusters.

    Afterwards its Placements are deleted, those that a test made by hand too, because what they
    hold of a cluster counts for later tests.
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
    for placement in hub.api.list(*PLACEMENT, namespace):
        hub.api.delete(*PLACEMENT, placement["metadata"]["name"], namespace)
