"""A Secret of the hub on real managed clusters: brought, rotated and taken away by OCM's agents."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from tests.eventually import until

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub
    from .parts import Part

SCORER = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "DynamicScorer")
NAME = "guarded-token"
AGENTS = "dynamic-scoring"


def secret(namespace: str, value: str) -> Object:
    """A labelled Secret, with a further key that no scorer names."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": NAME,
            "namespace": namespace,
            "labels": {"dynamic-scoring.open-cluster-management.io/distribute": "true"},
        },
        "data": {"token": encoded(value), "private": encoded("of the hub")},
    }


def encoded(text: str) -> str:
    """Text as a Secret holds it."""
    return base64.b64encode(text.encode()).decode()


def guarded(hub: Hub, namespace: str) -> Object:
    """A scorer that names the Secret."""
    nearness = hub.api.get(*SCORER, "nearness", namespace)
    scoring = nearness["spec"]["scoring"]
    return {
        "apiVersion": SCORER[0],
        "kind": SCORER[1],
        "metadata": {"name": "guarded", "namespace": namespace},
        "spec": {
            **nearness["spec"],
            "scoring": {
                **scoring,
                "params": {"name": "guarded_score", "interval": 1},
                "auth": {"tokenSecretRef": {"name": NAME, "key": "token"}},
            },
        },
    }


def test_a_secret_follows_its_scorer(
    hub: Hub,
    clusters: list[ManagedCluster],
    framework: str,
    controller: Part,
    scored: dict[object, Object],
) -> None:
    hub.apply(secret(framework, "first"))
    assert not any(held(cluster) for cluster in clusters)
    hub.apply(guarded(hub, framework))
    until("the Secret on every cluster", lambda: all_hold(clusters, "first"))
    hub.apply(secret(framework, "second"))
    until("the new token on every cluster", lambda: all_hold(clusters, "second"))
    hub.api.delete(*SCORER, "guarded", framework)
    until("the Secret to be gone", lambda: not any(held(cluster) for cluster in clusters))
    hub.api.delete("v1", "Secret", NAME, framework)


def held(cluster: ManagedCluster) -> Object | None:
    """The Secret on a managed cluster."""
    return cluster.api.find("v1", "Secret", NAME, AGENTS)


def all_hold(clusters: list[ManagedCluster], value: str) -> bool:
    """Whether every cluster has the token, and nothing else of the Secret."""
    wanted = {"token": encoded(value)}
    return all((held(cluster) or {}).get("data") == wanted for cluster in clusters)
