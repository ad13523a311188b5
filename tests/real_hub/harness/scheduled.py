"""A managed cluster whose Pods run: kube-scheduler places them, KWOK does the work of the kubelets.

KWOK (https://kwok.sigs.k8s.io) reports nodes as ready, renews their leases, and reports each Pod on
them as running and ready at once. It runs no container, and a Pod ends when a test says so. Nothing
here prepares devices, therefore an allocated ResourceClaim is all that a Pod needs of DRA.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.eventually import until

from .cluster import ManagedCluster
from .control_plane import CONTROLLERS, ControlPlane
from .health import wait_healthy
from .ports import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .api import Object

STAGES = Path(__file__).with_name("kwok_stages.yaml")
KWOK_NODE = {"type": "kwok"}
"""Label of the nodes that KWOK keeps alive; a node that loses it is lost."""
DRA_GATES = "DRAPartitionableDevices=true"
"""What is alpha in Kubernetes 1.34: devices that share counters."""
LEASE_SECONDS = 8
LOST_AFTER_SECONDS = 40
EVICTED_AFTER_SECONDS = 2
WORKLOADS = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("resource.k8s.io/v1", "ResourceClaimTemplate"),
)


class ScheduledCluster(ManagedCluster):
    """A managed cluster with kube-scheduler, KWOK, and the controllers that look after nodes."""

    apiserver_options = (
        f"--feature-gates={DRA_GATES}",
        f"--default-not-ready-toleration-seconds={EVICTED_AFTER_SECONDS}",
        f"--default-unreachable-toleration-seconds={EVICTED_AFTER_SECONDS}",
    )
    controllers = (
        *CONTROLLERS,
        "node-lifecycle-controller",
        "pod-garbage-collector-controller",
        "resourceclaim-controller",
        "statefulset-controller",
        "taint-eviction-controller",
    )
    controller_options = (
        f"--feature-gates={DRA_GATES}",
        f"--node-monitor-grace-period={LOST_AFTER_SECONDS}s",
        "--node-monitor-period=1s",
        "--node-eviction-rate=10",
    )

    def start_controllers(self) -> None:
        """Start Kubernetes' own controllers, its scheduler, and KWOK."""
        super().start_controllers()
        start_scheduler(self)
        start_kwok(self)

    def add(self, objects: Iterable[Object]) -> None:
        """Create objects; nodes among them have the status that they are given."""
        for obj in objects:
            self.api.create(obj)

    def wait_schedulable(self, *nodes: str) -> None:
        """Wait until nodes are ready and Kubernetes has removed the taint of a new node."""

        def probe() -> bool:
            found = {node["metadata"]["name"]: node for node in self.api.list("v1", "Node")}
            return all(is_schedulable(found.get(node, {})) for node in nodes)

        until(f"{', '.join(nodes)} to be ready", probe, check=self.processes.check)

    def lose(self, node: str) -> None:
        """Stop a node's lease, as when the machine loses its power.

        If KWOK renews the lease in the moment in which the node loses its label, it no longer finds
        the node where it keeps those with the label, reads it without that, and renews on and on
        (v0.6.1 to v0.8.0: `nodeLeaseSyncWorker`). Then it has to see the label come and go again.
        """
        until(f"the lease of {node} to end", lambda: self._is_released(node))

    def _is_released(self, node: str) -> bool:
        """Take KWOK's label from a node; give it back if the node is renewed nevertheless."""
        self.api.patch("v1", "Node", node, {"metadata": {"labels": dict.fromkeys(KWOK_NODE)}})
        before = self._renewed(node)
        time.sleep(LEASE_SECONDS)
        if self._renewed(node) == before:
            return True
        self.api.patch("v1", "Node", node, {"metadata": {"labels": KWOK_NODE}})
        return False

    def _renewed(self, node: str) -> str:
        lease = self.api.get("coordination.k8s.io/v1", "Lease", node, "kube-node-lease")
        return str(lease["spec"]["renewTime"])

    def end(self, name: str, namespace: str, phase: str = "Succeeded") -> None:
        """Let a Pod end, as its containers would."""
        body = {"status": {"phase": phase}}
        self.api.patch("v1", "Pod", name, body, namespace, subresource="status")

    def allocated(self, namespace: str) -> list[tuple[str, str]]:
        """The pool and the name of each device that claims of a namespace have."""
        claims = self.api.list("resource.k8s.io/v1", "ResourceClaim", namespace)
        return [
            (result["pool"], result["device"])
            for claim in claims
            if "allocation" in claim.get("status", {})
            for result in claim["status"]["allocation"]["devices"]["results"]
        ]

    def clear(self, namespace: str) -> None:
        """Delete a namespace's workloads, Pods and claims, and the cluster's nodes and devices."""
        for api_version, kind in WORKLOADS:
            self._delete_all(api_version, kind, namespace)
        for api_version, kind in (("v1", "Node"), ("resource.k8s.io/v1", "ResourceSlice")):
            self._delete_all(api_version, kind)
        left = [self.api.path(*workload, namespace) for workload in WORKLOADS]

        def gone() -> bool:
            while left and not self.api.request("GET", left[-1])["items"]:
                left.pop()
            return not left

        until(f"everything in {namespace} to be gone", gone, every=0.05)

    def _delete_all(self, api_version: str, kind: str, namespace: str = "") -> None:
        # No grace: on a lost node nobody ends a Pod.
        body = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        self.api.request("DELETE", self.api.path(api_version, kind, namespace), body)


def is_schedulable(node: Object) -> bool:
    """Whether a node is ready and has no taint."""
    conditions = node.get("status", {}).get("conditions") or []
    ready = any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
    return ready and not node["spec"].get("taints")


def start_scheduler(plane: ControlPlane) -> None:
    """Start kube-scheduler with its default profile, under its own user, and wait."""
    port = plane.ports.free()
    kubeconfig = plane.kubeconfig(user="system:kube-scheduler")
    name = f"{plane.name}-kube-scheduler"
    plane.processes.start(
        name,
        [
            plane.assets.program("kube-scheduler"),
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--feature-gates={DRA_GATES}",
            "--leader-elect=false",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--cert-dir={plane.directory / 'pki'}",
        ],
    )
    wait_healthy(plane.processes, name, f"https://{LOOPBACK}:{port}/healthz")


def start_kwok(plane: ControlPlane) -> None:
    """Start KWOK for the nodes that have its label."""
    ((label, value),) = KWOK_NODE.items()
    plane.processes.start(
        f"{plane.name}-kwok",
        [
            plane.assets.program("kwok"),
            f"--kubeconfig={plane.admin_kubeconfig}",
            f"--config={STAGES}",
            f"--manage-nodes-with-label-selector={label}={value}",
            f"--node-lease-duration-seconds={LEASE_SECONDS}",
        ],
    )
