"""Releases on a real hub: beside each other, upgraded, rolled back, uninstalled, refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.charts.rendering import render
from tests.eventually import until
from tests.repository import ROOT

from ..guides.cluster_network import ClusterNetwork
from ..guides.kubelet import Kubelet
from ..harness.helm import (
    CHARTS,
    OPTIMIZER_WITHOUT_RIGHTS,
    HelmFailed,
    helm,
    helm_test,
    install_chart,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub

CORE, OPTIMIZER, WATCHER, SCORERS = (
    "dynamic-scoring-framework",
    "dynamic-scoring-optimizer",
    "policy-watcher",
    "sample-scorers",
)
DEPLOYMENT = ("apps/v1", "Deployment")
CLUSTER_ROLE = ("rbac.authorization.k8s.io/v1", "ClusterRole")
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
SET_BINDING = ("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding")
ADDON = ("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn")
PLANS = "placementplans.dynamic-scoring.open-cluster-management.io"
OPTIMIZATIONS = "placementoptimizations.dynamic-scoring.open-cluster-management.io"
HOOK = "helm.sh/hook"
ARM64 = {"kubernetes.io/arch": "arm64"}
NETWORK, SIGNED_NETWORK = 203, 204
"""Numbers of networks on loopback that no other test of this hub uses."""
ALONE = ("--set=crds.install=false", "--set-json=namespaces=[]")
"""Values with which an optimizer shares nothing with another."""

pytestmark = pytest.mark.usefixtures("placement_plans")


def upgrade(
    plane: Hub | ManagedCluster, release: str, chart: str, namespace: str, *words: str
) -> None:
    helm(
        plane,
        "upgrade",
        "--install",
        release,
        str(CHARTS / chart),
        f"--namespace={namespace}",
        "--create-namespace",
        *words,
    )


def arguments(hub: Hub, name: str, namespace: str) -> list[str]:
    """The arguments of a Deployment's container."""
    deployment = hub.api.get(*DEPLOYMENT, name, namespace)
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return list(container["args"])


def test_what_is_installed_is_what_helm_renders_without_a_hub(hub: Hub, framework: str) -> None:
    """A release's manifests are made by `helm template`, which knows no APIs of the hub."""
    compared = []
    for release in json.loads(helm(hub, "list", "--all-namespaces", "--output=json")):
        name, namespace = release["name"], release["namespace"]
        chart = release["chart"].rpartition("-")[0]
        given = helm(hub, "get", "values", name, f"--namespace={namespace}", "--output=json")
        values = json.loads(given) or {}
        installed = helm(hub, "get", "manifest", name, f"--namespace={namespace}")
        rendered = render(chart, values, release=name, namespace=namespace)
        tests = [obj for obj in rendered if HOOK in obj["metadata"].get("annotations", {})]
        objects = [obj for obj in rendered if obj not in tests]
        assert by_name(objects) == by_name(filter(None, yaml.safe_load_all(installed)))
        compared.append(chart)
    assert CORE in compared


def by_name(objects: Iterable[Object]) -> dict[tuple[str, str], Object]:
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects}


def test_an_optimizer_is_installed_beside_another_upgraded_rolled_back_and_removed(
    hub: Hub, namespace: str
) -> None:
    name = f"two-{OPTIMIZER}"
    upgrade(hub, "two", OPTIMIZER, namespace, *ALONE)
    assert "--allow-writes" not in arguments(hub, name, namespace)
    upgrade(hub, "two", OPTIMIZER, namespace, *ALONE, "--set=allowWrites=true")
    assert "--allow-writes" in arguments(hub, name, namespace)
    helm(hub, "rollback", "two", "1", f"--namespace={namespace}")
    assert "--allow-writes" not in arguments(hub, name, namespace)
    assert f"--allowed-host={name}.{namespace}.svc" in arguments(hub, name, namespace)
    helm(hub, "uninstall", "two", f"--namespace={namespace}")
    hub.api.wait_gone(*DEPLOYMENT, name, namespace)
    for suffix in ("", "-reader", "-writer"):
        assert hub.api.find(*CLUSTER_ROLE, name + suffix) is None
    assert hub.api.find(*CLUSTER_ROLE, OPTIMIZER)
    assert hub.api.find(*CRD, PLANS)


