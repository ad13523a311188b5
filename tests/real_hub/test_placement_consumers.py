"""Kueue and Argo CD act on Placements by our scores, with the very files of their pages.

The API server validates the files by the CRDs of Kueue's and Argo CD's releases, OCM's placement
controller decides, and Argo CD's service account reads the decision. Their controllers do not run.
"""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import yaml

from sample_scorers.static.score import SHIPPED
from tests.eventually import until
from tests.repository import ROOT

from .harness.api import Api, ApiError, parse
from .harness.consumers import DEFINITION, NAMESPACES, install_consumers
from .harness.placements import DECISION, decided, publish_score, withdraw_score

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .harness.api import Object
    from .harness.cluster import ManagedCluster
    from .harness.hub import Hub

TABLES = {table["path"]: table for table in yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))}
CARBON = TABLES["/carbon"]["scoreName"]
KUEUE, ARGOCD = ROOT / "docs/examples/kueue", ROOT / "docs/examples/argocd"
# Where Argo CD's install.yaml lets its ApplicationSet controller run.
GENERATOR = "argocd/argocd-applicationset-controller"
FENCE = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


def objects_of(topic: str) -> list[Object]:
    """The objects of a topic's example files, and the whole objects on its page."""
    files = [path.read_text() for path in sorted((ROOT / "docs/examples" / topic).glob("*.yaml"))]
    fences = [text for text in FENCE.findall(page(topic)) if text.startswith("apiVersion:")]
    return [obj for text in (*files, *fences) for obj in parse(text)]


def page(topic: str) -> str:
    return (ROOT / f"docs/how-to/{topic}.md").read_text()


def file_objects(path: Path) -> dict[str, Object]:
    return {obj["kind"]: obj for obj in parse(path.read_text())}


@pytest.fixture(scope="module")
def consumers(hub: Hub) -> Iterator[None]:
    """The namespaces and CRDs of Kueue and Argo CD, which are deleted afterwards.

    What a Placement selects counts for the Placements of later tests.
    """
    crds = install_consumers(hub)
    yield
    for crd in crds:
        hub.api.delete(*DEFINITION, crd["metadata"]["name"])
    for namespace in NAMESPACES.values():
        hub.api.delete("v1", "Namespace", namespace)


@pytest.fixture
def score(hub: Hub, east: ManagedCluster, west: ManagedCluster) -> Iterator[str]:
    """The name of a score that is deleted from both clusters afterwards."""
    yield CARBON
    withdraw_score(hub, CARBON, east.name, west.name)


def refusal(hub: Hub, obj: Object) -> str:
    """What the API server says against an object, an unknown field included, or nothing."""
    path = hub.api.path(obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace", ""))
    try:
        hub.api.request("POST", path, obj, params={"dryRun": "All", "fieldValidation": "Strict"})
    except ApiError as error:
        return error.message
    return ""


@pytest.mark.usefixtures("consumers")
@pytest.mark.parametrize("topic", NAMESPACES)
def test_every_object_of_a_page_is_valid_to_its_crd(hub: Hub, topic: str) -> None:
    objects = objects_of(topic)
    assert [message for obj in objects if (message := refusal(hub, obj))] == []


@pytest.mark.usefixtures("consumers")
def test_the_queues_are_valid_in_the_version_before_too(hub: Hub) -> None:
    """Kueue serves v1beta2 since 0.15."""
    for obj in parse((KUEUE / "queues.yaml").read_text()):
        assert refusal(hub, {**obj, "apiVersion": "kueue.x-k8s.io/v1beta1"}) == ""


@pytest.mark.usefixtures("consumers")
def test_a_misspelt_field_would_have_been_noticed(hub: Hub) -> None:
    kueue = file_objects(KUEUE / "queues.yaml")["ClusterQueue"]
    argocd = file_objects(ARGOCD / "applicationset.yaml")["ApplicationSet"]
    for obj in (kueue, argocd):
        assert "spec.misspelt" in refusal(hub, {**obj, "spec": {**obj["spec"], "misspelt": 1}})


def test_both_admission_checks_name_what_the_add_on_writes() -> None:
    """OCM's add-on gives the MultiKueueConfig the name of the Placement."""
    objects = objects_of("kueue")
    checks = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == "AdmissionCheck"}
    [queue] = [obj for obj in objects if obj["kind"] == "ClusterQueue"]
    [placement] = [obj for obj in objects if obj["kind"] == "Placement"]
    asked = [rule["name"] for rule in queue["spec"]["admissionChecksStrategy"]["admissionChecks"]]
    assert sorted(asked) == sorted(checks)
    names = {check["spec"]["parameters"]["name"] for check in checks.values()}
    assert names == {placement["metadata"]["name"]}


def like(placement: Object, name: str, **changed: object) -> Object:
    """A Placement under another name, with some fields of its spec changed."""
    metadata = {**placement["metadata"], "name": name}
    return {**placement, "metadata": metadata, "spec": {**placement["spec"], **changed}}


