"""The DynamicScoringConfig chooses managed clusters, and where their sources are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.eventually import until

from .conftest import ADDON, CONFIG, WORK, published

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.hub import Hub

CLUSTER = ("cluster.open-cluster-management.io/v1", "ManagedCluster")
NEAR = "http://prometheus.near.svc:9090"


@pytest.fixture
def config(hub: Hub, framework: str, scored: dict[tuple[str, str], Object]) -> Iterator[Any]:
    """A function that changes the config's spec; the old spec is restored afterwards."""
    before = hub.api.get(*CONFIG, framework)["spec"]
    nothing = {"clusterSelector": None, "clusterSets": None, "sourceOverrides": None}

    def change(**spec: Any) -> None:
        hub.api.patch(*CONFIG, {"spec": {**nothing, **spec}}, framework)

    yield change
    change(**before)
    until("every score to be back", lambda: published(hub))


def told(hub: Hub) -> dict[str, dict[str, str]]:
    """The source endpoints by score name of every cluster that has a work."""
    works = hub.api.list(*WORK[:2])
    return {
        work["metadata"]["namespace"]: {
            each["scoreName"]: each["sourceEndpoint"] for each in summaries(work)
        }
        for work in works
        if work["metadata"]["name"] == WORK[2] and "deletionTimestamp" not in work["metadata"]
    }


def summaries(work: Object) -> list[dict[str, str]]:
    for manifest in work["spec"]["workload"]["manifests"]:
        if manifest["kind"] == "ConfigMap":
            return list(json.loads(manifest["data"]["summaries"]))
    return []


def test_by_labels_and_sets(hub: Hub, config: Any) -> None:
    hub.api.patch(*CLUSTER, "west", {"metadata": {"labels": {"gpu": "yes"}}})
    config(clusterSelector={"matchLabels": {"gpu": "yes"}}, clusterSets=["global"])
    until("only west to be told", lambda: told(hub).keys() == {"west"})
    hub.api.patch(*CLUSTER, "east", {"metadata": {"labels": {"gpu": "yes"}}})
    until("both to be told", lambda: told(hub).keys() == {"east", "west"})
    for name in ("east", "west"):
        hub.api.patch(*CLUSTER, name, {"metadata": {"labels": {"gpu": None}}})
    until("nobody to be told", lambda: not told(hub))


def test_where_the_source_is(hub: Hub, config: Any) -> None:
    override = {"clusterName": "east", "scoreName": "sample_my_score", "sourceHost": NEAR}
    config(sourceOverrides=[override])
    endpoint = f"{NEAR}/api/v1/query_range"
    until(
        "east to have its own source",
        lambda: told(hub).get("east", {}).get("sample_my_score") == endpoint,
    )
    assert told(hub)["west"]["sample_my_score"] != endpoint


def test_a_cluster_is_told_once_ocm_has_given_it_the_add_on_and_until_it_leaves(
    hub: Hub, framework: str, scored: dict[tuple[str, str], Object]
) -> None:
    """The cluster never joins: it only has to be accepted and have the add-on."""
    stranger = hub.namespace("stranger")
    cluster = {
        "apiVersion": CLUSTER[0],
        "kind": CLUSTER[1],
        "metadata": {"name": stranger},
        "spec": {"hubAcceptsClient": True},
    }
    hub.apply(cluster)
    add_on = (*ADDON, stranger)
    try:
        until("the add-on", lambda: hub.api.find(*add_on))
        until("stranger to be told", lambda: stranger in told(hub))
    finally:
        hub.api.delete(*CLUSTER, stranger)
    until("its work to go", lambda: stranger not in told(hub))
