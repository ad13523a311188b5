"""Two optimizations, two namespaces and a person share two clusters of a real hub."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from dsf.kube.client.connect import connect
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.eventually import until

from .harness.bound_namespace import bound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .harness.api import Object
    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

CLUSTERS = ("east", "west")
POLICY = ("policy.open-cluster-management.io/v1", "Policy")
BINDING = ("policy.open-cluster-management.io/v1", "PlacementBinding")
WORK = ("work.open-cluster-management.io/v1", "ManifestWork")
PLACEMENT = ("cluster.open-cluster-management.io/v1beta1", "Placement")
DECISION = ("cluster.open-cluster-management.io/v1beta1", "PlacementDecision")
SCORE = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
CLAIM = ("cluster.open-cluster-management.io/v1alpha1", "ClusterClaim")
SUPPLIES = {"big": 2, "small": 3}
SCORES = {"vision": {"big": 60, "small": 10}, "speech": {"big": 50, "small": 40}}

TEMPLATE = """
apiVersion: policy.open-cluster-management.io/v1
kind: Policy
metadata:
  name: {device}-{cluster}
  namespace: {namespace}
  labels: {{resource-supply-kind: gpu, resource-supply-device: {device},
           resource-supply-amount: "{amount}"}}
spec:
  disabled: false
  remediationAction: enforce
  policy-templates:
  - objectDefinition:
      apiVersion: policy.open-cluster-management.io/v1
      kind: ConfigurationPolicy
      metadata: {{name: {namespace}-{device}}}
      spec:
        remediationAction: enforce
        severity: low
        object-templates:
        - complianceType: musthave
          objectDefinition:
            apiVersion: v1
            kind: ConfigMap
            metadata: {{name: {namespace}-{device}, namespace: default}}
"""
WORKLOAD = """
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata:
  name: {app}
  namespace: {namespace}
  labels: {{app: {app}, resource-request-kind: gpu, resource-request-amount: "2"}}
spec:
  placementRefs: [{{name: {app}, rolloutStrategy: {{type: All}}}}]
  manifestWorkTemplate:
    workload:
      manifests:
      - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {app}, namespace: default}}}}
"""
BY_HAND = """
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {{name: by-hand, namespace: {namespace}}}
spec:
  clusterSets: [global]
  predicates:
  - requiredClusterSelector:
      celSelector: {{celExpressions: ["managedCluster.metadata.name == 'west'"]}}
---
apiVersion: policy.open-cluster-management.io/v1
kind: PlacementBinding
metadata: {{name: by-hand, namespace: {namespace}}}
placementRef: {{apiGroup: cluster.open-cluster-management.io, kind: Placement, name: by-hand}}
subjects: [{{apiGroup: policy.open-cluster-management.io, kind: Policy, name: small-west}}]
"""


@pytest.fixture
def teams(
    hub: Hub, bound_namespace: str, clusters: list[ManagedCluster]
) -> Iterator[tuple[str, str]]:
    """Two namespaces with the same policies and workloads; both clusters have scores."""
    other = hub.namespace(f"{bound_namespace}-b")
    for namespace in (bound_namespace, other):
        for app in SCORES:
            hub.apply(WORKLOAD.format(app=app, namespace=namespace))
        for device, amount in SUPPLIES.items():
            for cluster in CLUSTERS:
                hub.apply(
                    TEMPLATE.format(
                        device=device, cluster=cluster, amount=amount, namespace=namespace
                    )
                )
    entries = [
        {"name": f"{app};{device}", "value": value}
        for app, values in SCORES.items()
        for device, value in values.items()
    ]
    for cluster in clusters:
        metadata = {"name": "teams", "namespace": cluster.name}
        hub.apply({"apiVersion": SCORE[0], "kind": SCORE[1], "metadata": metadata})
        status = {"status": {"scores": entries}}
        hub.api.patch(*SCORE, "teams", status, cluster.name, subresource="status")
        claim = {"metadata": {"name": "policy-watcher-claim"}, "spec": {"value": "compliant"}}
        cluster.apply({"apiVersion": CLAIM[0], "kind": CLAIM[1], **claim})
    with bound(hub, other):
        yield bound_namespace, other
    for cluster in clusters:
        hub.api.delete(*SCORE, "teams", cluster.name)
        cluster.api.delete(*CLAIM, "policy-watcher-claim")


@pytest.mark.usefixtures("policies")
def test_two_optimizations_two_namespaces_and_a_person_share_clusters(
    hub: Hub, east: ManagedCluster, west: ManagedCluster, teams: tuple[str, str]
) -> None:
    first, second = teams
    vision = applied(hub, first, ["vision"], ["east"])
    assert vision.policies == {"east": "big-east"}
    until_decided(hub, first, "vision", ["east"])
    until("big on east", lambda: _replicated(east, first, "big-east"))

    refused = asyncio.run(_race(hub, first, second))
    assert "optimization race of namespace" in refused.detail
    assert first in refused.detail
    assert second in refused.detail
    until("speech to stop", lambda: hub.api.find(*WORK, "speech", "west") is None)

    hub.apply(BY_HAND.format(namespace=second))
    until_decided(hub, second, "by-hand", ["west"])
    by_hand = _asked_by_hand(hub, second)

    speech = applied(hub, second, ["speech"], list(CLUSTERS), optimization="talk")
    assert speech.policies == {"west": "small-west"}
    held = {item.message for item in speech.issues if item.reason == "HeldByOthers"}
    assert len(held) == 2
    assert f"optimization default of namespace {first} enforces policy big-east" in str(held)
    assert f"PlacementBinding by-hand of namespace {second}, made by hand," in str(held)
    until_decided(hub, second, "speech", ["west"])
    until("small on west", lambda: _replicated(west, second, "small-west"))

    other = asyncio.run(_plan(hub, second, ["vision"], list(CLUSTERS)))
    assert isinstance(other, Plan)
    assert (other.placements, other.removals) == ((), ())
    assert f"speech of optimization talk of namespace {second} uses 2 gpu" in str(other.issues)

    asyncio.run(_reset(hub, second))
    assert by_hand == _asked_by_hand(hub, second)
    assert decided(hub, first, "vision") == ["east"]


def _asked_by_hand(hub: Hub, namespace: str) -> list[tuple[Object, Object]]:
    """Return what a person asked for; OCM writes a Placement's status after its decision."""
    objects = [hub.api.get(*kind, "by-hand", namespace) for kind in (PLACEMENT, BINDING)]
    changes = ("managedFields", "resourceVersion")
    return [
        (
            {name: value for name, value in item["metadata"].items() if name not in changes},
            {name: value for name, value in item.items() if name not in ("metadata", "status")},
        )
        for item in objects
    ]


