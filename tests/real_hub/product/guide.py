"""The development guide's optimisation, on a real hub whose clusters have other names."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import httpx

from tests.eventually import until

from ..harness.api import Object, parse
from .scorers import PERFORMANCE, POWER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub

WORKLOADS = "workloads"
CLAIM = "policy-watcher-claim"
GENERATED = "dynamic-scoring-framework-mcp/generated=true"
PREFERENCES = {"performance": PERFORMANCE, "power": POWER}
NAMES = {"worker01": "east", "worker02": "west"}

CLUSTER = ("cluster.open-cluster-management.io/v1", "ManagedCluster")
PLACEMENT = ("cluster.open-cluster-management.io/v1beta1", "Placement")
DECISION = ("cluster.open-cluster-management.io/v1beta1", "PlacementDecision")
BINDING = ("policy.open-cluster-management.io/v1", "PlacementBinding")
POLICY = ("policy.open-cluster-management.io/v1", "Policy")
NODE = ("v1", "Node")
WORKLOAD = ("work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet")


def adapted(text: str) -> str:
    """The scenario's text with the clusters' names here."""
    for name, here in NAMES.items():
        text = text.replace(name, here)
    return text


def scenario() -> list[Object]:
    """The guide's policies and workloads."""
    folder = resources.files("dsf.sim") / "scenario" / "manifests"
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    objects = [obj for file in files for obj in parse(adapted(file.read_text()))]
    for obj in objects:
        obj["metadata"]["namespace"] = WORKLOADS
    return objects


def request(preference: str) -> Object:
    """The guide's request for a preference."""
    text = (resources.files("dsf.sim") / "scenario" / "params.json").read_text()
    body: Object = json.loads(adapted(text))
    body["namespace"] = WORKLOADS
    body["preference"]["addonPlacementScore"] = PREFERENCES[preference]
    return body


def prepare(hub: Hub, clusters: Iterable[ManagedCluster]) -> None:
    """Create what the guide has before it optimises: a bound namespace, nodes, labels.

    Only one of the clusters has the label that the guide asks for. The other one is selected by
    its name.
    """
    hub.namespace(WORKLOADS)
    binding = {
        "apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "global", "namespace": WORKLOADS},
        "spec": {"clusterSet": "global"},
    }
    hub.apply(binding)
    hub.api.patch(*CLUSTER, "east", {"metadata": {"labels": {"cluster-name": "east"}}})
    for cluster in clusters:
        node = {"name": f"{cluster.name}-control-plane"}
        cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": node})


def caller(hub: Hub) -> str:
    """Make the guide's service account with the chart's roles, and return a token of it."""
    return _token(
        hub,
        "planner",
        ("ClusterRoleBinding", "dynamic-scoring-optimizer-reader", {}),
        ("RoleBinding", "dynamic-scoring-optimizer-writer", {"namespace": WORKLOADS}),
    )


def administrator(hub: Hub) -> str:
    """Make a service account that may do all, and return a token of it for the optimizer."""
    return _token(hub, "administrator", ("ClusterRoleBinding", "cluster-admin", {}))


def _token(hub: Hub, name: str, *bindings: tuple[str, str, dict[str, str]]) -> str:
    kind = "ServiceAccount"
    metadata = {"name": name, "namespace": WORKLOADS}
    hub.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata})
    for binding, role, place in bindings:
        hub.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": binding,
                "metadata": {"name": name, **place},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": role,
                },
                "subjects": [{"kind": kind, **metadata}],
            }
        )
    return hub.token(f"{WORKLOADS}/{name}", audiences=["dynamic-scoring-optimizer"])


@dataclass(frozen=True)
class Told:
    """The observations of one run of the guide, for one preference."""

    answer: Object
    decided: dict[str, list[str]]
    waiting: dict[str, list[str]]
    settings: dict[str, str]
    placed: dict[str, list[str]]
    landed: set[tuple[str, str]]
    status: Object
    drift: Object
    again: Object
    repaired: Object
    reset: Object
    left: list[Object]


