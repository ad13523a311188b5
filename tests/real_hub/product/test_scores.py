"""From DynamicScorers to AddOnPlacementScores, through OCM's real work agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.eventually import until

from ..harness.api import condition_of
from .scorers import NEAR, NEARNESS, PERFORMANCE, POWER, SAMPLE

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub
    from .parts import Part

Scores = dict[tuple[str, str], dict[str, Any]]

API = "dynamic-scoring.open-cluster-management.io/v1alpha1"
WORK = ("work.open-cluster-management.io/v1", "ManifestWork")
DECISION = ("cluster.open-cluster-management.io/v1beta1", "PlacementDecision")
NAME = "dynamic-scoring-config"
GOLDEN = {
    PERFORMANCE: {
        "app01;all": 80,
        "app02;all": 80,
        "app01;3g.48gb": 60,
        "app02;3g.48gb": 55,
        "app01;2g.24gb": 10,
        "app02;2g.24gb": 15,
    },
    POWER: {
        "app01;all": 20,
        "app02;all": 10,
        "app01;3g.48gb": 30,
        "app02;3g.48gb": 55,
        "app01;2g.24gb": 80,
        "app02;2g.24gb": 90,
    },
    # 0.127 cores are 12.7% of one, rounded down.
    SAMPLE: {"n1;shop;cart": 12},
}


def test_every_scorer_is_active_and_distributed(
    hub: Hub, framework: str, registered: list[Object], scored: Scores
) -> None:
    for obj in registered:
        kind, name = obj["kind"], obj["metadata"]["name"]
        hub.api.wait_condition(API, kind, name, "Ready", framework)
    seen = {
        obj["metadata"]["name"]: obj["status"]
        for obj in hub.api.list(API, "DynamicScorer", framework)
    }
    assert {status["healthStatus"] for status in seen.values()} == {"Active"}
    synced = seen["example-performance"]["lastSyncedConfig"]
    assert synced["scoring"]["params"] == {"name": "example_performance_score", "interval": 1}

    def reached() -> bool:
        status = hub.api.get(API, "DynamicScoringConfig", NAME, framework)["status"]
        joined = len(hub.api.list("cluster.open-cluster-management.io/v1", "ManagedCluster"))
        return (status["scorers"], status["clusters"]) == (4, joined)

    until("the status of the config", reached)


def test_ocm_delivers_the_summaries_that_are_meant_for_a_cluster(
    hub: Hub, clusters: list[ManagedCluster], scored: Scores
) -> None:
    names = {}
    for cluster in clusters:
        hub.api.wait_condition(*WORK, f"{NAME}-manifestwork", "Available", cluster.name)
        data = cluster.api.get("v1", "ConfigMap", NAME, "dynamic-scoring")["data"]
        names[cluster.name] = {entry["scoreName"] for entry in json.loads(data["summaries"])}
    everywhere = {"example_performance_score", "example_powerconsumption_score", "sample_my_score"}
    assert names == {"east": everywhere | {"nearness_score"}, "west": everywhere}


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("cluster", ["east", "west"])
def test_the_agents_publish_what_the_scoring_apis_say(
    scored: Scores, cluster: str, name: str
) -> None:
    status = scored[cluster, name]["status"]
    assert {entry["name"]: entry["value"] for entry in status["scores"]} == GOLDEN[name]
    assert status["validUntil"]
    for stage in ("SourceFetched", "Scored", "Published"):
        assert condition_of(scored[cluster, name], stage)["status"] == "True"


def test_a_mask_keeps_a_score_away(hub: Hub, scored: Scores) -> None:
    assert scored["east", NEARNESS]["status"]["scores"] == [{"name": "shop", "value": NEAR}]
    assert ("west", NEARNESS) not in scored


def test_ocms_placement_controller_selects_by_our_scores(
    hub: Hub, bound_namespace: str, scored: Scores
) -> None:
    """The clusters differ only in one score, which decides with either sign of its weight."""
    # Only where the score is: a cluster without it counts as 0.
    scoring = {"celExpressions": ['managedCluster.metadata.name in ["east", "west"]']}
    for name, weight in (("nearest", 1), ("farthest", -1)):
        coordinate = {"type": "AddOn", "addOn": {"resourceName": NEARNESS, "scoreName": "shop"}}
        policy = {
            "mode": "Exact",
            "configurations": [{"scoreCoordinate": coordinate, "weight": weight}],
        }
        hub.apply(
            {
                "apiVersion": "cluster.open-cluster-management.io/v1beta1",
                "kind": "Placement",
                "metadata": {"name": name, "namespace": bound_namespace},
                "spec": {
                    "numberOfClusters": 1,
                    "clusterSets": ["global"],
                    "predicates": [{"requiredClusterSelector": {"celSelector": scoring}}],
                    "prioritizerPolicy": policy,
                },
            }
        )
    until("the nearest", lambda: decided(hub, bound_namespace, "nearest") == ["east"])
    until("the farthest", lambda: decided(hub, bound_namespace, "farthest") == ["west"])


def decided(hub: Hub, namespace: str, placement: str) -> list[str]:
    labels = f"cluster.open-cluster-management.io/placement={placement}"
    return [
        entry["clusterName"]
        for obj in hub.api.list(*DECISION, namespace, labels=labels)
        for entry in obj.get("status", {}).get("decisions", [])
    ]


def test_the_scores_are_metrics_too(agents: dict[str, Part], scored: Scores) -> None:
    def shown() -> float:
        return agents["west"].metric("dynamic_score", ds_score_name="sample_my_score")

    assert until("the agent's first round", shown) == pytest.approx(12.7)
