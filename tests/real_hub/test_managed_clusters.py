"""Managed clusters join: certificate, Lease, work, and rights in their own namespace only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

from .harness.api import Api, ApiError, condition_of

if TYPE_CHECKING:
    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

CLUSTER = "cluster.open-cluster-management.io/v1"
WORK = "work.open-cluster-management.io/v1"


def work(name: str, cluster: str, text: str) -> dict[str, object]:
    manifests = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "letter", "namespace": name},
            "data": {"text": text},
        },
    ]
    return {
        "apiVersion": WORK,
        "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": cluster},
        "spec": {"workload": {"manifests": manifests}},
    }


def test_both_clusters_are_accepted_joined_and_available(
    hub: Hub, clusters: list[ManagedCluster]
) -> None:
    for cluster in clusters:
        seen = hub.api.get(CLUSTER, "ManagedCluster", cluster.name)
        for condition in ("HubAcceptedManagedCluster", "ManagedClusterJoined"):
            assert condition_of(seen, condition)["status"] == "True"
        assert condition_of(seen, "ManagedClusterConditionAvailable")["status"] == "True"
        assert seen["spec"]["managedClusterClientConfigs"][0]["url"] == cluster.server


def test_a_cluster_renews_its_lease(hub: Hub, east: ManagedCluster) -> None:
    lease = until(
        "a lease",
        lambda: hub.api.find("coordination.k8s.io/v1", "Lease", "managed-cluster-lease", east.name),
    )
    assert lease["spec"]["renewTime"]


def test_the_agents_are_on_the_hub_who_the_hub_says_they_are(east: ManagedCluster) -> None:
    api = Api.from_kubeconfig(east.hub_kubeconfig)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    who = api.request("POST", path, review)["status"]["userInfo"]
    assert who["username"] == "system:open-cluster-management:east:east-agent"
    assert "system:open-cluster-management:east" in who["groups"]
    api.close()


def test_a_cluster_cannot_read_another_clusters_work(
    hub: Hub, east: ManagedCluster, west: ManagedCluster
) -> None:
    api = Api.from_kubeconfig(east.hub_kubeconfig)
    assert api.list(WORK, "ManifestWork", east.name) is not None
    with pytest.raises(ApiError, match="403 Forbidden"):
        api.list(WORK, "ManifestWork", west.name)
    api.close()


def test_work_is_delivered_updated_and_removed(hub: Hub, west: ManagedCluster) -> None:
    def letter() -> str:
        found = west.api.find("v1", "ConfigMap", "letter", "mail") or {}
        return str(found.get("data", {}).get("text", ""))

    hub.apply(work("mail", west.name, "hello"))
    hub.api.wait_condition(WORK, "ManifestWork", "mail", "Applied", west.name)
    assert letter() == "hello"

    hub.apply(work("mail", west.name, "hello again"))
    until("the new letter", lambda: letter() == "hello again")

    hub.api.delete(WORK, "ManifestWork", "mail", west.name)
    hub.api.wait_gone(WORK, "ManifestWork", "mail", west.name)
    west.api.wait_gone("v1", "ConfigMap", "letter", "mail")


def test_work_is_delivered_to_the_cluster_that_it_names_only(
    hub: Hub, east: ManagedCluster, west: ManagedCluster
) -> None:
    hub.apply(work("private", east.name, "for east"))
    hub.api.wait_condition(WORK, "ManifestWork", "private", "Applied", east.name)
    assert east.api.find("v1", "ConfigMap", "letter", "private")
    assert west.api.find("v1", "ConfigMap", "letter", "private") is None
