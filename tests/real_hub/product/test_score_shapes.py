"""Scorers of any shape decide plans of the optimizer, through agents and a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.dsf.shape_scorers import FORMATS, WANTED, scorer_spec
from tests.dsf.sim.test_scoring_from_manifests import policy, workload
from tests.eventually import until

from ..harness.api import condition_of
from .conftest import SCORE
from .guide import WORKLOADS, Guide, caller, prepare
from .parts import run_program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub
    from .parts import Part

DEVICES = ("3g.48gb", "2g.24gb")
SCORERS = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "DynamicScorer")


@pytest.fixture
def asker(
    hub: Hub,
    clusters: list[ManagedCluster],
    framework: str,
    registered: list[Object],
    controller: Part,
    agents: dict[str, Part],
    optimizer: Part,
) -> Iterator[Guide]:
    """A caller of the optimizer, once the scorers are registered and every cluster is scored."""
    prepare(hub, clusters)
    url = run_program(hub, "shape-scorers", ["-m", "tests.dsf.shape_scorers"], "/healthz")
    scorers = [
        {
            "apiVersion": SCORERS[0],
            "kind": SCORERS[1],
            "metadata": {"name": name, "namespace": framework},
            "spec": scorer_spec(name, url),
        }
        for name in FORMATS
    ]
    fleet = [workload("app01"), *map(policy, DEVICES)]
    for obj in fleet:
        obj["metadata"]["namespace"] = WORKLOADS
    for obj in (*scorers, *fleet):
        hub.apply(obj)
    wanted = {(name, cluster.name) for name in FORMATS for cluster in clusters}
    until("every shape on every cluster", lambda: wanted <= scored(hub))
    yield Guide(hub, clusters, optimizer.url, caller(hub))
    for obj in (*scorers, *fleet):
        metadata = obj["metadata"]
        hub.api.delete(obj["apiVersion"], obj["kind"], metadata["name"], metadata["namespace"])
    until("the scores to be gone", lambda: not wanted & scored(hub))


def scored(hub: Hub) -> set[tuple[str, str]]:
    found = hub.api.list(*SCORE)
    return {
        (obj["metadata"]["name"], obj["metadata"]["namespace"])
        for obj in found
        if condition_of(obj, "Scored").get("status") == "True"
    }


def place(asker: Guide, objective: dict[str, int], **further: Any) -> Object:
    """The only place of the plan for an objective; the guide's policies have other devices."""
    policies = [{"name": policy(device)["metadata"]["name"]} for device in DEVICES]
    offered = [{"name": item.name, "availablePolicies": policies} for item in asker.clusters]
    request = {"explain": True, "clusters": offered, **further}
    question = {"namespace": WORKLOADS, "objective": objective, "request": request}
    answer = asker.post("/plan", {**question, "workloads": ["mwrs-app01"]})
    assert answer["gaps"] == []
    (found,) = answer["explanation"]["places"]
    return found


def test_each_shape_decides_a_plan_without_a_format(asker: Guide) -> None:
    clusters = ("east", "west")
    for score, (number, value, entry) in WANTED.items():
        found = place(asker, {score: 1})
        assert (found["cluster"], found["score"]) == (clusters[number], value)
        assert found["entries"] == {score: entry.format(cluster=clusters[number])}
    both = place(asker, {"of-cluster": 1, "of-device": 1})
    assert (both["cluster"], both["device"], both["score"]) == ("west", "3g.48gb", 70 + 50)
    mean = {"addonPlacementScore": "of-node", "aggregation": "Mean"}
    assert place(asker, {}, preference=mean)["cluster"] == "west"
