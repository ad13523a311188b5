"""Plans on a real cluster with a scheduler: between plan and apply, and when a node is lost."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from dsf.agent.inventory.inventory_metrics import InventoryMetrics
from dsf.agent.inventory.inventory_publisher import keep_inventory
from dsf.agent.publish.write_permission import PublisherIdentity
from dsf.api.names import CLUSTER_CLAIM
from dsf.kube import kinds
from dsf.kube.client.connect import connect
from dsf.kube.clock import utc_now
from dsf.kube.errors import TooManyRequests
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.eventually import eventually, until

from .harness import policy
from .harness.api import condition_of
from .harness.gpu_nodes import (
    GPU,
    deployment,
    gpu_node,
    mig_claim_template,
    mig_resource,
    pod,
    pod_template,
    resource_slices,
)
from .harness.gpu_operator import STATE, gpu_operator
from .harness.placements import publish_score, withdraw_score
from .test_rollout import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from dsf.kube.port import Kube

    from .harness.api import Object
    from .harness.hub import Hub
    from .harness.scheduled import ScheduledCluster

WORKLOAD = ("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet")
WORK = ("work.open-cluster-management.io/v1", "ManifestWork")
INVENTORY = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "NodeInventory")
HALF = mig_resource("3g.40gb")
NAMESPACE = "default"
CLAIM = "half"
CLAIMED = mig_claim_template(CLAIM, NAMESPACE, "3g.40gb")
COMPLIANT: Object = {
    "apiVersion": "cluster.open-cluster-management.io/v1alpha1",
    "kind": "ClusterClaim",
    "metadata": {"name": CLUSTER_CLAIM},
    "spec": {"value": "compliant"},
}

pytestmark = pytest.mark.usefixtures("placement_plans")


@pytest.fixture
def namespace(hub: Hub, gpus: ScheduledCluster, bound_namespace: str) -> Iterator[str]:
    """A namespace for workloads of the cluster; they have no scores of their own."""
    publish_score(hub, "nodes", "another;all", gpus=1)
    yield bound_namespace
    for item in hub.api.list(*WORKLOAD, bound_namespace):
        name = item["metadata"]["name"]
        hub.api.delete(*WORKLOAD, name, bound_namespace)
        of_it = f"work.open-cluster-management.io/manifestworkreplicaset={bound_namespace}.{name}"
        until("its works to be gone", partial(is_empty, hub, gpus.name, of_it))
    hub.api.delete(*INVENTORY, gpus.name, gpus.name)
    withdraw_score(hub, "nodes", gpus.name)


def is_empty(hub: Hub, cluster: str, labels: str) -> bool:
    return not hub.api.list(*WORK, cluster, labels=labels)


@pytest.fixture(scope="module")
def governed(policies: None, scheduled: ScheduledCluster) -> None:
    """The cluster with governance policies, and a namespace for NVIDIA's GPU operator."""
    policy.start_on_cluster(scheduled)
    scheduled.namespace("gpu-operator")