@dataclass
class Guide:
    """Runs the guide, once for each preference."""

    hub: Hub
    clusters: list[ManagedCluster]
    url: str
    token: str = field(repr=False)
    _told: dict[str, Told] = field(default_factory=dict)

    def tell(self, preference: str) -> Told:
        """Optimise, comply, land, reset; raises TimeoutError naming what did not happen."""
        if preference not in self._told:
            self._told[preference] = self._tell(preference)
        return self._told[preference]

    def _tell(self, preference: str) -> Told:
        for obj in scenario():
            self.hub.apply(obj)
        answer = self.post("/optimize", request(preference))
        policies = answer["policies"]
        decided = until("the policies' Placements to be decided", self._policies_decided)
        until("the policies to be enforced", lambda: self.enforced(policies))
        settings = self._settings()
        waiting = self.workloads()
        self.finish_configuring()
        placed = until("the workloads' Placements to be decided", self.workloads_decided)
        landed = until("the workloads to land", lambda: self.landed(placed))
        status = until("all workloads to be told as landed", self._status_landed)
        again = self.post("/optimize", request(preference))
        self._meddle()
        drift = self.status()
        repaired = self.post("/optimize", request(preference))
        # OCM's propagator does not delete a replicated policy that is unbound within milliseconds.
        until("the policies to be reported on again", lambda: self._reported(policies))
        reset = self.post("/reset", {"namespace": WORKLOADS})
        left = [
            obj
            for kind in (PLACEMENT, BINDING)
            for obj in self.hub.api.list(*kind, WORKLOADS, labels=GENERATED)
        ]
        self.clear()
        return Told(
            answer,
            decided,
            waiting,
            settings,
            placed,
            landed,
            status,
            drift,
            again,
            repaired,
            reset,
            left,
        )

    def post(self, path: str, body: Any) -> Object:
        """Ask the optimizer; raises httpx.HTTPStatusError for a refusal."""
        answer = self.ask("POST", path, body)
        answer.raise_for_status()
        decoded: Object = answer.json()
        return decoded

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """The optimizer's answer to a caller that has the rights that the chart describes."""
        return httpx.request(
            method,
            self.url + path,
            json=body,
            headers={"Authorization": f"Bearer {self.token}"} if self.token else {},
            timeout=120,
            trust_env=False,
        )

    def scores(self) -> Object:
        """All AddOnPlacementScores as the optimizer lists them."""
        answer = self.ask("GET", "/addonplacementscores")
        answer.raise_for_status()
        decoded: Object = answer.json()
        return decoded

    def status(self) -> Object:
        """What the optimizer says of the placements of the guide's namespace."""
        answer = self.ask("GET", f"/placements/status?namespace={WORKLOADS}")
        answer.raise_for_status()
        decoded: Object = answer.json()
        return decoded

    def _status_landed(self) -> Object | None:
        status = self.status()
        return status if status["landed"] else None

    def _meddle(self) -> None:
        """Change a generated object of each kind, as a user may by mistake."""
        placement = self.hub.api.list(*PLACEMENT, WORKLOADS, labels=GENERATED)[0]
        more = {"spec": {"numberOfClusters": 2}}
        self.hub.api.patch(*PLACEMENT, placement["metadata"]["name"], more, WORKLOADS)
        binding = self.hub.api.list(*BINDING, WORKLOADS, labels=GENERATED)[0]
        other = {"subjects": [{**binding["subjects"][0], "name": "another-policy"}]}
        self.hub.api.patch(*BINDING, binding["metadata"]["name"], other, WORKLOADS)

    def _decisions(self) -> dict[str, list[str]]:
        """The clusters that OCM decided on, by Placement."""
        decided: dict[str, list[str]] = {}
        for obj in self.hub.api.list(*PLACEMENT, WORKLOADS):
            decided[obj["metadata"]["name"]] = []
        for obj in self.hub.api.list(*DECISION, WORKLOADS):
            placement = obj["metadata"]["labels"]["cluster.open-cluster-management.io/placement"]
            decided.setdefault(placement, []).extend(
                entry["clusterName"] for entry in obj.get("status", {}).get("decisions", [])
            )
        return decided

    def workloads(self) -> dict[str, list[str]]:
        """The clusters of each workload's Placement."""
        return {
            name: clusters for name, clusters in self._decisions().items() if name.startswith("app")
        }

    def _policies_decided(self) -> dict[str, list[str]] | None:
        decided = {
            name: clusters
            for name, clusters in self._decisions().items()
            if name.startswith("placement-")
        }
        return decided if len(decided) == len(NAMES) and all(decided.values()) else None

    def workloads_decided(self) -> dict[str, list[str]] | None:
        """The same, once each has one."""
        decided = self.workloads()
        return decided if decided and all(decided.values()) else None

    def enforced(self, policies: dict[str, str]) -> bool:
        """Whether each chosen policy has set its label, and no cluster is compliant yet."""
        return all(
            cluster.api.find(*POLICY, f"{WORKLOADS}.{policies[cluster.name]}", cluster.name)
            for cluster in self.clusters
        ) and all(
            (self._labels(cluster).get("migsettinglabel"), self._claim(cluster.name))
            == (device_of(policies[cluster.name]), "noncompliant")
            for cluster in self.clusters
        )

    def _reported(self, policies: dict[str, str]) -> bool:
        """Whether the hub has a compliance state for the policy of each cluster."""
        found = (
            self.hub.api.find(*POLICY, f"{WORKLOADS}.{policy}", cluster)
            for cluster, policy in policies.items()
        )
        return all(obj and obj.get("status", {}).get("compliant") for obj in found)

    def _settings(self) -> dict[str, str]:
        return {cluster.name: self._labels(cluster)["migsettinglabel"] for cluster in self.clusters}

    def _labels(self, cluster: ManagedCluster) -> dict[str, str]:
        node = cluster.api.get(*NODE, f"{cluster.name}-control-plane")
        labels: dict[str, str] = node["metadata"].get("labels", {})
        return labels

    def _claim(self, cluster: str) -> str:
        """The ClusterClaim as the hub has it."""
        status = self.hub.api.get(*CLUSTER, cluster).get("status", {})
        claims = {claim["name"]: claim["value"] for claim in status.get("clusterClaims", [])}
        return str(claims.get(CLAIM, ""))

    def finish_configuring(self) -> None:
        """Set the node labels that a GPU operator sets after a reconfiguration."""
        self._label({"migresultlabel": "true"})

    def start_configuring(self) -> None:
        """Take the labels back that a GPU operator sets after a reconfiguration."""
        self._label({"migresultlabel": None})

    def _label(self, labels: dict[str, str | None]) -> None:
        for cluster in self.clusters:
            name = f"{cluster.name}-control-plane"
            cluster.api.patch(*NODE, name, {"metadata": {"labels": labels}})

    def landed(self, placed: dict[str, list[str]]) -> set[tuple[str, str]] | None:
        """The workloads' ConfigMaps by cluster, once each is where it was placed."""
        wanted = {
            (clusters[0], name.removesuffix("-placement")) for name, clusters in placed.items()
        }
        found = {
            (cluster.name, obj["metadata"]["name"])
            for cluster in self.clusters
            for obj in cluster.api.list("v1", "ConfigMap", "default", labels="app")
        }
        return found if wanted <= found else None

    def clear(self) -> None:
        """Reset the clusters for the next preference.

        The workloads are deleted, because OCM does not move them while their Placements are
        missing.
        """
        self._label({"migresultlabel": None, "migsettinglabel": None})
        for obj in scenario():
            if obj["kind"] == WORKLOAD[1]:
                self.hub.api.delete(*WORKLOAD, obj["metadata"]["name"], WORKLOADS)
        until(
            "the policies to be gone",
            lambda: all(self._claim(cluster.name) == "empty" for cluster in self.clusters),
        )
        until(
            "the workloads to be gone",
            lambda: (
                not any(
                    cluster.api.list("v1", "ConfigMap", "default", labels="app")
                    for cluster in self.clusters
                )
            ),
        )


def device_of(policy: str) -> str:
    """The value that a policy of the scenario gives the node's label."""
    for obj in scenario():
        if obj["metadata"]["name"] == policy:
            [wanted, _] = obj["spec"]["policy-templates"]
            [template] = wanted["objectDefinition"]["spec"]["object-templates"]
            return str(template["objectDefinition"]["metadata"]["labels"]["migsettinglabel"])
    raise KeyError(policy)
