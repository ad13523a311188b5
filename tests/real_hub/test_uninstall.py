"""Uninstalling removes the add-on from the clusters and keeps the users' objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.dsf.api.crd.crd_objects import scorer
from tests.eventually import until

from .harness.helm import CHARTS, helm, install_chart

if TYPE_CHECKING:
    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

NAME = "dynamic-scoring-framework"
AGENT = ("apps/v1", "Deployment", "dynamic-scoring-agent", "dynamic-scoring")
ADDON = ("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn", NAME)
SCORER = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "DynamicScorer", "kept")


def test_the_addon_goes_and_the_scorers_stay_for_the_next_install(
    hub: Hub, clusters: list[ManagedCluster], framework: str
) -> None:
    hub.apply({**scorer(), "metadata": {"name": "kept", "namespace": framework}})
    wait_deployed(clusters)

    helm(hub, "uninstall", NAME, f"--namespace={framework}")
    for cluster in clusters:
        hub.api.wait_gone(*ADDON, cluster.name)
        cluster.api.wait_gone(*AGENT)
        assert cluster.api.find("v1", "Namespace", "dynamic-scoring")
        bindings = hub.api.list(
            "rbac.authorization.k8s.io/v1", "RoleBinding", cluster.name, labels=""
        )
        assert [item for item in bindings if NAME in item["metadata"]["name"]] == []
    assert hub.api.get(*SCORER, framework)

    install_chart(hub, CHARTS / NAME, framework)
    wait_deployed(clusters)
    assert hub.api.get(*SCORER, framework)
    hub.api.delete(*SCORER, framework)


def wait_deployed(clusters: list[ManagedCluster]) -> None:
    until(
        "the agent on every cluster",
        lambda: all(cluster.api.find(*AGENT) for cluster in clusters),
    )
