"""Generated MIG policies on real controllers: layouts first, then the label, then compliance."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dsf.kube.client.connect import connect
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import Applied
from tests.eventually import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

POLICY = ("policy.open-cluster-management.io/v1", "Policy")
SCORE = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
CONFIG_MAP = ("v1", "ConfigMap", "dsf-mig-parted-config", "gpu-operator")
WANTED, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
LAYOUT = "dsf-2x3g.48gb"
FLEET = """
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata: {{name: mig-performance, namespace: east}}
---
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata:
  name: trainer
  namespace: {namespace}
  labels: {{app: trainer, resource-request-kind: gpu, resource-request-amount: "2"}}
spec:
  placementRefs: [{{name: trainer, rolloutStrategy: {{type: All}}}}]
  manifestWorkTemplate:
    workload:
      manifests:
      - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: trainer, namespace: default}}}}
"""


@pytest.fixture
def node(hub: Hub, east: ManagedCluster, bound_namespace: str) -> Iterator[str]:
    """A GPU node of east, whose GPU operator is not installed yet, and a workload that fits it."""
    hub.apply(FLEET.format(namespace=bound_namespace))
    status = {"status": {"scores": [{"name": "trainer;3g.48gb", "value": 60}]}}
    hub.api.patch(*SCORE, "mig-performance", status, "east", subresource="status")
    present = {"nvidia.com/gpu.present": "true"}
    east.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu", "labels": present}})
    yield "gpu"
    east.api.delete("v1", "Node", "gpu")
    if east.api.find(*CONFIG_MAP):
        east.api.delete(*CONFIG_MAP)
    hub.api.delete(*SCORE, "mig-performance", "east")


@pytest.mark.usefixtures("policies")
@pytest.mark.parametrize("named", [True, False], ids=["by name", "by label"])
def test_a_generated_policy_is_applied_and_withdrawn(
    hub: Hub, east: ManagedCluster, bound_namespace: str, node: str, named: bool
) -> None:
    gpu = {"model": "H100-96GB", **({"node": node} if named else {})}
    plan = apply(hub, bound_namespace, gpu)
    assert plan.solution.objective_value == 60
    policy = plan.policies["east"]
    replicated = (*POLICY, f"{bound_namespace}.{policy}", "east")
    until("the policy on east", lambda: east.api.find(*replicated))
    if not east.api.find("v1", "Namespace", "gpu-operator"):
        until("layouts to be missing", lambda: compliance(east, replicated) == "NonCompliant")
        assert WANTED not in labels(east, node)
        namespace = {"name": "gpu-operator"}
        east.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": namespace})
    until("the layouts on east", lambda: east.api.find(*CONFIG_MAP))
    until("the label", lambda: labels(east, node).get(WANTED) == LAYOUT)
    layouts = yaml.safe_load(east.api.get(*CONFIG_MAP)["data"]["config.yaml"])
    assert layouts["mig-configs"][LAYOUT][0]["mig-devices"] == {"3g.48gb": 2}

    assert compliance(east, replicated) != "Compliant"
    east.api.patch("v1", "Node", node, {"metadata": {"labels": {STATE: "success"}}})
    until("compliance", lambda: compliance(hub, (*POLICY, policy, bound_namespace)) == "Compliant")

    assert [change.kind for change in again(hub, bound_namespace, gpu)] == []
    reset(hub, bound_namespace)
    assert hub.api.list(*POLICY, bound_namespace) == []
    until("the policy to leave east", lambda: not east.api.find(*replicated))


def apply(hub: Hub, namespace: str, gpu: dict[str, Any]) -> Plan:
    plan, applied = asyncio.run(_apply(hub, namespace, gpu))
    assert applied.failed == ()
    return plan


def again(hub: Hub, namespace: str, gpu: dict[str, Any]) -> tuple[Any, ...]:
    return asyncio.run(_apply(hub, namespace, gpu))[1].applied


async def _apply(hub: Hub, namespace: str, gpu: dict[str, Any]) -> tuple[Plan, Applied]:
    request = OptimizeRequest.model_validate(
        {
            "namespace": namespace,
            "clusters": [{"name": "east", "gpus": [gpu]}],
            "targetWorkloads": [{"name": "trainer"}],
            "preference": {"addonPlacementScore": "mig-performance"},
        }
    )
    async with connect(hub.admin_kubeconfig) as kube:
        service = Optimizer(kube, now=lambda: datetime.now(UTC))
        plan = await service.plan(request)
        assert isinstance(plan, Plan), plan
        applied = await service.apply(plan)
        assert isinstance(applied, Applied), applied
        return plan, applied


def reset(hub: Hub, namespace: str) -> None:
    async def ask() -> None:
        async with connect(hub.admin_kubeconfig) as kube:
            done = await Optimizer(kube, now=lambda: datetime.now(UTC)).reset(namespace)
            assert done.failed == ()

    asyncio.run(ask())


def labels(cluster: ManagedCluster, node: str) -> dict[str, str]:
    found: dict[str, str] = cluster.api.get("v1", "Node", node)["metadata"].get("labels", {})
    return found


def compliance(plane: Hub | ManagedCluster, policy: tuple[str, str, str, str]) -> str:
    found = plane.api.find(*policy) or {}
    return str(found.get("status", {}).get("compliant", ""))