class Planner:
    """The optimizer, while an agent reports the nodes of the cluster."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.service = Optimizer(kube, now=utc_now)

    async def plan(self, *workloads: str, **cluster: object) -> Plan:
        """The plan for workloads on the cluster, with fields of the cluster in the request."""
        request = OptimizeRequest.model_validate(
            {
                "namespace": self.namespace,
                "clusters": [{"name": "gpus", **cluster}],
                "targetWorkloads": [{"name": name} for name in workloads],
                "preference": {"addonPlacementScore": "nodes"},
                "missingScore": 1,
            }
        )
        made = await self.service.plan(request)
        assert isinstance(made, Plan), made
        return made

    async def seen(self, holds: Callable[[Object], bool]) -> None:
        """Wait until the inventory says something."""

        async def told() -> bool:
            found = await self.kube.list(kinds.NODE_INVENTORY, "gpus")
            return any(holds(item.get("status", {})) for item in found.items)

        # The API server has just begun to serve the kind.
        await eventually(told, ignoring=TooManyRequests)


@asynccontextmanager
async def planner(hub: Hub, gpus: ScheduledCluster, namespace: str) -> AsyncIterator[Planner]:
    metrics = InventoryMetrics(CollectorRegistry(), lambda: utc_now().timestamp())
    async with connect(hub.admin_kubeconfig) as kube, connect(gpus.admin_kubeconfig) as managed:
        agent = keep_inventory(
            kube, managed, "gpus", (), metrics=metrics, identity=PublisherIdentity(), now=utc_now
        )
        async with running(agent):
            found = Planner(kube, namespace)
            yield found
            await found.service.reset(namespace)


def deploy(
    hub: Hub, namespace: str, name: str, count: int, devices: int = 1, resource: str = GPU
) -> None:
    """Offer a workload whose Pods request devices; without a resource they claim a MIG device."""
    amount = str(count * devices)
    labels = {"app": name, "resource-request-kind": "gpu", "resource-request-amount": amount}
    template = pod_template({resource: str(devices)}) if resource else pod_template(claim=CLAIM)
    manifests = [deployment(name, NAMESPACE, count, template), *([] if resource else [CLAIMED])]
    hub.apply(
        {
            "apiVersion": WORKLOAD[0],
            "kind": WORKLOAD[1],
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
            "spec": {
                "placementRefs": [{"name": name, "rolloutStrategy": {"type": "All"}}],
                "manifestWorkTemplate": {"workload": {"manifests": manifests}},
            },
        }
    )


def placed(plan: Plan) -> list[tuple[str, str]]:
    return sorted((item.workload, item.device) for item in plan.placements)


def has_free(resource: str, amount: str, status: Object) -> bool:
    """Whether an inventory has so much of a resource free on one node."""
    return bool(status.get("largestFree", {}).get(resource) == amount)


def ready(gpus: ScheduledCluster, name: str) -> int:
    pods = gpus.api.list("v1", "Pod", NAMESPACE, labels=f"app={name}")
    return sum(condition_of(item, "Ready").get("status") == "True" for item in pods)


def test_a_plan_is_refused_once_a_stranger_has_taken_what_it_needs(
    hub: Hub, gpus: ScheduledCluster, namespace: str
) -> None:
    gpus.add([gpu_node("plain", 2)])
    gpus.wait_schedulable("plain")
    deploy(hub, namespace, "trainer", 2)

    async def run() -> None:
        async with planner(hub, gpus, namespace) as told:
            await told.seen(partial(has_free, GPU, "2"))
            made = await told.plan("trainer")
            assert placed(made) == [("trainer", "all")]
            gpus.add([pod("stranger", NAMESPACE, {GPU: "1"}, node="plain")])
            await told.seen(partial(has_free, GPU, "1"))
            refused = await told.service.apply(made)
            assert isinstance(refused, RequestProblem)
            assert refused.reason == "StalePlan"
            assert GPU in f"{refused.detail} {refused.errors}"
            assert placed(await told.plan("trainer")) == []

            gpus.end("stranger", NAMESPACE)
            await told.seen(partial(has_free, GPU, "2"))
            applied = await told.service.apply(await told.plan("trainer"))
            assert isinstance(applied, Applied)
            await eventually(lambda: asyncio.to_thread(lambda: ready(gpus, "trainer") == 2))

    asyncio.run(run())


def test_nothing_is_placed_on_a_node_that_is_lost(
    hub: Hub, gpus: ScheduledCluster, namespace: str
) -> None:
    gpus.add([gpu_node("large", 4), gpu_node("small", 1), gpu_node("other", 1)])
    gpus.wait_schedulable("large", "small", "other")
    deploy(hub, namespace, "whole", 1, devices=2)
    deploy(hub, namespace, "parts", 2)

    async def run() -> None:
        async with planner(hub, gpus, namespace) as told:
            await told.seen(lambda status: status.get("readyNodes") == 3)
            assert placed(await told.plan("whole")) == [("whole", "all")]
            gpus.lose("large")
            await told.seen(lambda status: status.get("readyNodes") == 2)
            made = await told.plan("whole", "parts")
            assert placed(made) == [("parts", "all")]
            (left,) = made.unplaced
            assert (left.workload, left.reason) == ("whole", "NoNodeFits")

    asyncio.run(run())


@pytest.mark.usefixtures("governed")
def test_one_plan_fills_devices_that_its_policy_makes_and_devices_that_are_claimed(
    hub: Hub, gpus: ScheduledCluster, namespace: str
) -> None:
    gpus.add([gpu_node("plugin", 2), *resource_slices("dra", 1, partitionable=True)])
    gpus.add([gpu_node("dra", 1, device_plugin=False)])
    gpus.wait_schedulable("plugin", "dra")
    deploy(hub, namespace, "halves", 2, resource=HALF)
    deploy(hub, namespace, "claims", 2, resource="")
    deploy(hub, namespace, "more", 3, resource="")

    async def run() -> None:
        async with planner(hub, gpus, namespace) as told:
            await told.seen(partial(has_free, GPU, "2"))
            gpu = {"model": "H100-80GB", "node": "plugin", "count": 2}
            made = await told.plan("halves", "claims", "more", gpus=[gpu])
            assert placed(made) == [("claims", "3g.40gb"), ("halves", "3g.40gb")]
            (left,) = made.unplaced
            assert (left.workload, left.reason) == ("more", "Fragmented")
            applied = await told.service.apply(made)
            assert isinstance(applied, Applied)
            await told.seen(partial(has_free, HALF, "4"))
            # As the PolicyWatcher does, once its policies have been compliant for a while.
            gpus.apply(COMPLIANT)
            await eventually(lambda: asyncio.to_thread(lambda: ready(gpus, "halves") == 2))
            await eventually(lambda: asyncio.to_thread(lambda: ready(gpus, "claims") == 2))

    with gpu_operator(gpus.api):
        asyncio.run(run())
    assert gpus.api.get("v1", "Node", "plugin")["metadata"]["labels"][STATE] == "success"
    gpus.api.delete(COMPLIANT["apiVersion"], COMPLIANT["kind"], COMPLIANT["metadata"]["name"])
