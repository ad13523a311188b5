"""What the reader of a guide has so far: clusters, and what is in them."""

from dataclasses import dataclass, field

from dsf import __version__
from tests.charts.entrypoints import SAMPLES

FRAMEWORK = f"quay.io/open-cluster-management/dynamic-scoring-framework:{__version__}"
IMAGES = {
    "dynamic-scoring-framework": FRAMEWORK,
    **{name: f"quay.io/dynamic-scoring/{name}:{__version__}" for name in SAMPLES},
}
"""The names with which `make images` builds."""
HUB = "hub01"
PARTS = {
    "OCM on the hub": {
        *("managedcluster", "managedclusteraddon", "addonplacementscore", "clustermanager"),
        *("manifestwork", "manifestworkreplicaset", "placement", "placementdecision"),
    },
    "OCM on the cluster": {"clusterclaim"},
    "the framework": {"dynamicscorer", "dynamicscoringconfig"},
    "the policy framework": {"policy", "placementbinding"},
    "the chart of Prometheus": {"servicemonitor", "podmonitor", "prometheusrule"},
    "the optimizer": {"placementplan"},
}
"""Kinds by what brings them."""
OF_KUBERNETES = {"configmap", "deployment", "node", "pod"}
"""Kinds that the guides read in every cluster."""
CHARTS = {
    "dynamic-scoring-framework": "the framework",
    "dynamic-scoring-optimizer": "the optimizer",
    "kube-prometheus-stack": "the chart of Prometheus",
}


def kind_of(word: str) -> str:
    """Return a kind in the singular, as kubectl takes plurals, groups and names after it."""
    kind = word.partition("/")[0].partition(".")[0].lower()
    if kind.endswith("ies"):
        return f"{kind[:-3]}y"
    return kind.removesuffix("s") if not kind.endswith("ss") else kind


@dataclass
class Cluster:
    """A cluster of the reader."""

    parts: set[str] = field(default_factory=set)
    namespaces: set[str] = field(default_factory=lambda: {"default"})
    images: set[str] = field(default_factory=set)
    objects: set[tuple[str, str, str]] = field(default_factory=set)
    """Kind, namespace and name."""

    def lacks(self, kind: str) -> str:
        """What would bring the kind, if nothing has; else nothing."""
        by = next((part for part, kinds in PARTS.items() if kind in kinds), "")
        return by if by and by not in self.parts else ""


@dataclass
class Reader:
    """All that the reader has."""

    clusters: dict[str, Cluster] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Clusters that have asked to join."""
    joined: list[str] = field(default_factory=list)
    containers: set[str] = field(default_factory=set)
    built: set[str] = field(default_factory=set)
    repositories: set[str] = field(default_factory=set)
    ready: set[str] = field(default_factory=set)
    """Pods that the reader has waited for."""
    ports: set[str] = field(default_factory=set)
    """Ports of the reader's machine on which something answers."""
    gates: bool = False

    def accept(self, names: list[str]) -> None:
        """Let clusters join the hub."""
        self.joined += names
        self.clusters[HUB].namespaces |= set(names)
        for name in names:
            self.clusters[name].parts.add("OCM on the cluster")


def after_clusters() -> Reader:
    """The reader of the quickstart, who has a hub with two managed clusters."""
    reader = Reader({name: Cluster() for name in (HUB, "worker01", "worker02")})
    reader.clusters[HUB].parts.add("OCM on the hub")
    reader.accept(["worker01", "worker02"])
    return reader
