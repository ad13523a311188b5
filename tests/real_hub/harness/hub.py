"""A whole hub with its managed clusters."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, TypeVar

from . import ocm
from .cluster import ManagedCluster
from .control_plane import ControlPlane, start_etcd
from .ports import Ports
from .processes import Processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..build import Assets

Cluster = TypeVar("Cluster", bound=ManagedCluster)


class Hub(ControlPlane):
    """The hub cluster with OCM's controllers, and the clusters that joined it."""

    def __init__(self, processes: Processes, assets: Assets, ports: Ports, etcd: str) -> None:
        super().__init__("hub", processes, assets, ports, processes.directory)
        self.etcd = etcd
        self.clusters: dict[str, ManagedCluster] = {}

    def install(self) -> None:
        """Install OCM and start Kubernetes' and OCM's controllers."""
        ocm.install_hub(self)
        self.start_controllers()
        ocm.start_controllers(self)

    def join(self, *names: str) -> list[ManagedCluster]:
        """Create managed clusters, join them, and wait until the hub sees them as available."""
        return self.join_as(ManagedCluster, *names)

    def join_as(self, kind: type[Cluster], *names: str) -> list[Cluster]:
        """Join managed clusters of a class of their own, such as `ScheduledCluster`."""
        joined = [
            kind(name, self.processes, self.assets, self.ports, self.processes.directory)
            for name in names
        ]
        self.clusters |= {cluster.name: cluster for cluster in joined}
        for cluster in joined:
            cluster.start(self.etcd)
        for cluster in joined:
            cluster.wait_ready()
            cluster.join(self)
        for cluster in joined:
            cluster.wait_joined()
        for cluster in joined:
            cluster.wait_available()
        return joined

    def close(self) -> None:
        """Close the connections to the hub and its clusters."""
        for plane in (self, *self.clusters.values()):
            plane.api.close()


@contextmanager
def running_hub(directory: Path, assets: Assets) -> Iterator[Hub]:
    """A hub without managed clusters, until the end of the ``with`` block.

    Everything is on loopback and below ``directory``. In the end only ``logs/`` is kept.
    """
    processes = Processes(directory)
    ports = Ports()
    try:
        etcd = start_etcd(processes, assets, ports, directory)
        with closing(Hub(processes, assets, ports, etcd)) as hub:
            hub.start(etcd)
            hub.wait_ready()
            hub.install()
            yield hub
    finally:
        processes.close()
