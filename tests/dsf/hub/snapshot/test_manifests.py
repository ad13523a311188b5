"""What is kept of workloads and policies: the allowed fields, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.hub.snapshot.manifests import read_device, read_workload

SECRET = "hunter2"
HIDDEN = {"annotations": {"password": SECRET}, "labels": {"password": SECRET}}
CONTAINER = {
    "name": "main",
    "image": "registry/app:1",
    "args": [SECRET],
    "command": [SECRET],
    "env": [
        {"name": "PASSWORD", "value": SECRET},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": SECRET}}},
    ],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "resources": {"requests": {"cpu": 4, "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}},
}
POD = {
    "containers": [CONTAINER],
    "nodeSelector": {"zone": "a"},
    "runtimeClassName": "nvidia",
    "imagePullSecrets": [{"name": SECRET}],
    "volumes": [{"name": "v", "secret": {"secretName": SECRET}}],
    "initContainers": [{"name": SECRET}],
}
KEPT = {
    "name": "main",
    "image": "registry/app:1",
    "requests": {"cpu": "4", "memory": "1Gi"},
    "limits": {"nvidia.com/gpu": "1"},
}


def deployment(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app01", **metadata},
        "spec": {"replicas": 2, "template": {"metadata": HIDDEN, "spec": POD}},
    }


def workload(*manifests: Any, **annotations: Any) -> dict[str, Any]:
    labels = {"app": "app01", "resource-request-kind": "gpu", "resource-request-amount": "2"}
    prefix = "dynamic-scoring.open-cluster-management.io/"
    return {
        "metadata": {
            "name": "mwrs-app01",
            "namespace": "team",
            "labels": {**labels, "password": SECRET},
            "annotations": {
                "password": SECRET,
                **{prefix + key: value for key, value in annotations.items()},
            },
        },
        "spec": {"manifestWorkTemplate": {"workload": {"manifests": list(manifests)}}},
    }


def test_the_allowed_fields_of_a_workload_are_kept_and_no_secret() -> None:
    secret = {"kind": "Secret", "metadata": {"name": SECRET}, "stringData": {"key": SECRET}}
    obj = workload(secret, deployment(**HIDDEN), priority="7", requests="cpu=4, memory=16Gi")
    found = read_workload(obj)
    assert found is not None
    assert found.model_dump(by_alias=True) == {
        "namespace": "team",
        "name": "mwrs-app01",
        "app": "app01",
        "requests": {"cpu": "4", "memory": "16Gi", "gpu": "2"},
        "priority": 7,
        "templates": [
            {
                "kind": "Deployment",
                "name": "app01",
                "replicas": 2,
                "nodeSelector": {"zone": "a"},
                "runtimeClassName": "nvidia",
                "containers": [KEPT],
            }
        ],
    }
    assert SECRET not in found.model_dump_json()


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Pod", POD),
        ("Job", {"template": {"spec": POD}}),
        ("CronJob", {"jobTemplate": {"spec": {"template": {"spec": POD}}}}),
    ],
)
def test_each_kind_that_makes_pods_is_read(kind: str, spec: dict[str, Any]) -> None:
    found = read_workload(workload({"kind": kind, "metadata": {"name": "x"}, "spec": spec}))
    assert found is not None
    (template,) = found.templates
    assert (template.kind, template.name, template.replicas) == (kind, "x", None)
    assert [each.model_dump(by_alias=True) for each in template.containers] == [KEPT]


def test_an_object_without_the_labels_is_no_workload_and_no_device() -> None:
    obj = workload()
    del obj["metadata"]["labels"]["app"]
    assert read_workload(obj) is None
    assert read_device(obj) is None


def test_a_policy_supplies_a_device_and_its_copies_do_not() -> None:
    labels = {
        "resource-supply-kind": "gpu",
        "resource-supply-device": "3g.48gb",
        "resource-supply-amount": "2",
    }
    policy = {"metadata": {"name": "policy-3g", "namespace": "team", "labels": labels}}
    found = read_device(policy)
    assert found is not None
    assert found.model_dump(by_alias=True) == {
        "namespace": "team",
        "policy": "policy-3g",
        "kind": "gpu",
        "device": "3g.48gb",
        "amount": "2",
    }
    root = "policy.open-cluster-management.io/root-policy"
    labels[root] = "team.policy-3g"
    assert read_device(policy) is None
    for missing in list(labels):
        kept = {key: value for key, value in labels.items() if key not in (root, missing)}
        if missing != root:
            assert read_device({"metadata": {**policy["metadata"], "labels": kept}}) is None


FIELDS = "kind metadata name spec template jobTemplate containers resources requests replicas"
keys = st.sampled_from(FIELDS.split())
values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
documents = st.recursive(
    values | st.sampled_from(["Deployment", "CronJob", "Pod"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(manifests=documents, annotations=documents)
def test_whatever_is_in_a_template_is_read_or_left_out(manifests: Any, annotations: Any) -> None:
    obj = workload()
    obj["spec"]["manifestWorkTemplate"]["workload"]["manifests"] = manifests
    obj["metadata"]["annotations"] = annotations
    found = read_workload(obj)
    assert found is not None
    assert found.app == "app01"
