"""Uninstalling ends, removes the add-on from the clusters and keeps the users' objects."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.dsf.api.crd.crd_objects import scorer
from tests.eventually import until

from .harness.helm import CHARTS, HelmFailed, helm, install_chart
from .harness.pods import run_to_end
from .product.conftest import ADDON, CONFIG, SCORE, WORK
from .product.parts import DSF, run_part
from .product.rights import Right, granted, used

if TYPE_CHECKING:
    from .harness.api import Object
    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

NAME = "dynamic-scoring-framework"
AGENT = ("apps/v1", "Deployment", "dynamic-scoring-agent", "dynamic-scoring")
UNINSTALL, OPTIMIZER = "dynamic-scoring-uninstall", "dynamic-scoring-optimizer"
OURS = {"app.kubernetes.io/managed-by": NAME}
CRD = (
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "dynamicscorers.dynamic-scoring.open-cluster-management.io",
)
LEASE_CREATED = Right("coordination.k8s.io", "leases", "create")
"""Where the controller never led."""
SCORER = ("dynamic-scoring.open-cluster-management.io/v1alpha1", "DynamicScorer", "kept")


def test_the_addon_goes_and_the_scorers_stay_for_the_next_install(
    hub: Hub, clusters: list[ManagedCluster], framework: str
) -> None:
    hub.apply({**scorer(), "metadata": {"name": "kept", "namespace": framework}})
    wait_deployed(clusters)

    helm(hub, "uninstall", NAME, f"--namespace={framework}", "--no-hooks")
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


def test_uninstalling_takes_the_scorers_off_the_clusters_and_nothing_hangs_afterwards(
    hub: Hub, clusters: list[ManagedCluster], framework: str
) -> None:
    wait_deployed(clusters)
    hub.apply(
        {
            "apiVersion": CONFIG[0],
            "kind": CONFIG[1],
            "metadata": {"name": CONFIG[2], "namespace": framework},
        }
    )
    controller = run_part(hub, framework, "dynamic-scoring-controller")
    for cluster in clusters:
        until("the work", lambda place=cluster.name: hub.api.find(*WORK, place))  # type: ignore[misc]
    until("our finalizer", lambda: hub.api.get(*CONFIG, framework)["metadata"].get("finalizers"))
    score = {"apiVersion": SCORE[0], "kind": SCORE[1], "metadata": {"name": "left", "labels": OURS}}
    hub.apply({**score, "metadata": {**score["metadata"], "namespace": "east"}})

    # Its Pods are gone with its Deployment, but it had no time to release its Lease.
    controller.kill()
    hooks = helm(hub, "get", "hooks", NAME, f"--namespace={framework}")
    with ThreadPoolExecutor(max_workers=1) as pool:
        ended = pool.submit(helm, hub, "uninstall", NAME, f"--namespace={framework}")
        pod = until("the Pod of the Job", lambda: pod_of(hub, framework) or ended.done())
        assert isinstance(pod, dict), ended.result()
        run_to_end(hub, pod, {}, DSF)
        ended.result()

    for cluster in clusters:
        hub.api.wait_gone(*WORK, cluster.name)
        cluster.api.wait_gone("v1", "ConfigMap", CONFIG[2], "dynamic-scoring")
        cluster.api.wait_gone(*AGENT)
    assert hub.api.list(*SCORE, labels="app.kubernetes.io/managed-by=" + NAME) == []
    roles = [obj for obj in yaml.safe_load_all(hooks) if obj and "rules" in obj]
    events = [*hub.audited(f"system:serviceaccount:{framework}:{UNINSTALL}")]
    assert granted(roles) - {LEASE_CREATED} == used(events) - {LEASE_CREATED}
    assert [event for event in events if event["responseStatus"]["code"] == 403] == []
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        assert hub.api.find("rbac.authorization.k8s.io/v1", kind, UNINSTALL) is None

    hub.api.delete(*CONFIG, framework)
    hub.api.wait_gone(*CONFIG, framework)
    install_chart(hub, CHARTS / NAME, framework)
    wait_deployed(clusters)


def pod_of(hub: Hub, namespace: str) -> Object | None:
    pods = hub.api.list("v1", "Pod", namespace, labels=f"app={UNINSTALL}")
    return pods[0] if pods else None


def test_crds_of_another_version_and_a_namespace_that_moves_are_refused(
    hub: Hub, framework: str
) -> None:
    old = hub.api.get(*CRD)
    version = old["spec"]["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    kept = spec.pop("context")
    hub.api.patch(*CRD, {"spec": {"versions": [version]}})
    refused(hub, framework, "crds.install=false", "lacks .spec.context")
    spec["context"] = kept
    hub.api.patch(*CRD, {"spec": {"versions": [version]}})
    refused(
        hub, framework, "hubSetting.namespace=default", f"--set hubSetting.namespace={framework}"
    )
    refused(hub, framework, "hubSetting.namespace=gone", "the namespace gone does not exist")
    path = "hubSetting.resourceController.manifestNamespaces"
    refused(hub, framework, f"{path}={{gone}}", f"{path}: the namespace gone does not exist")


def refused(hub: Hub, namespace: str, value: str, said: str) -> None:
    with pytest.raises(HelmFailed) as failed:
        helm(hub, "upgrade", NAME, str(CHARTS / NAME), f"--namespace={namespace}", f"--set={value}")
    assert said in str(failed.value)


def test_a_first_install_that_failed_is_tried_again(hub: Hub, namespace: str) -> None:
    """Somebody else's account stands in the way, then no more."""
    account = ("v1", "ServiceAccount", "dynamic-scoring-optimizer")
    hub.apply(
        {
            "apiVersion": account[0],
            "kind": account[1],
            "metadata": {"name": account[2], "namespace": namespace},
        }
    )
    words = ("upgrade", "--install", "retried", str(CHARTS / OPTIMIZER), f"--namespace={namespace}")
    words += ("--set=serviceAccount.name=dynamic-scoring-optimizer", "--set-json=namespaces=[]")
    words += ("--set=crds.install=false",)
    with pytest.raises(HelmFailed, match="exists and cannot be imported"):
        helm(hub, *words)
    hub.api.delete(*account, namespace)
    helm(hub, *words)
    helm(hub, "uninstall", "retried", f"--namespace={namespace}")


def wait_deployed(clusters: list[ManagedCluster]) -> None:
    until(
        "the agent on every cluster", lambda: all(cluster.api.find(*AGENT) for cluster in clusters)
    )
