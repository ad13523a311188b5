"""`helm test` of each installed chart, whose Pods ask the product's processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ..guides.cluster_network import ClusterNetwork
from ..guides.kubelet import Kubelet
from ..harness.helm import HelmFailed, helm_test
from ..harness.ports import LOOPBACK
from .conftest import WATCHER

if TYPE_CHECKING:
    from ..harness.hub import Hub
    from .parts import Part

CORE, OPTIMIZER = "dynamic-scoring-framework", "dynamic-scoring-optimizer"
ADDON_API = "addon.open-cluster-management.io/v1alpha1"
NETWORK = 202
"""Number of a network on loopback that no other test of this hub uses."""


@pytest.fixture(scope="module")
def network(hub: Hub) -> ClusterNetwork:
    return ClusterNetwork(hub, NETWORK)


def publish(network: ClusterNetwork, part: Part, port: int) -> None:
    """Give a process the name and the port of its Service."""
    address = network.pod_address()
    network.forward(address, port, LOOPBACK, part.port)
    network.name(address, f"{part.deployment}.{part.namespace}.svc")


def test_the_core(hub: Hub, controller: Part, network: ClusterNetwork) -> None:
    kubelet = Kubelet(hub, network, controller.namespace)
    with pytest.raises(HelmFailed, match="dynamic-scoring-controller-test failed"):
        helm_test(hub, CORE, controller.namespace, kubelet.run_pods)
    publish(network, controller, 8080)
    helm_test(hub, CORE, controller.namespace, kubelet.run_pods)


def test_the_optimizer(hub: Hub, optimizer: Part, network: ClusterNetwork) -> None:
    publish(network, optimizer, 8338)
    kubelet = Kubelet(hub, network, optimizer.namespace)
    helm_test(hub, OPTIMIZER, optimizer.namespace, kubelet.run_pods)


def test_the_watchers_addon(hub: Hub, watchers: dict[str, Part], network: ClusterNetwork) -> None:
    """Its Pod asks OCM, with the account that helm makes for it."""
    for cluster in watchers:
        hub.api.wait_condition(ADDON_API, "ManagedClusterAddOn", WATCHER, "Available", cluster)
    helm_test(hub, WATCHER, WATCHER, Kubelet(hub, network, WATCHER).run_pods)
    said = hub.processes.log(f"{hub.name}-policy-watcher-test").read_text()
    assert said == "2 managed clusters have the add-on; not available on: []\n"
