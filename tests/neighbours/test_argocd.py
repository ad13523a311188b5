"""Argo CD's ApplicationSet controller follows the decisions of Placements by our scores.

It runs with an administrator's rights; that its own account may read decisions is tested beside
the hub. Nothing deploys the Applications: the application controller does not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from sample_scorers.static.score import SHIPPED
from tests.eventually import until
from tests.real_hub.harness.api import parse
from tests.real_hub.harness.control_plane import ADMINISTRATORS
from tests.real_hub.harness.placements import publish_score
from tests.real_hub.harness.ports import LOOPBACK
from tests.repository import ROOT

from .kueue_manager import DEFINITION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real_hub.build import Assets
    from tests.real_hub.harness.hub import Hub

    from .conftest import MultiKueue

FILES = ROOT / "docs/examples/argocd"
ARGO = "argoproj.io/v1alpha1"
NAMESPACE = "argocd"
PROCESS = "argocd-applicationset-controller"
POLL_SECONDS = 2
TABLES = {table["path"]: table for table in yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))}
CARBON = TABLES["/carbon"]["scoreName"]


@pytest.fixture
def applications(fleet: MultiKueue, neighbours: Assets) -> Iterator[Hub]:
    """The files of the how-to page on the hub, with the controller that reads them."""
    hub = fleet.hub
    hub.namespace(NAMESPACE)
    for path in (neighbours.manifests / "argo-cd").rglob("*.yaml"):
        for crd in parse(path.read_text()):
            hub.apply(crd)
            hub.api.wait_condition(*DEFINITION, crd["metadata"]["name"], "Established")
    for name, worker in fleet.workers.items():
        metadata = {
            "name": f"cluster-{name}",
            "namespace": NAMESPACE,
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        }
        data = {"name": name, "server": worker.server, "config": "{}"}
        hub.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
    # Argo CD's API server makes this project when it starts.
    project = {
        "apiVersion": ARGO,
        "kind": "AppProject",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]},
    }
    hub.apply(project)
    for file in ("placement.yaml", "generator.yaml", "applicationset.yaml"):
        for obj in parse((FILES / file).read_text()):
            if obj["kind"] == "ApplicationSet":
                [generator] = obj["spec"]["generators"]
                generator["clusterDecisionResource"]["requeueAfterSeconds"] = POLL_SECONDS
            hub.apply(obj)
    kubeconfig = hub.kubeconfig(user=PROCESS, group=ADMINISTRATORS, namespace=NAMESPACE)
    addresses = (f"{LOOPBACK}:{hub.ports.free()}" for _ in range(3))
    flags = [
        f"--{name}-addr={address}"
        for name, address in zip(("metrics", "probe", "webhook"), addresses, strict=True)
    ]
    hub.processes.start(
        PROCESS,
        [
            neighbours.program(PROCESS),
            f"--kubeconfig={kubeconfig}",
            f"--namespace={NAMESPACE}",
            *flags,
        ],
        env={"KUBECONFIG": str(kubeconfig)},
    )
    yield hub
    hub.processes.stop(PROCESS)


def destinations(hub: Hub) -> dict[str, str]:
    """The cluster of each Application; one that is deleted counts as undeployed."""
    found = dict[str, str]()
    for app in hub.api.list(ARGO, "Application", NAMESPACE):
        name = app["metadata"]["name"]
        if app["metadata"].get("deletionTimestamp"):
            body = {"metadata": {"finalizers": None}}
            hub.api.patch(ARGO, "Application", name, body, NAMESPACE)
        else:
            found[name] = app["spec"]["destination"]["name"]
    return found


def test_an_application_follows_the_decision_and_a_lost_cluster(applications: Hub) -> None:
    hub = applications
    publish_score(hub, CARBON, CARBON, brown=10, green=90, grey=50)
    until("the greenest", lambda: destinations(hub) == {"guestbook-green": "green"})
    publish_score(hub, CARBON, CARBON, green=20, grey=99)
    until("a greener one", lambda: destinations(hub) == {"guestbook-grey": "grey"})
    publish_score(hub, CARBON, CARBON, green=99, grey=20)
    until("the one before", lambda: destinations(hub) == {"guestbook-green": "green"})
    taint = {
        "key": "cluster.open-cluster-management.io/unavailable",
        "effect": "NoSelect",
        "timeAdded": "2026-11-20T00:00:00Z",
    }
    cluster = ("cluster.open-cluster-management.io/v1", "ManagedCluster", "green")
    hub.processes.stop("hub-registration")
    try:
        hub.api.patch(*cluster, {"spec": {"taints": [taint]}})
        until(
            "another one", lambda: "green" not in destinations(hub).values() and destinations(hub)
        )
    finally:
        hub.api.patch(*cluster, {"spec": {"taints": None}})
