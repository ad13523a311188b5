"""A small simulated fleet, and the objects that its tests put into it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dsf.api.names import HUB_NAMESPACE
from dsf.kube import kinds
from dsf.kube.apply import apply
from dsf.kube.changes import Create
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from dsf.sim.controllers.registration import join
from dsf.sim.simulation import Simulation

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = "2026-01-01T00:00:00Z"
CLUSTERS = ("worker01", "worker02")


@dataclass(frozen=True)
class SimulatedFleet:
    hub: EmbeddedHub
    clusters: Mapping[str, EmbeddedHub]
    simulation: Simulation


def make(kind: Kind, name: str, namespace: str | None = None, **fields: Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= fields.pop("metadata", {})
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}


async def simulated_fleet() -> SimulatedFleet:
    hub = EmbeddedHub(now=lambda: NOW)
    await create(hub, kinds.NAMESPACE, make(kinds.NAMESPACE, HUB_NAMESPACE))
    clusters = {name: EmbeddedHub(now=lambda: NOW) for name in CLUSTERS}
    for name, cluster in clusters.items():
        outcomes = await apply(hub, join(name, {"cluster-name": name}, now=STAMP))
        assert [outcome.error for outcome in outcomes if outcome.error] == []
        await create(cluster, kinds.NAMESPACE, make(kinds.NAMESPACE, name))
        await create(cluster, kinds.NODE, make(kinds.NODE, f"{name}-control-plane"))
    binding = make(
        kinds.MANAGED_CLUSTER_SET_BINDING, "default", "default", spec={"clusterSet": "default"}
    )
    await create(hub, kinds.MANAGED_CLUSTER_SET_BINDING, binding)
    return SimulatedFleet(hub, clusters, Simulation(hub, clusters, now=lambda: NOW))


async def create(kube: EmbeddedHub, kind: Kind, obj: Object) -> None:
    (outcome,) = await apply(kube, [Create(kind, obj)])
    assert outcome.error is None, outcome.error


def placement(name: str, selector: Mapping[str, Any], **spec: Any) -> Object:
    predicates = [{"requiredClusterSelector": dict(selector)}]
    return make(kinds.PLACEMENT, name, "default", spec={"predicates": predicates, **spec})


def labelled(cluster: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"cluster-name": cluster}}}


def config_map(name: str) -> Object:
    return make(kinds.CONFIG_MAP, name, "default", data={"key": "value"})


def manifest_work(name: str, cluster: str, *manifests: Object, **spec: Any) -> Object:
    workload = {"manifests": list(manifests)}
    return make(kinds.MANIFEST_WORK, name, cluster, spec={"workload": workload, **spec})


def node_policy(name: str, node: str, labels: Mapping[str, str], action: str) -> Object:
    definition = make(kinds.NODE, node, metadata={"labels": dict(labels)})
    template = {
        "apiVersion": "policy.open-cluster-management.io/v1",
        "kind": "ConfigurationPolicy",
        "metadata": {"name": name},
        "spec": {
            "remediationAction": action,
            "object-templates": [{"complianceType": "musthave", "objectDefinition": definition}],
        },
    }
    spec = {"disabled": False, "policy-templates": [{"objectDefinition": template}]}
    return make(kinds.POLICY, name, "default", spec=spec)


def binding(name: str, placement_name: str, policy: str) -> Object:
    reference = {
        "name": placement_name,
        "kind": "Placement",
        "apiGroup": "cluster.open-cluster-management.io",
    }
    subject = {"name": policy, "kind": "Policy", "apiGroup": "policy.open-cluster-management.io"}
    return make(
        kinds.PLACEMENT_BINDING, name, "default", placementRef=reference, subjects=[subject]
    )
