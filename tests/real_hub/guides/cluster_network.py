"""The network of one cluster on loopback: a node's address, addresses of Pods, DNS of Services.

All clusters reach the node's address, so a NodePort is open to all of them. The name of a Service
is known in its own cluster only.
"""

from __future__ import annotations

import errno
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tests.eventually import until

from ..harness.ports import listens
from . import cluster_dns, port_forward

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.control_plane import ControlPlane


class ClusterNetwork:
    """The network of the cluster with this number, from 1 to 254."""

    def __init__(self, plane: ControlPlane, number: int) -> None:
        self.plane = plane
        self.node = f"127.0.{number}.1"
        self._pods = (f"127.0.{number}.{host}" for host in count(10))
        self._names = plane.directory / "cluster-dns"
        self._names.touch()

    @property
    def environment(self) -> dict[str, str]:
        """What makes a Python process resolve names as in this cluster."""
        return {
            "PYTHONPATH": str(Path(next(iter(cluster_dns.__path__)))),
            "CLUSTER_DNS": str(self._names),
        }

    def pod_address(self) -> str:
        """An address that no other Pod has."""
        return next(self._pods)

    def publish(self, service: Object, address: str, ports: dict[str, int]) -> None:
        """Make a Pod reachable by its Service: by name, and at the ports of the node.

        `ports` are those of the Pod by name. Each port of the Service is that of the Pod, because
        the name stands for the Pod's address.
        """
        metadata = service["metadata"]
        name = f"{metadata['name']}.{metadata['namespace']}.svc"
        for port in service["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            target = ports.get(str(target), target)
            if target != port["port"]:
                raise ValueError(f"{name}: port {port['port']} is not that of the Pod, {target}")
            if node_port := port.get("nodePort"):
                self.forward(self.node, node_port, address, target)
        self.name(address, name)

    def name(self, address: str, name: str) -> None:
        """Let a Service's name stand for an address."""
        with self._names.open("a", encoding="ascii") as file:
            file.write(f"{address} {name}\n{address} {name}.cluster.local\n")

    def address_of(self, name: str) -> str:
        """The address that a Service's name stands for; raises KeyError."""
        lines = self._names.read_text("ascii").splitlines()
        return {name: address for address, name in map(str.split, lines)}[name]

    def forward(self, address: str, port: int, target: str, target_port: int) -> None:
        """Pass connections on, from now on; raises OSError if another program has the address."""
        if listens(address, port):
            raise OSError(errno.EADDRINUSE, f"another program listens on {address}:{port}")
        processes, name = self.plane.processes, f"{self.plane.name}-forward-{address}-{port}"
        words = [port_forward.__file__, address, str(port), target, str(target_port)]
        processes.start(name, [sys.executable, *words])
        until(name, lambda: listens(address, port), check=lambda: processes.check(name))