def test_the_watchers_addon_goes_and_comes_back_and_the_claims_stay(
    hub: Hub, clusters: list[ManagedCluster], policies: None, namespace: str
) -> None:
    if hub.api.find("v1", "Namespace", WATCHER):
        helm(hub, "uninstall", WATCHER, f"--namespace={WATCHER}", "--ignore-not-found")
    for cluster in clusters:
        cluster.api.wait_gone(*DEPLOYMENT, WATCHER, "dynamic-scoring")
        cluster.apply(
            {
                "apiVersion": "cluster.open-cluster-management.io/v1alpha1",
                "kind": "ClusterClaim",
                "metadata": {"name": "policy-watcher-claim"},
                "spec": {"value": "empty"},
            }
        )
    upgrade(hub, WATCHER, WATCHER, namespace, "--set=stableDurationSeconds=7")
    wait_stable(clusters, "7")
    upgrade(hub, WATCHER, WATCHER, namespace, "--set=stableDurationSeconds=9")
    wait_stable(clusters, "9")
    helm(hub, "rollback", WATCHER, "1", f"--namespace={namespace}")
    wait_stable(clusters, "7")
    with pytest.raises(HelmFailed, match=f"belongs to the release {WATCHER} in the namespace"):
        upgrade(hub, "second", WATCHER, "elsewhere")
    helm(hub, "uninstall", WATCHER, f"--namespace={namespace}")
    for cluster in clusters:
        hub.api.wait_gone(*ADDON, WATCHER, cluster.name)
        cluster.api.wait_gone(*DEPLOYMENT, WATCHER, "dynamic-scoring")
        assert cluster.api.find(
            "cluster.open-cluster-management.io/v1alpha1", "ClusterClaim", "policy-watcher-claim"
        )


def wait_stable(clusters: list[ManagedCluster], seconds: str) -> None:
    """Wait until the watcher of each cluster has the given stable duration."""

    def stable(deployment: Object | None) -> bool:
        if deployment is None:
            return False
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        return {"name": "STABLE_DURATION_SEC", "value": seconds} in container["env"]

    for cluster in clusters:
        until(
            f"{seconds} seconds on {cluster.name}",
            lambda place=cluster: stable(  # type: ignore[misc]
                place.api.find(*DEPLOYMENT, WATCHER, "dynamic-scoring")
            ),
        )