def bind(hub: Hub, namespace: str) -> None:
    """Bind a namespace to all clusters, as the chart of OCM's Kueue add-on does."""
    binding = file_objects(ARGOCD / "placement.yaml")["ManagedClusterSetBinding"]
    hub.apply({**binding, "metadata": {"name": "global", "namespace": namespace}})


@pytest.mark.usefixtures("consumers")
def test_a_queue_keeps_its_cluster_until_another_is_clearly_greener(hub: Hub, score: str) -> None:
    bind(hub, "kueue-system")
    placement = file_objects(KUEUE / "placement.yaml")["Placement"]
    publish_score(hub, score, score, east=81, west=52)
    hub.apply(placement)
    until("the greenest", lambda: decided(hub, "greenest", "kueue-system") == ["east"])

    publish_score(hub, score, score, west=100)
    carbon, steady = placement["spec"]["prioritizerPolicy"]["configurations"]
    policy = {"mode": "Exact", "configurations": [carbon]}
    hub.apply(like(placement, "unsteady", prioritizerPolicy=policy))
    until("OCM to have read it", lambda: decided(hub, "unsteady", "kueue-system") == ["west"])
    # 5 x 81 + 100 for being selected against 5 x 100
    assert steady["scoreCoordinate"]["builtIn"] == "Steady"
    assert decided(hub, "greenest", "kueue-system") == ["east"]

    publish_score(hub, score, score, east=79)
    until("a greener one", lambda: decided(hub, "greenest", "kueue-system") == ["west"])


@pytest.mark.usefixtures("consumers")
def test_a_frozen_decision_follows_no_score_until_it_is_released(hub: Hub, score: str) -> None:
    bind(hub, "kueue-system")
    placement = like(file_objects(KUEUE / "placement.yaml")["Placement"], "frozen")
    key = (placement["apiVersion"], placement["kind"])
    [freeze] = set(re.findall(r"cluster\.\S+-disable(?==true)", page("kueue")))
    publish_score(hub, score, score, east=94, west=10)
    hub.apply(placement)
    until("the greenest", lambda: decided(hub, "frozen", "kueue-system") == ["east"])

    annotated = {"metadata": {"annotations": {freeze: "true"}}}
    hub.api.patch(*key, "frozen", annotated, "kueue-system")
    publish_score(hub, score, score, east=10, west=94)
    hub.apply(like(placement, "follows"))
    until("OCM to have read it", lambda: decided(hub, "follows", "kueue-system") == ["west"])
    assert decided(hub, "frozen", "kueue-system") == ["east"]

    released = {"metadata": {"annotations": {freeze: None}}}
    hub.api.patch(*key, "frozen", released, "kueue-system")
    until("the greener one", lambda: decided(hub, "frozen", "kueue-system") == ["west"])


@pytest.mark.usefixtures("consumers")
def test_decisions_are_in_the_order_of_names_not_of_scores(hub: Hub, score: str) -> None:
    bind(hub, "kueue-system")
    placement = file_objects(KUEUE / "placement.yaml")["Placement"]
    publish_score(hub, score, score, east=52, west=94)
    hub.apply(like(placement, "first"))
    until("the greenest", lambda: decided(hub, "first", "kueue-system") == ["west"])
    hub.apply(like(placement, "first", numberOfClusters=2))
    until("both", lambda: decided(hub, "first", "kueue-system") == ["east", "west"])


@pytest.mark.usefixtures("consumers")
def test_argo_cd_may_read_the_decision_and_finds_the_cluster(hub: Hub, score: str) -> None:
    namespace, name = GENERATOR.split("/")
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    hub.apply({**account, "metadata": {"name": name, "namespace": namespace}})
    with closing(Api.from_kubeconfig(hub.kubeconfig(service_account=GENERATOR))) as argocd:
        with pytest.raises(ApiError, match="cannot list"):
            argocd.list(*DECISION, namespace)
        publish_score(hub, score, score, east=52, west=94)
        for file in ("placement.yaml", "generator.yaml"):
            hub.apply((ARGOCD / file).read_text())
        until("the greenest", lambda: decided(hub, "greenest", namespace) == ["west"])
        assert generated(argocd) == ["west"]


def generated(argocd: Api) -> list[str]:
    """The clusters that the ApplicationSet's generator finds, by the request that it makes."""
    generator = file_objects(ARGOCD / "generator.yaml")["ConfigMap"]["data"]
    applications = file_objects(ARGOCD / "applicationset.yaml")["ApplicationSet"]
    [source] = applications["spec"]["generators"]
    labels = source["clusterDecisionResource"]["labelSelector"]["matchLabels"]
    path = f"/apis/{generator['apiVersion']}/namespaces/argocd/{generator['kind']}"
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    [decision] = argocd.request("GET", path, params={"labelSelector": selector})["items"]
    entries = decision["status"][generator["statusListKey"]]
    return [entry[generator["matchKey"]] for entry in entries]
