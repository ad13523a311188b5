"""Does the work of a kubelet for all Deployments of a cluster whose images stand for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.charts.entrypoints import DSF, entrypoint

from ..harness.api import ApiError
from ..harness.health import wait_healthy
from ..harness.pods import mark_ready, run_deployment, run_to_end

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.control_plane import ControlPlane
    from .cluster_network import ClusterNetwork

# Pods have loopback addresses here, which a scorer on a real cluster must not have.
DROPPED = "--scorer-denied-cidrs"
FLAGS = {
    "controller": ("--metrics-bind-address={pod}:8080",),
    "agent": ("--metrics-bind-address={pod}:8080",),
    "policy-watcher": ("--metrics-bind-address={pod}:8080",),
    "optimizer": ("--bind-address={pod}",),
}
"""What listens on all addresses in a container listens on the Pod's own here."""


@dataclass
class Kubelet:
    """Runs Deployments as processes; `sync` starts those that are new, and again what has changed.

    It sees one namespace, or with an empty one, all.
    """

    plane: ControlPlane
    network: ClusterNetwork
    namespace: str = ""
    _running: dict[tuple[str, str], Object] = field(default_factory=dict)
    _addresses: dict[tuple[str, str], str] = field(default_factory=dict)

    def sync(self) -> None:
        """Start each Deployment that can start; one that lacks a Secret is left for later."""
        for deployment in self.plane.api.list("apps/v1", "Deployment", self.namespace):
            metadata, pod = deployment["metadata"], deployment["spec"]["template"]["spec"]
            place = metadata["namespace"], metadata["name"]
            if self._running.get(place) == pod:
                continue
            if place in self._running:
                self.stop(*place)
            if self._start(deployment, *place):
                self._running[place] = pod

    def run_pods(self) -> None:
        """Run the Pods that nothing else made, such as those of `helm test`, to their end."""
        for pod in self.plane.api.list("v1", "Pod", self.namespace):
            if not pod["metadata"].get("ownerReferences") and pod["status"]["phase"] == "Pending":
                run_to_end(self.plane, pod, self.network.environment)

    def stop(self, namespace: str, name: str) -> int:
        """Stop a Deployment's process as a kubelet does, and return its exit code."""
        del self._running[namespace, name]
        return self.plane.processes.stop(self._process(namespace, name))

    def _process(self, namespace: str, name: str) -> str:
        return f"{self.plane.name}-{namespace}-{name}"

    def _start(self, deployment: Object, namespace: str, name: str) -> bool:
        pod = deployment["spec"]["template"]["spec"]
        [container] = pod["containers"]
        words = entrypoint(container["image"])
        known = self._addresses.get((namespace, name))
        address = known or self.network.pod_address()
        if words == DSF:
            flags = [flag.format(pod=address) for flag in FLAGS[container["args"][0]]]
        else:
            flags = [f"--host={address}"]
        try:
            process = run_deployment(
                self.plane,
                namespace,
                name,
                entrypoint=words,
                env=self.network.environment,
                extra_args=flags,
                dropped_flag=DROPPED,
                process=self._process(namespace, name),
            )
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        probe = container["readinessProbe"]["httpGet"]
        port = ports.get(str(probe["port"]), probe["port"])
        url = f"{probe['scheme'].lower()}://{address}:{port}{probe['path']}"
        wait_healthy(self.plane.processes, process, url)
        mark_ready(self.plane, namespace, name)
        self._addresses[namespace, name] = address
        if not known:
            self._publish(deployment, address, ports)
        return True

    def _publish(self, deployment: Object, address: str, ports: dict[str, int]) -> None:
        """Make it reachable by its Services; a Pod of it that is started again has its address."""
        namespace = deployment["metadata"]["namespace"]
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        for service in self.plane.api.list("v1", "Service", namespace):
            if service["spec"].get("selector", {}).items() <= labels.items():
                self.network.publish(service, address, ports)
