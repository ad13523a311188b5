"""Argo CD's ApplicationSet controller follows Placements by our scores, and those of our plans.

It runs with an administrator's rights; that its own account may read decisions is tested beside
the hub. Nothing deploys the Applications: the application controller does not run.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import yaml

from optimizer.plan.plan import Plan
from optimizer.wire.request import OptimizeRequest, RollbackRequest
from sample_scorers.static.score import SHIPPED
from tests.eventually import until
from tests.real_hub.build import ARGO_CD
from tests.real_hub.harness.api import parse
from tests.real_hub.harness.cluster import CLUSTER_GROUP
from tests.real_hub.harness.control_plane import ADMINISTRATORS
from tests.real_hub.harness.ocm import install, start_controller
from tests.real_hub.harness.placements import OF_PLACEMENT, decided, publish_score
from tests.real_hub.harness.ports import LOOPBACK
from tests.real_hub.test_placement_plans import MANIFEST, apply
from tests.repository import ROOT

from .conftest import built
from .pages import type_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real_hub.guides.terminal import Terminal
    from tests.real_hub.harness.hub import Hub

    from .conftest import MultiKueue

ARGO = "argoproj.io/v1alpha1"
NAMESPACE = "argocd"
PROCESS = "argocd-applicationset-controller"
POLL_SECONDS = 2
TABLES = {table["path"]: table for table in yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))}
CARBON = TABLES["/carbon"]["scoreName"]


@pytest.fixture
def applications(fleet: MultiKueue) -> Iterator[Hub]:
    """Argo CD as the page assumes it: its CRDs, what it knows of clusters, and its controller."""
    hub, argocd = fleet.hub, built(ARGO_CD)
    hub.namespace(NAMESPACE)
    files = (argocd.manifests / "argo-cd").rglob("*.yaml")
    install(hub.api, [crd for path in files for crd in parse(path.read_text())])
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
    kubeconfig = hub.kubeconfig(user=PROCESS, group=ADMINISTRATORS, namespace=NAMESPACE)
    addresses = (f"{LOOPBACK}:{hub.ports.free()}" for _ in range(3))
    flags = [
        f"--{name}-addr={address}"
        for name, address in zip(("metrics", "probe", "webhook"), addresses, strict=True)
    ]
    hub.processes.start(
        PROCESS,
        [argocd.program(PROCESS), f"--kubeconfig={kubeconfig}", f"--namespace={NAMESPACE}", *flags],
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


def follow(hub: Hub, placement: str) -> None:
    """Let the ApplicationSet of the page follow a Placement, and look often."""
    [file] = parse((ROOT / "docs/examples/argocd/applicationset.yaml").read_text())
    decisions = file["spec"]["generators"][0]["clusterDecisionResource"]
    decisions["requeueAfterSeconds"] = POLL_SECONDS
    decisions["labelSelector"]["matchLabels"][OF_PLACEMENT] = placement
    spec = {"spec": {"generators": file["spec"]["generators"]}}
    hub.api.patch(ARGO, "ApplicationSet", file["metadata"]["name"], spec, NAMESPACE)


def test_the_page_works_as_typed_and_an_application_follows_decisions_and_plans(
    applications: Hub, terminal: Terminal
) -> None:
    hub = applications
    publish_score(hub, CARBON, CARBON, brown=10, green=90, grey=50)
    shows = {"get placementdecisions": "green", "get applications": "guestbook-green"}
    type_page(terminal, "argocd.md", shows, {})
    assert destinations(hub) == {"guestbook-green": "green"}

    follow(hub, "greenest")
    publish_score(hub, CARBON, CARBON, green=20, grey=99)
    until("a greener one", lambda: destinations(hub) == {"guestbook-grey": "grey"})
    publish_score(hub, CARBON, CARBON, green=99, grey=20)
    until("the one before", lambda: destinations(hub) == {"guestbook-green": "green"})
    with lost(hub, "green"):
        until("another one", lambda: destinations(hub) == {"guestbook-grey": "grey"})

    hub.apply(MANIFEST.format(name="app", namespace=NAMESPACE))
    planned(hub, brown=10, green=20, grey=80)
    # Argo CD looks again after three minutes if there is no decision at all.
    until("a decision", lambda: decided(hub, "app", NAMESPACE))
    follow(hub, "app")
    until("that of the plan", lambda: destinations(hub) == {"guestbook-grey": "grey"})
    planned(hub, brown=10, green=80, grey=20)
    until("that of the next plan", lambda: destinations(hub) == {"guestbook-green": "green"})
    back = RollbackRequest(namespace=NAMESPACE)
    assert isinstance(apply(hub, lambda service: service.plan_rollback(back)), Plan)
    until("that of the rollback", lambda: destinations(hub) == {"guestbook-grey": "grey"})
    with lost(hub, "grey"):
        planned(hub, brown=10, green=20, grey=80)
        until(
            "that of a plan without it", lambda: destinations(hub) == {"guestbook-green": "green"}
        )


def planned(hub: Hub, **values: int) -> None:
    """Apply a plan of the optimizer for these scores."""
    publish_score(hub, "worth", "app;all", **values)
    request = OptimizeRequest.model_validate(
        {
            "namespace": NAMESPACE,
            "clusters": [{"name": name, "allocatable": "gpu/all=2"} for name in values],
            "targetWorkloads": [{"name": "app"}],
            "preference": {"addonPlacementScore": "worth"},
        }
    )
    assert isinstance(apply(hub, lambda service: service.plan(request)), Plan)


@contextmanager
def lost(hub: Hub, name: str) -> Iterator[None]:
    """Give a cluster the taint of one that OCM has lost; OCM does not take it back meanwhile."""
    taint = {
        "key": "cluster.open-cluster-management.io/unavailable",
        "effect": "NoSelect",
        "timeAdded": "2026-11-20T00:00:00Z",
    }
    hub.processes.stop("hub-registration")
    hub.api.patch(CLUSTER_GROUP, "ManagedCluster", name, {"spec": {"taints": [taint]}})
    try:
        yield
    finally:
        hub.api.patch(CLUSTER_GROUP, "ManagedCluster", name, {"spec": {"taints": None}})
        start_controller(hub, "registration")
