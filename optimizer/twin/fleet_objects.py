"""The objects of a scenario's fleet, and the spec that places its workloads."""

from collections.abc import Iterator
from itertools import product
from typing import Any, TypeVar

from dsf.api.names import APP, HUB_NAMESPACE, REQUEST_AMOUNT, REQUEST_KIND
from dsf.api.untrusted_text import listed
from dsf.kube import kinds
from dsf.kube.changes import Change, Create
from dsf.kube.port import Object
from dsf.sim.controllers.registration import join
from optimizer.domain.settings import MigLabels
from optimizer.snapshot.annotations import annotations_of
from optimizer.twin.scenario import NAMESPACE as OWN
from optimizer.twin.scenario import ClusterGroup, Scenario, ScenarioPolicy, Tenure
from optimizer.wire.object_specs import ClusterSpec, PolicySpec, WorkloadSpec
from optimizer.wire.placement_optimization import PlacementOptimizationSpec, read_spec
from optimizer.wire.request_problem import RequestProblem

NAME = "twin"
"""The name of the twin's PlacementOptimization."""

T = TypeVar("T")


class UnplayableScenario(ValueError):
    """A scenario can't be played; the message says why."""


def hub_objects(scenario: Scenario, *, now: str) -> Iterator[Change]:
    """Yield what the hub has at the start: clusters, policies, and the binding to their set."""
    yield Create(kinds.NAMESPACE, {"metadata": {"name": HUB_NAMESPACE}})
    binding = {"metadata": {"name": "default", "namespace": OWN}, "spec": {"clusterSet": "default"}}
    yield Create(kinds.MANAGED_CLUSTER_SET_BINDING, binding)
    for group in scenario.clusters:
        for policy in group.policies:
            yield Create(kinds.POLICY, _policy(policy_name(group, policy)))
        for name in group.members:
            yield from join(name, {"cluster-name": name, **group.labels}, now=now)


def gpu_nodes(scenario: Scenario, labels: MigLabels) -> Iterator[tuple[str, Object]]:
    """Yield each cluster with a node whose GPUs can be divided; its MIG manager takes no time."""
    marks = {labels.present: "true", labels.state: labels.done}
    for group in scenario.clusters:
        for name, item in product(group.members, group.gpus):
            node = _head(kinds.NODE.api_version, kinds.NODE.kind, item.node or name)
            yield name, {**node, "metadata": {**node["metadata"], "labels": marks}}


def policy_name(group: ClusterGroup, policy: ScenarioPolicy) -> str:
    """Return the name of the Policy that clusters of a group may enforce."""
    return f"{group.name}-{policy.name}"


def workload(tenure: Tenure) -> Object:
    """Return the ManifestWorkReplicaSet of a workload, which deploys a ConfigMap."""
    group, name = tenure.group, tenure.workload
    own = {APP: group.name, REQUEST_KIND: group.kind, REQUEST_AMOUNT: f"{group.amount:g}"}
    config_map = {
        **_head(kinds.CONFIG_MAP.api_version, kinds.CONFIG_MAP.kind, name, OWN),
        "data": {APP: group.name},
    }
    kind = kinds.MANIFEST_WORK_REPLICA_SET
    obj = _head(kind.api_version, kind.kind, name, OWN)
    obj["metadata"] |= {
        "labels": {**group.labels, **own},
        "annotations": annotations_of(group, WorkloadSpec),
    }
    references = [{"name": f"{name}-placement", "rolloutStrategy": {"type": "All"}}]
    manifests = {"workload": {"manifests": [config_map]}}
    return {**obj, "spec": {"placementRefs": references, "manifestWorkTemplate": manifests}}


def kept_optimization(scenario: Scenario) -> Object:
    """Return the PlacementOptimization, of the whole fleet unless it says which, and applied."""
    kind, spec = kinds.PLACEMENT_OPTIMIZATION, {"mode": "Apply", **scenario.optimization}
    if not spec.get("clusters"):
        spec["clusters"] = [*_requested_clusters(scenario)]
    return {**_head(kind.api_version, kind.kind, NAME, OWN), "spec": spec}


def spec_of(scenario: Scenario) -> PlacementOptimizationSpec:
    """Return the spec of a scenario's PlacementOptimization. Raises UnplayableScenario."""
    spec = playable(read_spec(kept_optimization(scenario)))
    known = {score.name for score in scenario.scores}
    if missing := sorted(spec.score_names - known):
        raise UnplayableScenario(f"optimization: the scenario has no score {listed(missing)}")
    return spec


def playable(found: T | RequestProblem) -> T:
    """Return what is no problem. Raises UnplayableScenario, which names each wrong field."""
    if isinstance(found, RequestProblem):
        wrong = "; ".join(f"{item.field}: {item.message}" for item in found.errors)
        raise UnplayableScenario(f"optimization: {wrong or found.detail}")
    return found


def _requested_clusters(scenario: Scenario) -> Iterator[dict[str, Any]]:
    for group in scenario.clusters:
        stated = _stated(group, ClusterSpec, "gpus")
        policies = [
            {"name": policy_name(group, policy), **_stated(policy, PolicySpec)}
            for policy in group.policies
        ]
        for name in group.members:
            yield {"name": name, **stated, "availablePolicies": policies}


def _stated(spec: ClusterGroup | ScenarioPolicy, model: type[Any], *more: str) -> dict[str, Any]:
    fields = {*model.model_fields, *more}
    return spec.model_dump(mode="json", by_alias=True, include=fields, exclude_none=True)


def _policy(name: str) -> Object:
    """Return a Policy that enforces a ConfigMap of its name."""
    config_map = _head(kinds.CONFIG_MAP.api_version, kinds.CONFIG_MAP.kind, name, "default")
    template = _head(kinds.POLICY.api_version, "ConfigurationPolicy", name)
    template["spec"] = {
        "remediationAction": "enforce",
        "object-templates": [{"complianceType": "musthave", "objectDefinition": config_map}],
    }
    spec = {"disabled": False, "policy-templates": [{"objectDefinition": template}]}
    return {**_head(kinds.POLICY.api_version, kinds.POLICY.kind, name, OWN), "spec": spec}


def _head(api_version: str, kind: str, name: str, namespace: str = "") -> Object:
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
