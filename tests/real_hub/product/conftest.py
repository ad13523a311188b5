"""The product, brought up step by step; each fixture is one step of its guide."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

from ..harness.bound_namespace import remove_workloads
from ..harness.gpu_nodes import gpu_node
from ..harness.helm import CHARTS, install_chart
from . import node_metrics
from .guide import PREFERENCES, WORKLOADS, Guide, administrator, caller, prepare
from .parts import Part, run_optimizer, run_part
from .scorers import MASKED, SCORES, masked_config, start_scoring_apis, token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub

AGENT_NAMESPACE = "dynamic-scoring"
EMPTY = "without-workloads"
"""A namespace of the optimizer about which it has nothing to tell but that it exists."""
WATCHER = "policy-watcher"
CONFIG = (
    "dynamic-scoring.open-cluster-management.io/v1alpha1",
    "DynamicScoringConfig",
    "dynamic-scoring-config",
)
WORK = ("work.open-cluster-management.io/v1", "ManifestWork", "dynamic-scoring-config-manifestwork")
ADDON = (
    "addon.open-cluster-management.io/v1alpha1",
    "ManagedClusterAddOn",
    "dynamic-scoring-framework",
)
CLAIM = ("cluster.open-cluster-management.io/v1alpha1", "ClusterClaim", "policy-watcher-claim")
SCORE = ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore")
INVENTORY = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "NodeInventory")


@pytest.fixture(scope="package")
def controller(hub: Hub, framework: str) -> Iterator[Part]:
    """The hub controller."""
    part = run_part(hub, framework, "dynamic-scoring-controller")
    yield part
    part.stop()


@pytest.fixture(scope="package")
def agents(hub: Hub, clusters: list[ManagedCluster], framework: str) -> Iterator[dict[str, Part]]:
    """The agent of each managed cluster, once OCM has deployed and registered it."""
    parts = {}
    for cluster in clusters:
        wait_deployed(hub, cluster)
        cluster.apply(token(AGENT_NAMESPACE))
        # Clusters without nodes have no capacity, so inventories are tried for themselves.
        parts[cluster.name] = run_part(
            cluster, AGENT_NAMESPACE, "dynamic-scoring-agent", "--no-inventory"
        )
    yield parts
    for part in parts.values():
        part.stop()


def wait_deployed(
    hub: Hub,
    cluster: ManagedCluster,
    addon: str = "dynamic-scoring-framework",
    deployment: str = "dynamic-scoring-agent",
) -> None:
    """Wait for an add-on's Deployment, and for the agent's identity; the watcher has none."""
    until(
        f"the Deployment {deployment} on {cluster.name}",
        lambda: cluster.api.find("apps/v1", "Deployment", deployment, AGENT_NAMESPACE),
    )
    if addon == ADDON[2]:
        # A kubelet would retry until the agent's identity on the hub is there.
        until(
            f"the hub kubeconfig of {addon} on {cluster.name}",
            lambda: cluster.api.find("v1", "Secret", f"{addon}-hub-kubeconfig", AGENT_NAMESPACE),
        )
    for condition in ("RegistrationApplied", "ManifestApplied"):
        hub.api.wait_condition(*ADDON[:2], addon, condition, cluster.name)


@pytest.fixture(scope="package")
def registered(hub: Hub, framework: str) -> list[Object]:
    """DynamicScorers for running scoring APIs, and the DynamicScoringConfig."""
    objects = [*start_scoring_apis(hub), masked_config()]
    for obj in objects:
        hub.apply(obj)
    return objects


@pytest.fixture(scope="package")
def scored(
    hub: Hub, controller: Part, agents: dict[str, Part], registered: list[Object]
) -> dict[tuple[str, str], Object]:
    """The AddOnPlacementScores by cluster and name, once all of them exist."""
    return until("every score on every cluster", lambda: published(hub))


def published(hub: Hub) -> dict[tuple[str, str], Object] | None:
    """The AddOnPlacementScores of our agents, or None while one is missing."""
    found = {
        (obj["metadata"]["namespace"], obj["metadata"]["name"]): obj
        for obj in hub.api.list(*SCORE)
        if obj.get("status", {}).get("scores")
    }
    wanted = {(cluster, score) for cluster in hub.clusters for score in SCORES} - {MASKED}
    return found if wanted <= found.keys() else None


@pytest.fixture(scope="package")
def withdrawn(
    hub: Hub, clusters: list[ManagedCluster], framework: str, scored: dict[tuple[str, str], Object]
) -> set[str]:
    """The DynamicScoringConfig deleted until all its effects are gone, and created again.

    Returns the kinds of the objects that were left on the clusters, which others created.
    """
    hub.api.delete(*CONFIG, framework)
    hub.api.wait_gone(*CONFIG, framework)
    for cluster in clusters:
        hub.api.wait_gone(*WORK, cluster.name)
        cluster.api.wait_gone("v1", "ConfigMap", CONFIG[2], AGENT_NAMESPACE)
    until("the agents to delete their scores", lambda: not own_scores(hub))
    left = {
        kind
        for cluster in clusters
        for kind in ("Secret", "ServiceAccount")
        if cluster.api.list("v1", kind, AGENT_NAMESPACE)
    }
    hub.apply(masked_config())
    until("every score to be back", lambda: published(hub))
    return left


def own_scores(hub: Hub) -> list[Object]:
    """The AddOnPlacementScores with the labels of our agents."""
    return hub.api.list(*SCORE, labels="app.kubernetes.io/managed-by=dynamic-scoring-framework")


@pytest.fixture(scope="package")
def swept(hub: Hub, controller: Part) -> Object:
    """The expired score of a removed agent, once the hub controller has deleted it."""
    place = hub.namespace("departed")
    labels = {
        "app.kubernetes.io/managed-by": "dynamic-scoring-framework",
        "dynamic-scoring.open-cluster-management.io/score-name": "departed_score",
    }
    score = {
        "apiVersion": SCORE[0],
        "kind": SCORE[1],
        "metadata": {"name": "departed-score", "namespace": place, "labels": labels},
    }
    hub.apply(score)
    expired = {"status": {"validUntil": "2020-01-01T00:00:00Z"}}
    hub.api.patch(*SCORE, "departed-score", expired, place, subresource="status")
    hub.api.wait_gone(*SCORE, "departed-score", place)
    return score


@pytest.fixture(scope="package")
def optimizer(hub: Hub, framework: str) -> Iterator[Part]:
    """The optimizer with rights in the workloads' namespace, and in one that is empty."""
    hub.namespace(WORKLOADS)
    chart = CHARTS / "dynamic-scoring-optimizer"
    values = {
        "namespaces": [WORKLOADS, hub.namespace(EMPTY)],
        "planHistoryLimit": 1,
        "allowWrites": True,
        "tls": {"source": "None"},
    }
    install_chart(hub, chart, framework, values=values)
    part = run_optimizer(hub, framework)
    yield part
    part.stop()


