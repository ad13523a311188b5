"""A hub as the tutorials assume it, with two managed clusters, and a terminal for it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..harness import policy
from ..harness.hub import running_hub
from ..harness.ports import LOOPBACK
from ..product import replay
from ..product.parts import run_program
from .cluster_network import ClusterNetwork
from .kubelet import Kubelet
from .terminal import Terminal, terminal_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..build import Assets
    from ..harness.hub import Hub

WORKERS = ("worker01", "worker02")
PROMETHEUS = "kube-prometheus-kube-prome-prometheus.monitoring.svc"

SERVICE_MONITOR = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: servicemonitors.monitoring.coreos.com
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, plural: servicemonitors}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
"""The kind that the operator of kube-prometheus-stack brings; its fields are not checked here."""


@pytest.fixture(scope="module")
def tutorial_hub(hub_assets: Assets, request: pytest.FixtureRequest) -> Iterator[Hub]:
    """A hub with two managed clusters that have a node each and policies, and nothing of ours."""
    directory = Path(tempfile.mkdtemp(prefix="dsf-tutorial-"))
    with running_hub(directory, hub_assets) as hub:
        clusters = hub.join(*WORKERS)
        policy.start_on_hub(hub)
        for cluster in clusters:
            policy.start_on_cluster(cluster)
        yield hub
    if not request.session.testsfailed:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def kubelets(tutorial_hub: Hub) -> dict[str, Kubelet]:
    """The kubelet of each cluster, by the cluster's name; `hub` is that of the hub."""
    planes = [tutorial_hub, *tutorial_hub.clusters.values()]
    kubelets = {
        plane.name: Kubelet(plane, ClusterNetwork(plane, number))
        for number, plane in enumerate(planes, 1)
    }
    for name in WORKERS:
        add_node(kubelets[name])
        start_prometheus(kubelets[name])
    return kubelets


def add_node(kubelet: Kubelet) -> None:
    """Create the node of a kind cluster, with its address."""
    plane, name = kubelet.plane, f"{kubelet.plane.name}-control-plane"
    plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    addresses = [{"type": "InternalIP", "address": kubelet.network.node}]
    status = {"status": {"addresses": addresses}}
    plane.api.patch("v1", "Node", name, status, subresource="status")


def start_prometheus(kubelet: Kubelet) -> None:
    """Start what stands for kube-prometheus-stack, at the address that its chart gives it."""
    program = f"{kubelet.plane.name}-prometheus"
    url = run_program(kubelet.plane, program, [str(Path(replay.__file__))], "/-/ready")
    address = kubelet.network.pod_address()
    kubelet.network.forward(address, 9090, LOOPBACK, int(url.rpartition(":")[2]))
    kubelet.network.name(address, PROMETHEUS)
    kubelet.plane.apply(SERVICE_MONITOR)


@pytest.fixture(scope="module")
def terminal(kubelets: dict[str, Kubelet]) -> Terminal:
    """A shell whose kubectl has the contexts of the tutorials."""
    return terminal_of(*(kubelet.plane for kubelet in kubelets.values()))
