"""What the controller's account may write to managed clusters: its own ManifestWorks alone."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from dsf.hub.snapshot.summaries_work import summaries_work

from ..harness.api import MERGE, Api, ApiError
from .conftest import AGENT_NAMESPACE, WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub

SECRETS_WORK = "dynamic-scoring-secrets-manifestwork"
DRY_RUN = {"dryRun": "All"}
FEEDBACK = [
    {
        "resourceIdentifier": {
            "group": "",
            "resource": "secrets",
            "name": "dynamic-scoring-framework-hub-kubeconfig",
            "namespace": AGENT_NAMESPACE,
        },
        "updateStrategy": {"type": "ReadOnly"},
    }
]


@pytest.fixture
def as_controller(hub: Hub, framework: str) -> Iterator[Api]:
    """The hub, as whoever has the controller's token may use it."""
    account = f"{framework}/dynamic-scoring-controller"
    api = Api.from_kubeconfig(hub.kubeconfig(service_account=account))
    yield api
    api.close()


def add_pod(work: Object) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
    work["spec"]["workload"]["manifests"].append(pod)


def add_another_config_map(work: Object) -> None:
    work["spec"]["workload"]["manifests"][1]["metadata"]["namespace"] = "kube-system"


def label_the_namespace(work: Object) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    work["spec"]["workload"]["manifests"][0]["metadata"]["labels"] = labels


def add_a_token(work: Object) -> None:
    work["spec"]["workload"]["manifests"].append(secret("kubernetes.io/service-account-token"))


def ask_for_feedback(work: Object) -> None:
    work["spec"]["manifestConfigs"] = FEEDBACK


def rename(work: Object) -> None:
    work["metadata"]["name"] = "other"


def rename_by_the_server(work: Object) -> None:
    work["metadata"]["generateName"] = f"{work['metadata'].pop('name')}-"


def secret(kind: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": kind,
        "metadata": {"name": "token", "namespace": AGENT_NAMESPACE},
        "data": {},
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (add_pod, "carries the namespace dynamic-scoring"),
        (add_another_config_map, "carries the namespace dynamic-scoring"),
        (label_the_namespace, "carries the namespace dynamic-scoring"),
        (add_a_token, "its Opaque Secrets only"),
        (ask_for_feedback, "the controller sets no spec.manifestConfigs"),
        (rename, "the controller writes the ManifestWorks"),
        (rename_by_the_server, "the controller writes the ManifestWorks"),
    ],
)
def test_the_controllers_account_deploys_nothing_else(
    hub: Hub,
    east: ManagedCluster,
    as_controller: Api,
    change: Callable[[Object], None],
    said: str,
) -> None:
    path = hub.api.path(*WORK[:2], east.name)
    own = summaries_work(east.name, "[]", AGENT_NAMESPACE)
    secrets = deepcopy(own)
    secrets["metadata"]["name"] = SECRETS_WORK
    secrets["spec"]["workload"]["manifests"] = [secret("Opaque")]
    works = {work["metadata"]["name"]: work for work in hub.api.list(*WORK[:2], east.name)}
    if WORK[2] not in works:
        assert as_controller.request("POST", path, own, params=DRY_RUN)
    assert as_controller.request("POST", path, secrets, params=DRY_RUN) or SECRETS_WORK in works

    changed = deepcopy(own)
    change(changed)
    assert hub.api.request("POST", path, renamed(changed), params=DRY_RUN)
    with pytest.raises(ApiError, match="ValidatingAdmissionPolicy") as refused:
        as_controller.request("POST", path, changed, params=DRY_RUN)
    assert (refused.value.status, said in refused.value.message) == (403, True)


def test_the_controllers_account_sees_no_other_works(
    hub: Hub, east: ManagedCluster, as_controller: Api
) -> None:
    for kind, name in ((WORK[:2], WORK[2]), (WORK[:2], SECRETS_WORK)):
        everywhere = hub.api.path(*kind)
        assert as_controller.request(
            "GET", everywhere, params={"fieldSelector": f"metadata.name={name}"}
        )
    other = {"fieldSelector": "metadata.name=other"}
    for params in ({}, other, {"watch": "true", "timeoutSeconds": "1", **other}):
        with pytest.raises(ApiError, match=r"cannot (list|watch) resource"):
            as_controller.request("GET", hub.api.path(*WORK[:2]), params=params)


def test_feedback_that_somebody_else_set_is_kept(
    hub: Hub, east: ManagedCluster, as_controller: Api
) -> None:
    """The controller still brings summaries to a cluster where a person configured its work."""
    hub.api.delete(*WORK, east.name)
    hub.api.wait_gone(*WORK, east.name)
    work = summaries_work(east.name, "[]", AGENT_NAMESPACE)
    ask_for_feedback(work)
    hub.api.request("POST", hub.api.path(*WORK[:2], east.name), work)
    path = hub.api.path(*WORK[:2], east.name, WORK[2])
    news = {"spec": summaries_work(east.name, "[ ]", AGENT_NAMESPACE)["spec"]}
    assert as_controller.request("PATCH", path, news, content_type=MERGE, params=DRY_RUN)
    hub.api.delete(*WORK, east.name)


def renamed(work: Object) -> Object:
    """The work under a name that nothing has: administrators may write it."""
    return {**work, "metadata": {**work["metadata"], "name": "of-an-administrator"}}