def applied(hub: Hub, namespace: str, apps: list[str], on: list[str], **more: Any) -> Plan:
    plan, outcome = asyncio.run(_apply(hub, namespace, apps, on, **more))
    assert isinstance(outcome, Applied), outcome
    assert outcome.failed == ()
    return plan


def until_decided(hub: Hub, namespace: str, placement: str, wanted: list[str]) -> None:
    until(f"{placement} on {wanted}", lambda: decided(hub, namespace, placement) == wanted)


def decided(hub: Hub, namespace: str, placement: str) -> list[str]:
    labels = f"cluster.open-cluster-management.io/placement={placement}"
    return sorted(
        entry["clusterName"]
        for decision in hub.api.list(*DECISION, namespace, labels=labels)
        for entry in decision.get("status", {}).get("decisions", [])
    )


def _replicated(cluster: ManagedCluster, namespace: str, policy: str) -> object:
    return cluster.api.find(*POLICY, f"{namespace}.{policy}", cluster.name)


def _request(namespace: str, apps: list[str], on: list[str], **more: Any) -> OptimizeRequest:
    policies = {name: [{"name": f"{device}-{name}"} for device in SUPPLIES] for name in on}
    return OptimizeRequest.model_validate(
        {
            "namespace": namespace,
            "clusters": [{"name": name, "availablePolicies": policies[name]} for name in on],
            "targetWorkloads": [{"name": app} for app in apps],
            "preference": {"addonPlacementScore": "teams"},
            **more,
        }
    )


async def _plan(
    hub: Hub, namespace: str, apps: list[str], on: list[str], **more: Any
) -> Plan | RequestProblem:
    async with connect(hub.admin_kubeconfig) as kube:
        service = Optimizer(kube, now=lambda: datetime.now(UTC))
        return await service.plan(_request(namespace, apps, on, **more))


async def _apply(
    hub: Hub, namespace: str, apps: list[str], on: list[str], **more: Any
) -> tuple[Plan, Applied | RequestProblem]:
    async with connect(hub.admin_kubeconfig) as kube:
        service = Optimizer(kube, now=lambda: datetime.now(UTC))
        plan = await service.plan(_request(namespace, apps, on, **more))
        assert isinstance(plan, Plan), plan
        return plan, await service.apply(plan)


async def _race(hub: Hub, first: str, second: str) -> RequestProblem:
    """Let both namespaces want west at once; return the refusal of the one that lost, and reset."""
    async with connect(hub.admin_kubeconfig) as kube, connect(hub.admin_kubeconfig) as another:
        services = [Optimizer(item, now=lambda: datetime.now(UTC)) for item in (kube, another)]
        requests = [
            _request(namespace, ["speech"], ["west"], optimization="race")
            for namespace in (first, second)
        ]
        plans = [
            await service.plan(asked) for service, asked in zip(services, requests, strict=True)
        ]
        outcomes = await asyncio.gather(
            *(
                service.apply(plan)
                for service, plan in zip(services, plans, strict=True)
                if isinstance(plan, Plan)
            )
        )
        (lost,) = (item for item in outcomes if isinstance(item, RequestProblem))
        (won,) = (item for item in outcomes if isinstance(item, Applied))
        assert won.failed == ()
        for service, namespace in zip(services, (first, second), strict=True):
            await service.reset(namespace, optimization="race", stop_workloads=True)
        return lost


async def _reset(hub: Hub, namespace: str) -> None:
    async with connect(hub.admin_kubeconfig) as kube:
        done = await Optimizer(kube, now=lambda: datetime.now(UTC)).reset(namespace)
        assert not isinstance(done, RequestProblem)
        assert done.failed == ()
