"""A Secret of the hub on real managed clusters: brought, rotated and taken away by OCM's agents."""

from __future__ import annotations

import base64
from contextlib import closing
from typing import TYPE_CHECKING

from tests.eventually import until

from ..harness.api import Api, ApiError
from .scorers import TOKEN

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub
    from .parts import Part

SCORER = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "DynamicScorer")
NAME = "guarded-token"
OF_SCORERS, OF_OCM = TOKEN["name"], "dynamic-scoring-framework-hub-kubeconfig"
OK, FORBIDDEN, NOT_FOUND = 200, 403, 404
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


def test_an_agent_may_get_what_its_scorers_reference_and_nothing_else(
    hub: Hub, east: ManagedCluster, framework: str, scored: dict[object, Object]
) -> None:
    account = east.kubeconfig(service_account=f"{AGENTS}/dynamic-scoring-agent-sa")
    with closing(Api.from_kubeconfig(account)) as agent:
        assert statuses(agent) == {OF_SCORERS: 200, NAME: 403, OF_OCM: 403, "": 403}
        hub.apply(guarded(hub, framework))
        until("the right to the second Secret", lambda: statuses(agent)[NAME] == NOT_FOUND)
        assert statuses(agent) == {OF_SCORERS: 200, NAME: NOT_FOUND, OF_OCM: 403, "": 403}
        hub.api.delete(*SCORER, "guarded", framework)
        until("no right to it any more", lambda: statuses(agent)[NAME] == FORBIDDEN)
        assert statuses(agent)[OF_SCORERS] == OK


def statuses(agent: Api) -> dict[str, int]:
    """What an account is answered that gets Secrets by name; without a name it lists them."""

    def status(name: str) -> int:
        try:
            agent.request("GET", agent.path("v1", "Secret", AGENTS, name))
        except ApiError as error:
            return error.status
        return OK

    return {name: status(name) for name in (OF_SCORERS, NAME, OF_OCM, "")}


def held(cluster: ManagedCluster) -> Object | None:
    """The Secret on a managed cluster."""
    return cluster.api.find("v1", "Secret", NAME, AGENTS)


def all_hold(clusters: list[ManagedCluster], value: str) -> bool:
    """Whether every cluster has the token, and nothing else of the Secret."""
    wanted = {"token": encoded(value)}
    return all((held(cluster) or {}).get("data") == wanted for cluster in clusters)
