"""A real kube-apiserver validates and defaults by our CRDs as intended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dsf.api.crd.definitions import crds
from tests.dsf.api.crd.crd_cases import ACCEPTED, REFUSED
from tests.dsf.api.crd.crd_objects import (
    ADVICE_FOR_THE_ARTICLE,
    STORED,
    SYNCED,
    config,
    defaulted,
    existing,
    ids,
    inventory,
    keeps,
    of_the_article,
    optimization,
    plan,
    scorer,
    with_status,
)

from .harness.api import MERGE, ApiError, condition_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .harness.api import Object
    from .harness.hub import Hub

DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
EXISTING = tuple(existing())
DEFAULTED = tuple(defaulted())
# The apiserver checks as always, and stores nothing.
DRY_RUN = {"dryRun": "All"}

pytestmark = pytest.mark.usefixtures("framework", "placement_plans")


@pytest.fixture(scope="module")
def place(hub: Hub, placement_plans: None) -> str:
    """A namespace with an object of each kind that can be given statuses."""
    namespace = hub.namespace("crds")
    hub.apply(named(scorer(), namespace, "stored"))
    hub.apply(named(optimization("stored"), namespace))
    hub.apply(named(plan("stored"), namespace))
    hub.apply(named(inventory(), namespace, "stored"))
    return namespace


def named(obj: Object, namespace: str, name: str = "") -> Object:
    """An object in a namespace, under its own name or another."""
    name = name or obj["metadata"]["name"]
    return {**obj, "metadata": {"name": name, "namespace": namespace}}


def write(hub: Hub, obj: Object, place: str) -> Object:
    """Create an object, or give a stored one a status, and return what would be stored."""
    if "status" in obj:
        stored = "stored-1" if obj["kind"] == "PlacementPlan" else "stored"
        path = hub.api.path(obj["apiVersion"], obj["kind"], place, stored, "status")
        status = {"status": obj["status"]}
        return hub.api.request("PATCH", path, status, content_type=MERGE, params=DRY_RUN)
    path = hub.api.path(obj["apiVersion"], obj["kind"], place)
    return hub.api.request("POST", path, named(obj, place), params=DRY_RUN)


@pytest.mark.parametrize("crd", crds(), ids=lambda crd: str(crd["spec"]["names"]["kind"]))
def test_a_crd_is_established_and_structural(hub: Hub, crd: Object) -> None:
    name = crd["metadata"]["name"]
    served = hub.api.wait_condition(*DEFINITION, name, "Established")
    assert condition_of(served, "NamesAccepted")["status"] == "True"
    assert condition_of(served, "NonStructuralSchema") == {}
    assert condition_of(served, "KubernetesAPIApprovalPolicyConformant") == {}


@pytest.mark.parametrize("crd", crds(), ids=lambda crd: str(crd["spec"]["names"]["kind"]))
def test_the_server_stores_the_schema_as_it_is(hub: Hub, crd: Object) -> None:
    served = hub.api.get(*DEFINITION, crd["metadata"]["name"])
    [ours], [stored] = crd["spec"]["versions"], served["spec"]["versions"]
    assert stored["schema"] == ours["schema"]


@pytest.mark.parametrize(("_", "obj"), ACCEPTED, ids=ids(ACCEPTED))
def test_it_is_accepted(hub: Hub, place: str, _: str, obj: Object) -> None:
    assert write(hub, obj, place)


@pytest.mark.parametrize(("_", "obj"), EXISTING, ids=ids(EXISTING))
def test_an_existing_manifest_is_accepted(hub: Hub, place: str, _: str, obj: Object) -> None:
    stored = write(hub, obj, place)
    assert keeps(stored.get("spec") or {}, obj.get("spec") or {})


@pytest.mark.parametrize("checking", ["Ignore", "Warn", "Strict"])
def test_the_object_of_the_article_is_refused_with_all_that_is_to_be_changed(
    hub: Hub, place: str, checking: str
) -> None:
    """kubectl asks for Strict: a field that the schema lacked would be refused without advice."""
    obj = named(of_the_article(), place)
    path = hub.api.path(obj["apiVersion"], obj["kind"], place)
    with pytest.raises(ApiError) as refused:
        hub.api.request("POST", path, obj, params={**DRY_RUN, "fieldValidation": checking})
    said = str(refused.value)
    assert [advice for advice in ADVICE_FOR_THE_ARTICLE if advice not in said] == []


@pytest.mark.parametrize(("_", "obj", "message"), REFUSED, ids=ids(REFUSED))
def test_it_is_refused(hub: Hub, place: str, _: str, obj: Object, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        write(hub, obj, place)
    assert (refused.value.status, refused.value.reason) == (422, "Invalid")
    assert message in refused.value.message


@pytest.mark.parametrize(("_", "obj", "spec"), DEFAULTED, ids=ids(DEFAULTED))
def test_it_is_stored_with_defaults_and_without_what_is_unknown(
    hub: Hub, place: str, _: str, obj: Object, spec: Object
) -> None:
    assert write(hub, obj, place)["spec"] == spec


def test_the_last_synced_config_is_kept_whole(hub: Hub, place: str) -> None:
    stored = write(hub, with_status({"lastSyncedConfig": SYNCED, "surprise": 1}), place)
    assert stored["status"] == {"lastSyncedConfig": STORED}


def test_a_status_is_written_apart(hub: Hub, namespace: str) -> None:
    """A create or update ignores the status; a status write ignores the rest."""
    whole = named(with_status({"healthStatus": "Active"}), namespace)
    created = hub.api.create(whole)
    assert "status" not in created
    body = {"status": {"healthStatus": "Inactive"}, "spec": {"description": "other"}}
    key = (whole["apiVersion"], whole["kind"], "scorer")
    patched = hub.api.patch(*key, body, namespace, subresource="status")
    assert (patched["status"], patched["spec"]) == ({"healthStatus": "Inactive"}, created["spec"])
    assert patched["metadata"]["generation"] == 1


def test_a_table_shows_our_columns(hub: Hub, namespace: str) -> None:
    hub.apply(named(scorer(), namespace))
    status = {
        "healthStatus": "Active",
        "scoreName": "sample_my_score",
        "clusters": {"desired": 3, "distributed": 3, "scoring": 2, "failing": 1},
        "conditions": [ready("True")],
    }
    write_status(hub, scorer(), namespace, status)
    hub.apply(named(config(), namespace))
    write_status(
        hub,
        config(),
        namespace,
        {"scorers": 3, "clusters": 2, "desiredClusters": 4, "conditions": [ready("False")]},
    )

    assert list(cells(hub, "DynamicScorer", namespace)) == [
        ("Name", "string", "scorer"),
        ("Health", "string", "Active"),
        ("Mode", "string", "Full"),
        ("Score", "string", "sample_my_score"),
        ("Scoring", "integer", 2),
        ("Failing", "integer", 1),
        ("Ready", "string", "True"),
        ("Reason", "string", "Tried"),
        ("Direction", "string", None),
        ("Unit", "string", None),
        ("Desired", "integer", 3),
        ("Config URL", "string", "http://scorer.example/config"),
    ]
    assert list(cells(hub, "DynamicScoringConfig", namespace)) == [
        ("Name", "string", "dynamic-scoring-config"),
        ("Scorers", "integer", 3),
        ("Clusters", "integer", 2),
        ("Desired", "integer", 4),
        ("Ready", "string", "False"),
        ("Reason", "string", "Tried"),
    ]

    whole = plan(requestedBy="alice", gap=0.25, rollback={"fromRevision": 3, "toRevision": 2})
    hub.apply(named(whole, namespace))
    write_status(hub, whole, namespace, {"phase": "Applied"})
    assert list(cells(hub, "PlacementPlan", namespace)) == [
        ("Name", "string", "default-1"),
        ("Optimization", "string", "default"),
        ("Revision", "integer", 1),
        ("Phase", "string", "Applied"),
        ("Objective", "number", 115),
        ("Gap", "number", 0.25),
        ("Requested by", "string", "alice"),
        ("Digest", "string", "a" * 64),
        ("Restores", "integer", 2),
    ]


def test_the_spec_of_a_plan_is_never_changed(hub: Hub, namespace: str) -> None:
    kept = named(plan(content="H4sI"), namespace)
    hub.apply(kept)
    key = (kept["apiVersion"], kept["kind"], kept["metadata"]["name"])
    for changed in ({"objective": 116}, {"content": "H4sJ"}, {"content": None}, {"gap": 0}):
        with pytest.raises(ApiError) as refused:
            hub.api.patch(*key, {"spec": changed}, namespace)
        assert "its spec can't be changed" in refused.value.message
    assert hub.api.get(*key, namespace)["spec"] == kept["spec"]


def ready(status: str) -> Object:
    return {
        "type": "Ready",
        "status": status,
        "reason": "Tried",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }


def write_status(hub: Hub, obj: Object, namespace: str, status: Object) -> None:
    key = (obj["apiVersion"], obj["kind"], obj["metadata"]["name"])
    hub.api.patch(*key, {"status": status}, namespace, subresource="status")


def cells(hub: Hub, kind: str, namespace: str) -> Iterator[tuple[str, str, object]]:
    """The one row of a table: each column's name, type and value; not the age."""
    path = hub.api.path("dynamic-scoring.open-cluster-management.io/v1alpha1", kind, namespace)
    table = hub.api.request("GET", path, accept=TABLE)
    [row] = table["rows"]
    for column, cell in zip(table["columnDefinitions"], row["cells"], strict=True):
        if column["name"] != "Age":
            yield column["name"], column["type"], cell
