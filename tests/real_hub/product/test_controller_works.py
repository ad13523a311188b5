"""What the controller's account may write to managed clusters: its own ManifestWorks alone."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pytest

from dsf.hub.snapshot.summaries_work import summaries_work
from tests.eventually import until

from ..harness.api import MERGE, Api, ApiError
from .conftest import AGENT_NAMESPACE, WORK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..harness.api import Object
    from ..harness.cluster import ManagedCluster
    from ..harness.hub import Hub
    from .parts import Part

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


def add_a_role(change: Object) -> Callable[[Object], None]:
    """Adds the Role of the agent's Secrets, with one change; without one it may be written."""

    def add(work: Object) -> None:
        [_, role, _] = summaries_work("east", "[]", AGENT_NAMESPACE, ["token"])["spec"]["workload"][
            "manifests"
        ]
        [whole] = role["rules"]
        rule = {**whole, **change.get("rule", {})}
        rules = [{key: value for key, value in rule.items() if value is not None}]
        metadata = {**role["metadata"], **change.get("metadata", {})}
        kind = change.get("kind", role["kind"])
        manifest = {**role, "kind": kind, "metadata": metadata, "rules": rules}
        work["spec"]["workload"]["manifests"].append(manifest)

    return add


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
        (add_a_role({"rule": {"resourceNames": []}}), "gets Secrets by name"),
        (add_a_role({"rule": {"resourceNames": None}}), "gets Secrets by name"),
        (add_a_role({"rule": {"verbs": ["get", "list"]}}), "gets Secrets by name"),
        (add_a_role({"rule": {"resources": ["secrets", "pods"]}}), "gets Secrets by name"),
        (add_a_role({"rule": {"apiGroups": ["*"]}}), "gets Secrets by name"),
        (add_a_role({"metadata": {"name": "dynamic-scoring-agent"}}), "gets Secrets by name"),
        (add_a_role({"metadata": {"namespace": "kube-system"}}), "gets Secrets by name"),
        (add_a_role({"kind": "ClusterRole"}), "gets Secrets by name"),
        (ask_for_feedback, "the controller sets no spec.manifestConfigs"),
        (rename, "the controller writes the ManifestWorks"),
        (rename_by_the_server, "the controller writes the ManifestWorks"),
    ],
)
def test_the_controllers_account_deploys_nothing_else(
    hub: Hub, east: ManagedCluster, as_controller: Api, change: Callable[[Object], None], said: str
) -> None:
    path = hub.api.path(*WORK[:2], east.name)
    own = summaries_work(east.name, "[]", AGENT_NAMESPACE)
    secrets = deepcopy(own)
    secrets["metadata"]["name"] = SECRETS_WORK
    secrets["spec"]["workload"]["manifests"] = [secret("Opaque")]
    add_a_role({})(secrets)
    works = {work["metadata"]["name"]: work for work in hub.api.list(*WORK[:2], east.name)}
    if WORK[2] not in works:
        assert as_controller.request("POST", path, own, params=DRY_RUN)
    assert as_controller.request("POST", path, secrets, params=DRY_RUN) or SECRETS_WORK in works

    changed = deepcopy(own)
    change(changed)
    assert hub.api.request("POST", path, renamed(changed), params=DRY_RUN)
    # The API server obeys a policy somewhat later than it has accepted it.
    refused = until("a refusal", lambda: refusal(as_controller, path, changed))
    assert (refused.status, said in refused.message) == (403, True)
    assert "ValidatingAdmissionPolicy" in refused.message


def refusal(api: Api, path: str, work: Object) -> ApiError | None:
    """Why the API server does not accept a work; None if it does."""
    try:
        api.request("POST", path, work, params=DRY_RUN)
    except ApiError as error:
        return error
    return None


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


@pytest.fixture
def without_controller(controller: Part) -> Iterator[None]:
    """While no controller runs: it would put a work right at once that somebody else changed."""
    controller.stop()
    yield
    controller.start()


@pytest.mark.usefixtures("without_controller")
def test_a_work_that_somebody_else_configured_may_be_written(
    hub: Hub, east: ManagedCluster, as_controller: Api
) -> None:
    """The controller still brings summaries to a cluster where a person configured its work."""
    path = hub.api.path(*WORK[:2], east.name, WORK[2])
    made = hub.api.find(*WORK, east.name) is None
    if made:
        own = summaries_work(east.name, "[]", AGENT_NAMESPACE)
        hub.api.request("POST", hub.api.path(*WORK[:2], east.name), own)
    hub.api.request("PATCH", path, {"spec": {"manifestConfigs": FEEDBACK}}, content_type=MERGE)
    news = {"spec": summaries_work(east.name, "[ ]", AGENT_NAMESPACE)["spec"]}
    answer = as_controller.request("PATCH", path, news, content_type=MERGE, params=DRY_RUN)
    assert answer["spec"]["manifestConfigs"][0]["resourceIdentifier"]["resource"] == "secrets"
    hub.api.request("PATCH", path, {"spec": {"manifestConfigs": None}}, content_type=MERGE)
    if made:
        hub.api.delete(*WORK, east.name)


def renamed(work: Object) -> Object:
    """The work under a name that nothing has: administrators may write it."""
    return {**work, "metadata": {**work["metadata"], "name": "of-an-administrator"}}
