"""Least privilege, measured: every right that a chart grants is used, and none is missing."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest

from ..harness.helm import installed
from .rights import Right, granted, refused, used

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.control_plane import ControlPlane
    from ..harness.hub import Hub

ADDON = "dynamic-scoring-framework"
WATCHER = "open-cluster-management.io/addon-name=policy-watcher"
AGENT_ON_HUB = "system:open-cluster-management:cluster:{}:addon:{}:agent:{}-agent"
# Asked for only after a create has met an object that somebody else made in the same moment, or
# where an event repeats; and once for a hub, by whoever records the first plan.
RACES = {
    Right("", "secrets", "create"),
    Right("", "events", "get"),
    Right("", "events", "patch"),
    Right("work.open-cluster-management.io", "manifestworks", "get"),
    Right("cluster.open-cluster-management.io", "placements", "get"),
    Right("policy.open-cluster-management.io", "placementbindings", "get"),
}

pytestmark = pytest.mark.usefixtures("everything_used")


def test_the_controller(hub: Hub, framework: str) -> None:
    objects = installed(hub, ADDON, framework)
    roles = of_name(objects, "dynamic-scoring-controller")
    roles += of_name(objects, "dynamic-scoring-controller-manifests")
    events = [*by_us(hub, account(framework, "dynamic-scoring-controller"))]
    assert granted(roles) - RACES == used(events) - RACES
    assert refused(events) == []


def test_the_agent_on_the_hub(hub: Hub, framework: str, clusters: list[ManagedCluster]) -> None:
    roles = of_name(installed(hub, ADDON, framework), "dynamic-scoring-agent")
    users = {each.name: AGENT_ON_HUB.format(each.name, ADDON, ADDON) for each in clusters}
    events = {name: [*by_us(hub, user)] for name, user in users.items()}
    assert granted(roles) == used(chain.from_iterable(events.values()))
    # A role goes somewhat before the agent that a test takes off its cluster.
    others = [
        event
        for name, asked in events.items()
        for event in refused(asked)
        if event["objectRef"].get("namespace") != name
    ]
    assert others == []


def test_the_agent_on_its_cluster(clusters: list[ManagedCluster]) -> None:
    kind = ("rbac.authorization.k8s.io/v1", "Role")
    user = account("dynamic-scoring", "dynamic-scoring-agent-sa")
    names = ("dynamic-scoring-agent", "dynamic-scoring-agent-secrets")
    events = [event for cluster in clusters for event in by_us(cluster, user)]
    # One scorer asks for Pods, for which nothing is granted.
    events = [event for event in events if not about_metrics_of_pods(event)]
    # No scorer of west references a Secret.
    roles = [each.api.find(*kind, name, "dynamic-scoring") for each in clusters for name in names]
    for name in ("nodes.metrics.k8s.io", "inventory"):
        role = (kind[0], "ClusterRole", f"dynamic-scoring-agent-{name}")
        roles += [each.api.get(*role) for each in clusters]
    assert granted(filter(None, roles)) == used(events)
    # A scorer that goes loses its Secret somewhat earlier.
    others = [event for event in refused(events) if event["objectRef"]["resource"] != "secrets"]
    assert others == []


def test_the_optimizer(hub: Hub, framework: str) -> None:
    release = "dynamic-scoring-optimizer"
    objects = installed(hub, release, framework)
    roles = [*of_name(objects, release), *of_name(objects, f"{release}-record-key")]
    events = [*hub.audited(account(framework, release))]
    assert granted(roles) - RACES == used(events) - RACES
    assert [event for event in refused(events) if not elsewhere(event)] == []


def test_the_policy_watcher_on_its_cluster(clusters: list[ManagedCluster]) -> None:
    role = ("rbac.authorization.k8s.io/v1", "ClusterRole", "policy-watcher")
    for cluster in clusters:
        events = [*cluster.audited(account("dynamic-scoring", "policy-watcher"))]
        assert granted([cluster.api.get(*role)]) == used(events)
        assert refused(events) == []


def test_the_policy_watcher_has_no_identity_on_the_hub(
    hub: Hub, clusters: list[ManagedCluster]
) -> None:
    requests = hub.api.list("certificates.k8s.io/v1", "CertificateSigningRequest", labels=WATCHER)
    assert requests == []
    for cluster in clusters:
        secrets = cluster.api.list("v1", "Secret", "dynamic-scoring")
        assert "policy-watcher-hub-kubeconfig" not in {each["metadata"]["name"] for each in secrets}


def of_name(objects: list[Object], name: str) -> list[Object]:
    """The roles with a name; at least one exists."""
    roles = [obj for obj in objects if "rules" in obj and obj["metadata"]["name"] == name]
    assert roles
    return roles


def account(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def by_us(plane: ControlPlane, user: str) -> Iterator[Object]:
    """A user's events without those of the tests that used its identity."""
    return (
        event for event in plane.audited(user) if "python-httpx" not in event.get("userAgent", "")
    )


def about_metrics_of_pods(event: Object) -> bool:
    """Whether a request was about Pods as metrics-server shows them."""
    about = event.get("objectRef", {})
    return (about.get("apiGroup"), about.get("resource")) == ("metrics.k8s.io", "pods")


def elsewhere(event: Object) -> bool:
    """Whether a request was about the namespace in which the optimizer has no rights."""
    return bool(event["objectRef"].get("namespace") == "default")
