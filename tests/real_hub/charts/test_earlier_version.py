"""Releases of the charts 0.1.0, those of tests/earlier_release: upgraded, rolled back, uninstalled.

What 0.1.0 had stored stays, and an upgrade that needs a step names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.earlier_release import charts as earlier_charts
from tests.eventually import until

from ..harness.helm import CHARTS, HelmFailed, helm, install_chart
from .releases import AGENT, CORE, OPTIMIZER, SAMPLES, WATCHER, core_values, has_agents_of, upgrade

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.control_plane import ControlPlane
    from ..harness.hub import Hub

DEPLOYMENT = ("apps/v1", "Deployment")
ADDON = ("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn")
CLAIM = ("cluster.open-cluster-management.io/v1alpha1", "ClusterClaim")
CONTROLLER = (*DEPLOYMENT, "dynamic-scoring-controller")
EVERYTHING = {"dryRun": "All", "fieldValidation": "Strict"}
"""The API server checks as if it would store the object, and drops nothing silently."""


def upgrade_keeping_values(plane: ControlPlane, chart: str, namespace: str, *words: str) -> None:
    """Upgrade with the values of 0.1.0; the way that loses new defaults names the other."""
    with pytest.raises(HelmFailed, match="run helm upgrade with --reset-then-reuse-values"):
        upgrade(plane, chart, namespace, "--reuse-values")
    upgrade(plane, chart, namespace, "--reset-then-reuse-values", *words)


def create_objects(hub: Hub, namespace: str, *kinds: str) -> list[Object]:
    """Objects of 0.1.0, which together have every field of its CRDs of these kinds."""
    objects = [
        {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
        for obj in earlier_charts.objects()
        if obj["kind"] in kinds
    ]
    for obj in objects:
        path = hub.api.path(obj["apiVersion"], obj["kind"], namespace)
        hub.api.request("POST", path, obj, params={"fieldValidation": "Strict"})
        if "status" in obj:
            status = {"status": obj["status"]}
            name = obj["metadata"]["name"]
            hub.api.patch(
                obj["apiVersion"], obj["kind"], name, status, namespace, subresource="status"
            )
    assert_kept(hub, objects)
    return objects


def assert_kept(hub: Hub, objects: list[Object]) -> None:
    """The objects are stored as they were written, and could be written again."""
    for obj in objects:
        metadata = obj["metadata"]
        kind = (obj["apiVersion"], obj["kind"])
        stored = hub.api.get(*kind, metadata["name"], metadata["namespace"])
        parts = ("spec", "status")
        assert {part: stored.get(part) for part in parts} == {part: obj.get(part) for part in parts}
        again = {**obj, "metadata": {**metadata, "namespace": "default"}}
        created = hub.api.request("POST", hub.api.path(*kind, "default"), again, params=EVERYTHING)
        assert created["spec"] == obj["spec"]


def delete_objects(hub: Hub, objects: list[Object]) -> None:
    """Later tests look at the objects of all namespaces."""
    for obj in objects:
        metadata = obj["metadata"]
        hub.api.delete(obj["apiVersion"], obj["kind"], metadata["name"], metadata["namespace"])


def test_the_core_its_agents_and_its_objects(
    hub: Hub, clusters: list[ManagedCluster], framework: str, namespace: str
) -> None:
    upgrade(hub, CORE, framework, core_values(hub, earlier=True), earlier=True)
    objects = create_objects(hub, namespace, "DynamicScorer", "DynamicScoringConfig")
    until("the agents of 0.1.0", lambda: has_agents_of(clusters, earlier=True))
    upgrade_keeping_values(hub, CORE, framework)
    assert_kept(hub, objects)
    until("the agents of today", lambda: has_agents_of(clusters, earlier=False))
    helm(hub, "rollback", CORE, f"--namespace={framework}")
    assert_kept(hub, objects)
    until("the agents of 0.1.0 again", lambda: has_agents_of(clusters, earlier=True))
    upgrade(hub, CORE, framework, core_values(hub))
    until("the agents of today again", lambda: has_agents_of(clusters, earlier=False))
    delete_objects(hub, objects)


@pytest.fixture
def without_core(hub: Hub, clusters: list[ManagedCluster], framework: str) -> Iterator[str]:
    """A namespace for a release of the core, which the hub lacks until the end of the test."""
    uninstall_core(hub, clusters, framework)
    yield "releases"
    uninstall_core(hub, clusters, "releases")
    upgrade(hub, CORE, framework, core_values(hub))
    until("the agents", lambda: has_agents_of(clusters, earlier=False))


def uninstall_core(hub: Hub, clusters: list[ManagedCluster], namespace: str) -> None:
    helm(hub, "uninstall", CORE, f"--namespace={namespace}", "--ignore-not-found", "--no-hooks")
    for cluster in clusters:
        hub.api.wait_gone(*ADDON, CORE, cluster.name)
        cluster.api.wait_gone(*AGENT)


def test_an_upgrade_that_would_move_the_controller_names_the_step(
    hub: Hub, clusters: list[ManagedCluster], framework: str, without_core: str
) -> None:
    """0.1.0 put it into open-cluster-management; today it is where the release is."""
    # The CRDs and the binding are still those of the release that was there before.
    kept = "--set=crds.install=false,hubSetting.skipClusterSetBinding=true"
    upgrade(hub, CORE, without_core, core_values(hub, earlier=True), kept, earlier=True)
    with pytest.raises(HelmFailed) as refused:
        upgrade(hub, CORE, without_core, "--reset-then-reuse-values")
    step = f"--set hubSetting.namespace={framework}"
    assert f"are in {framework}, and this upgrade would start it in {without_core}" in str(
        refused.value
    )
    assert step in str(refused.value)
    upgrade(hub, CORE, without_core, "--reset-then-reuse-values", *step.split())
    assert hub.api.find(*CONTROLLER, framework)
    assert not hub.api.find(*CONTROLLER, without_core)
    until("the agents of today", lambda: has_agents_of(clusters, earlier=False))
    helm(hub, "rollback", CORE, f"--namespace={without_core}")
    assert hub.api.find(*CONTROLLER, framework)


def test_the_optimizer_and_its_plans(
    hub: Hub, placement_plans: None, framework: str, namespace: str
) -> None:
    upgrade(hub, OPTIMIZER, framework, "--set=mcp.allowWrites=true", earlier=True)
    plans = create_objects(hub, namespace, "PlacementPlan")
    with pytest.raises(HelmFailed, match=r"tls\.source: this release serves plain HTTP"):
        upgrade_keeping_values(hub, OPTIMIZER, framework)
    upgrade_keeping_values(hub, OPTIMIZER, framework, "--set=tls.source=None")
    assert_kept(hub, plans)
    deployment = hub.api.get(*DEPLOYMENT, OPTIMIZER, framework)
    assert "--allow-writes" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    helm(hub, "rollback", OPTIMIZER, f"--namespace={framework}")
    assert_kept(hub, plans)
    helm(hub, "uninstall", OPTIMIZER, f"--namespace={framework}")
    hub.api.wait_gone(*DEPLOYMENT, OPTIMIZER, framework)
    assert_kept(hub, plans)
    delete_objects(hub, plans)
    install_chart(hub, CHARTS / OPTIMIZER, framework, values={"namespaces": []})


def test_the_watcher_of_one_cluster(east: ManagedCluster, policies: None) -> None:
    upgrade(east, WATCHER, "watching", "--set=clusterName=east,claimName=old", earlier=True)
    upgrade_keeping_values(east, WATCHER, "watching")
    assert east.api.find("rbac.authorization.k8s.io/v1", "Role", WATCHER, "east")
    helm(east, "rollback", WATCHER, "--namespace=watching")
    helm(east, "uninstall", WATCHER, "--namespace=watching")


def test_the_watchers_of_all_clusters_move_into_the_addon(
    hub: Hub, clusters: list[ManagedCluster], policies: None
) -> None:
    """From a release of each cluster, in its namespace, into that of the add-on; claims stay."""
    helm(hub, "uninstall", WATCHER, f"--namespace={WATCHER}", "--ignore-not-found")
    for cluster in clusters:
        cluster.api.wait_gone(*DEPLOYMENT, WATCHER, "dynamic-scoring")
        upgrade(cluster, WATCHER, "watching", f"--set=clusterName={cluster.name}", earlier=True)
        cluster.apply(claim())
        helm(cluster, "uninstall", WATCHER, "--namespace=watching")
        cluster.api.wait_gone(*DEPLOYMENT, WATCHER, "watching")
    notes = upgrade(hub, WATCHER, WATCHER)
    assert "Uninstall a watcher that helm installed on a managed cluster" in " ".join(notes.split())
    for cluster in clusters:
        until(
            f"the add-on on {cluster.name}",
            lambda: cluster.api.find(*DEPLOYMENT, WATCHER, "dynamic-scoring"),  # noqa: B023
        )
        assert cluster.api.get(*CLAIM, "policy-watcher-claim")["spec"] == claim()["spec"]
    helm(hub, "uninstall", WATCHER, f"--namespace={WATCHER}")
    for cluster in clusters:
        hub.api.wait_gone(*ADDON, WATCHER, cluster.name)
        cluster.api.wait_gone(*DEPLOYMENT, WATCHER, "dynamic-scoring")
        assert cluster.api.find(*CLAIM, "policy-watcher-claim")


def claim() -> Object:
    """What the watcher of a cluster has written."""
    metadata = {"name": "policy-watcher-claim"}
    return {"apiVersion": CLAIM[0], "kind": CLAIM[1], "metadata": metadata, "spec": {"value": "e"}}


def test_the_sample_scorers(east: ManagedCluster) -> None:
    """0.1.0 had no chart of them."""

    def deployed() -> set[str]:
        return {obj["metadata"]["name"] for obj in east.api.list(*DEPLOYMENT, "scorers")}

    upgrade(east, SAMPLES, "scorers")
    assert deployed() == {"sample-scorer"}
    upgrade(east, SAMPLES, "scorers", "--set=scorers.static-scorer.enabled=true")
    assert deployed() == {"sample-scorer", "static-scorer"}
    helm(east, "rollback", SAMPLES, "--namespace=scorers")
    until("the static scorer to go", lambda: deployed() == {"sample-scorer"})
    helm(east, "uninstall", SAMPLES, "--namespace=scorers")
    until("the samples to go", lambda: not deployed())
    assert not east.api.list("v1", "Service", "scorers")
