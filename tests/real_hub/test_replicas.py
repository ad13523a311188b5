"""OCM's placement controller selects exactly the clusters of a workload with several replicas."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from dsf.kube.client.connect import connect
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import Applied
from tests.eventually import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .harness.hub import Hub

CLUSTERS = ("east", "west")
MANAGED = ("cluster.open-cluster-management.io/v1", "ManagedCluster")
SCORE = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
DECISION = ("cluster.open-cluster-management.io/v1beta1", "PlacementDecision")
WORKLOAD = """
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata:
  name: server
  namespace: {namespace}
  labels: {{app: server, resource-request-kind: gpu, resource-request-amount: "1"}}
  annotations: {{dynamic-scoring.open-cluster-management.io/replicas: "2"}}
spec:
  placementRefs: [{{name: server, rolloutStrategy: {{type: All}}}}]
  manifestWorkTemplate:
    workload:
      manifests:
      - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: server, namespace: default}}}}
"""


@pytest.fixture
def scored(hub: Hub, bound_namespace: str) -> Iterator[str]:
    """A namespace with a workload of two replicas; both clusters have a score for it."""
    hub.apply(WORKLOAD.format(namespace=bound_namespace))
    for cluster in CLUSTERS:
        metadata = {"name": "replicas", "namespace": cluster}
        hub.apply({"apiVersion": SCORE[0], "kind": SCORE[1], "metadata": metadata})
        status = {"status": {"scores": [{"name": "server;all", "value": 50}]}}
        hub.api.patch(*SCORE, "replicas", status, cluster, subresource="status")
    yield bound_namespace
    for cluster in CLUSTERS:
        hub.api.delete(*SCORE, "replicas", cluster)


@pytest.fixture
def labelled(hub: Hub, request: pytest.FixtureRequest) -> Iterator[None]:
    """Clusters with their name in a label, if the test asks for it."""
    for cluster in CLUSTERS:
        label = cluster if request.param else None
        hub.api.patch(*MANAGED, cluster, {"metadata": {"labels": {"cluster-name": label}}})
    yield
    for cluster in CLUSTERS:
        hub.api.patch(*MANAGED, cluster, {"metadata": {"labels": {"cluster-name": None}}})


@pytest.mark.usefixtures("clusters", "labelled")
@pytest.mark.parametrize("labelled", [True, False], ids=["by label", "by name"], indirect=True)
def test_replicas_are_placed_on_each_of_their_clusters(hub: Hub, scored: str) -> None:
    assert asyncio.run(_apply(hub, scored)) == {"east", "west"}
    until("both clusters", lambda: decided(hub, scored) == {"east", "west"})


def decided(hub: Hub, namespace: str) -> set[str]:
    labels = "cluster.open-cluster-management.io/placement=server"
    return {
        entry["clusterName"]
        for decision in hub.api.list(*DECISION, namespace, labels=labels)
        for entry in decision.get("status", {}).get("decisions", [])
    }


async def _apply(hub: Hub, namespace: str) -> set[str]:
    """Place the workload and return the clusters chosen."""
    request = OptimizeRequest.model_validate(
        {
            "namespace": namespace,
            "clusters": [{"name": name, "allocatable": "gpu/all=1"} for name in CLUSTERS],
            "targetWorkloads": [{"name": "server"}],
            "preference": {"addonPlacementScore": "replicas"},
        }
    )
    async with connect(hub.admin_kubeconfig) as kube:
        service = Optimizer(kube, now=lambda: datetime.now(UTC))
        plan = await service.plan(request)
        assert isinstance(plan, Plan), plan
        applied = await service.apply(plan)
    assert isinstance(applied, Applied), applied
    assert applied.failed == ()
    return {item.cluster for item in plan.placements}
