"""The hub itself: it runs, authenticates, authorises, and audits requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.eventually import until

from .build import kubernetes_version
from .harness.api import Api, ApiError

if TYPE_CHECKING:
    from .harness.api import Object
    from .harness.hub import Hub

CLUSTER = "cluster.open-cluster-management.io"
SETS = "ManagedClusterSet"
READER = """
apiVersion: v1
kind: ServiceAccount
metadata: {{name: reader, namespace: {namespace}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: reader, namespace: {namespace}}}
rules: [{{apiGroups: [""], resources: [configmaps], verbs: [list]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: reader, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}}
subjects: [{{kind: ServiceAccount, name: reader, namespace: {namespace}}}]
"""


def test_every_controller_runs_and_registration_has_made_its_cluster_sets(hub: Hub) -> None:
    sets = until(
        "the default cluster sets",
        lambda: (
            {"default", "global"}
            <= {item["metadata"]["name"] for item in hub.api.list(f"{CLUSTER}/v1beta2", SETS)}
        ),
    )
    assert sets
    assert hub.processes.exited() == {}


def test_the_api_server_knows_its_version(hub: Hub) -> None:
    assert hub.api.request("GET", "/version")["gitVersion"] == kubernetes_version()


def test_a_user_without_rights_is_refused(hub: Hub) -> None:
    api = Api.from_kubeconfig(hub.kubeconfig(user="nobody"))
    with pytest.raises(ApiError) as refused:
        api.list(f"{CLUSTER}/v1", "ManagedCluster")
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")
    assert 'User "nobody" cannot list' in refused.value.message
    api.close()


def test_a_service_account_may_do_what_its_role_says_and_no_more(hub: Hub, namespace: str) -> None:
    hub.apply(READER.format(namespace=namespace))
    api = Api.from_kubeconfig(hub.kubeconfig(service_account=f"{namespace}/reader"))
    assert any(
        item["metadata"]["name"] == "kube-root-ca.crt"
        for item in until(
            "the root CA in every namespace", lambda: api.list("v1", "ConfigMap", namespace)
        )
    )
    with pytest.raises(ApiError, match="403 Forbidden"):
        api.list("v1", "Secret", namespace)
    api.close()


def test_the_audit_log_says_what_a_user_asked_for(hub: Hub, namespace: str) -> None:
    api = Api.from_kubeconfig(hub.kubeconfig(user="curious"))
    with pytest.raises(ApiError):
        api.get("v1", "Secret", "treasure", namespace)
    api.close()
    [event] = [
        event
        for event in hub.audited("curious")
        if event.get("objectRef", {}).get("resource") == "secrets"
    ]
    assert event["verb"] == "get"
    assert event["objectRef"]["name"] == "treasure"
    assert event["responseStatus"]["code"] == 403


def test_a_deleted_namespace_takes_its_objects_along(hub: Hub, namespace: str) -> None:
    hub.apply(config_map("passenger", namespace))
    hub.api.delete("v1", "Namespace", namespace)
    hub.api.wait_gone("v1", "Namespace", namespace)
    assert hub.api.find("v1", "ConfigMap", "passenger", namespace) is None


def test_owned_objects_are_collected(hub: Hub, namespace: str) -> None:
    [owner] = hub.apply(config_map("owner", namespace))
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    owned = config_map("owned", namespace)
    owned["metadata"]["ownerReferences"] = [reference]
    hub.apply(owned)
    hub.api.delete("v1", "ConfigMap", "owner", namespace)
    hub.api.wait_gone("v1", "ConfigMap", "owned", namespace)


def config_map(name: str, namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
    }