@pytest.fixture(scope="package")
def watchers(hub: Hub, clusters: list[ManagedCluster], policies: None) -> Iterator[dict[str, Part]]:
    """The policy watcher of each managed cluster, once OCM has deployed it as an add-on."""
    values = {"pollIntervalSeconds": 1, "stableDurationSeconds": 2}
    install_chart(hub, CHARTS / WATCHER, WATCHER, values=values)
    parts = {}
    for cluster in clusters:
        wait_deployed(hub, cluster, WATCHER, WATCHER)
        # Watchers of other tests have left theirs, and creating one is a right to be used.
        cluster.api.delete(*CLAIM)
        parts[cluster.name] = run_part(cluster, AGENT_NAMESPACE, WATCHER)
    yield parts
    for part in parts.values():
        part.stop()


@pytest.fixture(scope="package")
def guide(
    hub: Hub,
    clusters: list[ManagedCluster],
    scored: dict[tuple[str, str], Object],
    optimizer: Part,
    watchers: dict[str, Part],
) -> Iterator[Guide]:
    """The development guide, ready to run; what it runs is stopped at the end."""
    prepare(hub, clusters)
    yield Guide(hub, clusters, optimizer.url, caller(hub))
    remove_workloads(hub, WORKLOADS)


@pytest.fixture(scope="package")
def nodes_scored(
    hub: Hub, clusters: list[ManagedCluster], framework: str, scored: dict[object, Object]
) -> list[dict[str, int]]:
    """The scores of the nodes of east, before and after the use of one has changed."""
    for cluster in clusters:
        node_metrics.serve_metrics(cluster)
    hub.apply(node_metrics.scorer(hub, framework, "nodes"))
    first = until("the scores of nodes", lambda: node_metrics.entries(hub, "nodes", "east"))
    until("those of west", lambda: node_metrics.entries(hub, "nodes", "west"))
    clusters[0].apply(node_metrics.usage("n1", "9"))

    def later() -> dict[str, int] | None:
        found = node_metrics.entries(hub, "nodes", "east")
        return found if found != first else None

    second = until("the score of the changed node", later)
    hub.api.delete(*node_metrics.SCORER, "of-nodes", framework)
    return [first, second]