def test_some_clusters_get_another_configuration_of_the_agent(
    hub: Hub, clusters: list[ManagedCluster], framework: str
) -> None:
    """The example of the guide, and back."""
    examples = ROOT / "docs/examples/addon"
    for obj in yaml.safe_load_all((examples / "arm64.yaml").read_text()):
        hub.apply(obj)
    labelled = {"metadata": {"labels": {"arch": "arm64"}}}
    hub.api.patch("cluster.open-cluster-management.io/v1", "ManagedCluster", "west", labelled)
    upgrade(
        hub, CORE, CORE, framework, "--reset-then-reuse-values", f"-f={examples}/arm64-values.yaml"
    )
    until("the agent of west on arm64", lambda: nodes_of_agents(clusters) == [None, ARM64])
    pod = agent(clusters[1])["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert [toleration["key"] for toleration in pod["tolerations"]] == ["arch"]
    assert container["image"].startswith("registry.example/open-cluster-management/dynamic")
    assert container["resources"]["limits"] == {"memory": "512Mi"}
    assert {"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"} in container["env"]
    helm(hub, "rollback", CORE, f"--namespace={framework}")
    until("the agent of west as before", lambda: nodes_of_agents(clusters) == [None, None])


def agent(cluster: ManagedCluster) -> Object:
    return cluster.api.get(*DEPLOYMENT, "dynamic-scoring-agent", "dynamic-scoring")


def nodes_of_agents(clusters: list[ManagedCluster]) -> list[Object | None]:
    """The node selectors of the agents, None for those that have no Deployment or no selector."""
    found = (
        cluster.api.find(*DEPLOYMENT, "dynamic-scoring-agent", "dynamic-scoring") or {}
        for cluster in clusters
    )
    return [
        obj.get("spec", {}).get("template", {}).get("spec", {}).get("nodeSelector") for obj in found
    ]


def test_a_watcher_of_one_cluster_is_still_a_release_there(
    hub: Hub, east: ManagedCluster, policies: None
) -> None:
    upgrade(east, "alone", WATCHER, "watching", "--set=clusterName=east,claimName=alone")
    role = east.api.get("rbac.authorization.k8s.io/v1", "Role", WATCHER, "east")
    assert [rule["resources"] for rule in role["rules"]] == [["policies"]]
    kubelet = Kubelet(east, ClusterNetwork(east, NETWORK), "watching")
    kubelet.sync()
    helm_test(east, "alone", "watching", kubelet.run_pods)
    assert kubelet.stop("watching", WATCHER) == 0
    helm(east, "uninstall", "alone", "--namespace=watching")
    east.api.wait_gone(*DEPLOYMENT, WATCHER, "watching")
    assert east.api.find("cluster.open-cluster-management.io/v1alpha1", "ClusterClaim", "alone")


def test_an_optimizer_keeps_the_certificate_that_it_signs_in_the_secret_of_its_chart(
    hub: Hub, namespace: str
) -> None:
    name = f"signed-{OPTIMIZER}"
    upgrade(hub, "signed", OPTIMIZER, namespace, *ALONE)
    kubelet = Kubelet(hub, ClusterNetwork(hub, SIGNED_NETWORK), namespace)
    kubelet.sync()
    helm_test(hub, "signed", namespace, kubelet.run_pods)
    secret = hub.api.get("v1", "Secret", f"{name}-self-signed", namespace)
    assert sorted(secret["data"]) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
    upgrade(hub, "signed", OPTIMIZER, namespace, *ALONE, "--set=allowWrites=true")
    kept = hub.api.get("v1", "Secret", f"{name}-self-signed", namespace)
    assert kept["data"] == secret["data"]
    assert kubelet.stop(namespace, name) == 0
    helm(hub, "uninstall", "signed", f"--namespace={namespace}")


def test_a_cluster_without_the_prometheus_operator_is_named(east: ManagedCluster) -> None:
    words = "--set=clusterName=east,metrics.podMonitor.enabled=true"
    with pytest.raises(HelmFailed, match=r"metrics\.podMonitor\.enabled needs the Prometheus"):
        upgrade(east, "alone", WATCHER, "watching", words)


@pytest.mark.parametrize("chart", [CORE, OPTIMIZER, WATCHER])
def test_a_cluster_without_ocm_hub_is_named(east: ManagedCluster, chart: str) -> None:
    with pytest.raises(HelmFailed) as refused:
        upgrade(east, chart, chart, "dsf")
    assert "this cluster does not serve " in str(refused.value)
    assert "it is no Open Cluster Management hub" in str(refused.value)


@pytest.mark.parametrize(
    ("release", "chart", "words", "message"),
    [
        (
            "second",
            CORE,
            "crds.install=false",
            f"{CORE} already exists and belongs to the release {CORE} in the namespace",
        ),
        ("second", CORE, "", "A hub has one installation of this chart: upgrade that release"),
        ("second", OPTIMIZER, "", f"{OPTIMIZATIONS} already exists and belongs to the release"),
        (OPTIMIZER, OPTIMIZER, "crds.install=false", "choose another release name, or set"),
        (
            "monitored",
            OPTIMIZER,
            "crds.install=false,httpRoute.enabled=true",
            "httpRoute.parentRefs: empty, but httpRoute.enabled is true. Name the Gateway",
        ),
        (
            "routed",
            SCORERS,
            "ingress.enabled=true",
            "scorers.sample-scorer.hosts: empty, but ingress.enabled is true. Name at least one",
        ),
    ],
)
def test_what_collides_is_named(
    hub: Hub, namespace: str, release: str, chart: str, words: str, message: str
) -> None:
    with pytest.raises(HelmFailed) as refused:
        upgrade(hub, release, chart, namespace, *([f"--set={words}"] if words else []))
    assert message in str(refused.value)


def test_a_release_takes_over_what_another_has_left(hub: Hub, namespace: str) -> None:
    upgrade(hub, "first", SCORERS, namespace)
    with pytest.raises(HelmFailed, match="--take-ownership --set takeOwnership=true"):
        upgrade(hub, "second", SCORERS, namespace, "--take-ownership")
    upgrade(hub, "second", SCORERS, namespace, "--take-ownership", "--set=takeOwnership=true")
    owner = hub.api.get(*DEPLOYMENT, "sample-scorer", namespace)["metadata"]
    assert owner["annotations"]["meta.helm.sh/release-name"] == "second"
    for release in ("first", "second"):
        helm(hub, "uninstall", release, f"--namespace={namespace}")


def test_installing_twice_is_refused(hub: Hub, framework: str) -> None:
    with pytest.raises(HelmFailed, match="cannot re-use a name that is still in use"):
        helm(hub, "install", CORE, str(CHARTS / CORE), f"--namespace={framework}")


def test_a_binding_outlives_its_release_and_serves_the_next(hub: Hub, namespace: str) -> None:
    """Other add-ons and Placements of the namespace use it, too."""
    if hub.api.find("v1", "Namespace", WATCHER):
        helm(hub, "uninstall", WATCHER, f"--namespace={WATCHER}", "--ignore-not-found")
    for release in ("first", "second"):
        upgrade(hub, release, WATCHER, namespace)
        helm(hub, "uninstall", release, f"--namespace={namespace}")
        binding = hub.api.get(*SET_BINDING, "global", namespace)
        assert binding["metadata"]["annotations"]["meta.helm.sh/release-name"] == "first"


def test_an_upgrade_from_0_1_0_names_its_step(hub: Hub, namespace: str, framework: str) -> None:
    """In 0.1.0 the names did not depend on the release."""
    old = "--set=fullnameOverride=dynamic-scoring-optimizer"
    helm(hub, "uninstall", OPTIMIZER, f"--namespace={framework}")
    upgrade(hub, "old", OPTIMIZER, namespace, *ALONE, old)
    with pytest.raises(HelmFailed, match="--set fullnameOverride=dynamic-scoring-optimizer"):
        upgrade(hub, "old", OPTIMIZER, namespace, *ALONE)
    upgrade(hub, "old", OPTIMIZER, namespace, *ALONE, old)
    helm(hub, "uninstall", "old", f"--namespace={namespace}")
    install_chart(hub, CHARTS / OPTIMIZER, framework, values=OPTIMIZER_WITHOUT_RIGHTS)


@pytest.mark.parametrize(
    ("chart", "value", "path"),
    [
        (CORE, "hubSetting.resourceController.image.digest=abc", "/image/digest'"),
        (CORE, "hubSetting.resourceController.replicas=two", "/resourceController/replicas'"),
        (CORE, "spokeSetting.agent.tolerations[0].effect=No", "/agent/tolerations/0/effect'"),
        (CORE, "addOn.deploymentConfig.nodePlacment.a=b", "/addOn/deploymentConfig'"),
        (CORE, "addOn.extraPlacements[0].name=a", "/addOn/extraPlacements/0'"),
        (OPTIMIZER, "ingress.hosts[0]=http://a", "/ingress/hosts/0'"),
        (OPTIMIZER, "global.imageRegistry=https://a", "/global/imageRegistry'"),
        (OPTIMIZER, "image.repository=https://a/b", "/image/repository'"),
        (OPTIMIZER, "service.port=0", "/service/port'"),
        (OPTIMIZER, "extraEnv[0].value=a", "/extraEnv/0'"),
        (OPTIMIZER, "solver.tmpSizeLimit=much", "/solver/tmpSizeLimit'"),
        (WATCHER, "pollIntervalSeconds=0", "/pollIntervalSeconds'"),
        (WATCHER, "metrics.podMonitor.interval=soon", "/metrics/podMonitor/interval'"),
        (WATCHER, "metrics.rules.enabled=true", "/metrics'"),
        (SCORERS, "scorers.sample-scorer.nodePort=-1", "/scorers/sample-scorer/nodePort'"),
        (SCORERS, "scorers.own.hosts[0]=http://a", "/scorers/own/hosts/0'"),
        (SCORERS, "scorers.own.image.digest=abc", "/scorers/own/image/digest'"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(
    hub: Hub, chart: str, value: str, path: str
) -> None:
    with pytest.raises(HelmFailed, match="don't meet the specifications") as refused:
        helm(hub, "install", "wrong", str(CHARTS / chart), f"--set={value}")
    assert path in str(refused.value)
