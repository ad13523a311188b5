"""Landed follows Pods that a real scheduler places, and a kept workload leaves where they wait."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from dsf.agent.inventory.inventory_metrics import InventoryMetrics
from dsf.agent.inventory.inventory_publisher import keep_inventory
from dsf.agent.publish.write_permission import PublisherIdentity
from dsf.kube.client.connect import connect
from dsf.kube.clock import utc_now
from optimizer.domain.settings import DEFAULTS
from optimizer.service.optimization_controller import OptimizationController
from optimizer.service.optimizer import Optimizer
from tests.eventually import eventually
from tests.optimizer.service.kept_fleet import AT_ONCE

from .harness.gpu_nodes import GPU, deployment, gpu_node, pod, pod_template
from .harness.placements import decided, publish_score
from .test_rollout import running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsf.kube.port import Kube
    from optimizer.wire.placement_status import WorkloadLanding

    from .harness.hub import Hub
    from .harness.scheduled import ScheduledCluster

KEPT = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "PlacementOptimization")
INVENTORY = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "NodeInventory")
WORKLOAD = ("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet")
CLUSTERS = ("gpus", "east")
FEEDBACK = {
    "resourceIdentifier": {
        "group": "apps",
        "resource": "deployments",
        "name": "trainer",
        "namespace": "default",
    },
    "feedbackRules": [{"type": "WellKnownStatus"}],
}

pytestmark = pytest.mark.usefixtures("clusters", "placement_plans")


@pytest.fixture
def place(hub: Hub, bound_namespace: str) -> Iterator[str]:
    """A namespace that keeps two Pods with a GPU each where the score is best: on gpus."""
    manifests = [deployment("trainer", "default", 2, pod_template({GPU: "1"}))]
    labels = {"app": "trainer", "resource-request-kind": "gpu", "resource-request-amount": "2"}
    hub.apply(
        {
            "apiVersion": WORKLOAD[0],
            "kind": WORKLOAD[1],
            "metadata": {"name": "trainer", "namespace": bound_namespace, "labels": labels},
            "spec": {
                "placementRefs": [{"name": "trainer", "rolloutStrategy": {"type": "All"}}],
                "manifestWorkTemplate": {
                    "workload": {"manifests": manifests},
                    "manifestConfigs": [FEEDBACK],
                },
            },
        }
    )
    hub.api.delete(*INVENTORY, "gpus", "gpus")
    publish_score(hub, "pods", "trainer;all", gpus=80, east=20)
    supply = [{"kind": "gpu", "device": "all", "amount": 2}]
    spec = {
        "clusters": [{"name": name, "allocatable": supply} for name in CLUSTERS],
        "preference": {"addonPlacementScore": "pods"},
        "hysteresis": AT_ONCE,
        "mode": "Apply",
    }
    metadata = {"name": "kept", "namespace": bound_namespace}
    hub.apply({"apiVersion": KEPT[0], "kind": KEPT[1], "metadata": metadata, "spec": spec})
    yield bound_namespace
    hub.api.delete(*KEPT, "kept", bound_namespace)
    hub.api.delete(*WORKLOAD, "trainer", bound_namespace)
    hub.api.delete(*INVENTORY, "gpus", "gpus")


def test_landed_follows_pods_and_a_workload_whose_pods_lack_a_node_moves(
    hub: Hub, gpus: ScheduledCluster, place: str
) -> None:
    asyncio.run(_followed(hub, gpus, place))


async def _followed(hub: Hub, gpus: ScheduledCluster, namespace: str) -> None:
    gpus.add([gpu_node("plain", 2)])
    gpus.wait_schedulable("plain")
    gpus.add([pod("stranger", "default", {GPU: "1"}, node="plain")])
    async with connect(hub.admin_kubeconfig) as kube, connect(gpus.admin_kubeconfig) as managed:
        service = Optimizer(kube, replace(DEFAULTS, pending_grace_seconds=0), now=utc_now)
        kept = OptimizationController(service, read_only=False)

        async def told(state: str, reason: str = "", said: str = "") -> WorkloadLanding:
            async def says() -> WorkloadLanding | None:
                status = await service.placement_status(namespace)
                rows = [item for item in status.workloads if item.cluster == "gpus"]
                fits = [i for i in rows if i.state == state and reason in ("", i.reason)]
                return next((item for item in fits if said in item.message), None)

            return await eventually(says)

        await kept.look(namespace, "kept")
        found = await told("WaitingForPods", "PodsNotReady", "1 of 2")
        assert found.message == "1 of 2 Pods ready", "by the status feedback of OCM alone"
        async with running(_agent(kube, managed)):
            said = "1 of 2 Pods ready, 1 pending: Unschedulable"
            found = await told("WaitingForPods", "PodsPending", said)
            assert f"Insufficient {GPU}" in found.message
            gpus.end("stranger", "default")
            found = await told("Landed")
            assert found.message.endswith("2 of 2 Pods ready")
            # One that bypasses the scheduler takes the place of a Pod that is started again.
            gpus.add([pod("another", "default", {GPU: "1"}, node="plain")])
            await _start_again(gpus)
            await told("WaitingForPods", "PodsPending")
            assert decided(hub, "trainer", namespace) == ["gpus"]
            await kept.look(namespace, "kept")

            async def moved() -> bool:
                return decided(hub, "trainer", namespace) == ["east"]

            await eventually(moved)
            (left,) = hub.api.get(*KEPT, "kept", namespace)["status"]["pendingPlaces"]
            assert (left["workload"], left["cluster"]) == ("trainer", "gpus")


async def _agent(hub: Kube, managed: Kube) -> None:
    """Publish the inventory of the cluster as its agent does."""
    await keep_inventory(
        hub,
        managed,
        "gpus",
        (),
        metrics=InventoryMetrics(CollectorRegistry(), lambda: utc_now().timestamp()),
        identity=PublisherIdentity(),
        now=utc_now,
    )


async def _start_again(gpus: ScheduledCluster) -> None:
    """Delete the workload's Pods; its ReplicaSet makes new ones."""
    for item in gpus.api.list("v1", "Pod", "default", labels="app=trainer"):
        gpus.api.delete("v1", "Pod", item["metadata"]["name"], "default")