@pytest.fixture(scope="package")
def inventories(
    hub: Hub, clusters: list[ManagedCluster], agents: dict[str, Part], scored: dict[object, Object]
) -> dict[str, Object]:
    """The inventory of each cluster with one node, while its agent reported it; both are gone."""
    found = {}
    for cluster in clusters:
        cluster.apply(gpu_node("inventoried", 4))
        agent = agents[cluster.name]
        arguments = tuple(word for word in agent.arguments if word != "--no-inventory")
        reporting = replace(agent, arguments=arguments)
        agent.stop()
        reporting.start()
        found[cluster.name] = until(
            f"the inventory of {cluster.name}",
            lambda name=cluster.name: counted(hub.api.find(*INVENTORY, name, name)),
        )
        reporting.stop()
        agent.start()
        hub.api.delete(*INVENTORY, cluster.name, cluster.name)
        cluster.api.delete("v1", "Node", "inventoried")
    return found


def counted(inventory: Object | None) -> Object | None:
    """An inventory that counts nodes; None before it does."""
    return inventory if (inventory or {}).get("status", {}).get("nodeCount") else None


def keep_placed(hub: Hub) -> None:
    """Declare a PlacementOptimization, which only plans, and delete it once it has a status."""
    kind = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "PlacementOptimization", "kept")
    preference = {"addonPlacementScore": PREFERENCES["performance"]}
    hub.apply(
        {
            "apiVersion": kind[0],
            "kind": kind[1],
            "metadata": {"name": kind[2], "namespace": WORKLOADS},
            "spec": {"preference": preference, "deletionPolicy": "Reset"},
        }
    )
    until("its status", lambda: hub.api.get(*kind, WORKLOADS).get("status"))
    hub.api.delete(*kind, WORKLOADS)
    until("its end", lambda: hub.api.find(*kind, WORKLOADS) is None)


@pytest.fixture(scope="package")
def everything_used(
    guide: Guide,
    withdrawn: set[str],
    swept: Object,
    nodes_scored: list[dict[str, int]],
    inventories: dict[str, Object],
) -> None:
    """The product after all its functions were used."""
    keep_placed(guide.hub)
    for preference in PREFERENCES:
        guide.tell(preference)
    guide.scores()
    asker = replace(guide, token=administrator(guide.hub))
    path = f"/placements/status?namespace={EMPTY}"
    # The hub's authorizer sees a binding somewhat later, and the optimizer remembers a refusal.
    until("the administrator's rights", lambda: asker.ask("GET", path).is_success)
