"""What a Pod requests, as kube-scheduler counts it, and who made it."""

from typing import Any

import pytest

from dsf.agent.inventory.amounts import quantities
from dsf.agent.inventory.pod_use import PodOwner, PodReader, owner_of, pod_requests
from tests.dsf.agent.inventory.cluster_objects import container, owned, pod

SIDECAR = {"restartPolicy": "Always"}
RESIZED = {"name": "main", "resources": {"requests": {"cpu": "3"}}}


def init(cpu: str, **fields: Any) -> dict[str, Any]:
    return container({"cpu": cpu}, **{"name": "init", **fields})


REQUESTS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, str]]] = {
    "containers are added": (
        {"containers": [container({"cpu": "100m", "memory": "1Gi"}), container({"cpu": "2"})]},
        {},
        {"cpu": "2100m", "memory": "1Gi"},
    ),
    "limits stand for missing requests": (
        {
            "containers": [
                {"name": "a", "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "4"}}},
                {"name": "b", "resources": {"limits": {"cpu": "4"}, "requests": {"cpu": "1"}}},
            ]
        },
        {},
        {"cpu": "5", "nvidia.com/gpu": "1"},
    ),
    "init containers run one after the other": (
        {"containers": [container({"cpu": "1"})], "initContainers": [init("3"), init("2")]},
        {},
        {"cpu": "3"},
    ),
    "a sidecar runs beside all that start after it": (
        {
            "containers": [container({"cpu": "1"})],
            "initContainers": [init("5"), init("2", **SIDECAR), init("4")],
        },
        {},
        {"cpu": "6"},
    ),
    "sidecars run beside the containers": (
        {"containers": [container({"cpu": "5"})], "initContainers": [init("2", **SIDECAR)]},
        {},
        {"cpu": "7"},
    ),
    "requests of the Pod replace those of containers, but not of devices": (
        {
            "containers": [container({"cpu": "1", "nvidia.com/gpu": "1"})],
            "resources": {"requests": {"cpu": "4", "memory": "2Gi", "nvidia.com/gpu": "9"}},
        },
        {},
        {"cpu": "4", "memory": "2Gi", "nvidia.com/gpu": "1"},
    ),
    "the overhead of the RuntimeClass is added": (
        {"containers": [container({"cpu": "1"})], "overhead": {"cpu": "250m"}},
        {},
        {"cpu": "1250m"},
    ),
    "a container that shrinks holds what it had": (
        {"containers": [container({"cpu": "1"})]},
        {"containerStatuses": [RESIZED]},
        {"cpu": "3"},
    ),
    "a container that grows holds what it asks for": (
        {"containers": [container({"cpu": "4"})]},
        {"containerStatuses": [{**RESIZED, "allocatedResources": {"cpu": "3"}}]},
        {"cpu": "4"},
    ),
    "what can't be granted is not held": (
        {"containers": [container({"cpu": "4"})]},
        {
            "containerStatuses": [RESIZED],
            "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
        },
        {"cpu": "3"},
    ),
    "amounts are rounded up to thousandths": (
        {"containers": [container({"cpu": "1u"}), container({"cpu": "0.07"})]},
        {},
        {"cpu": "71m"},
    ),
}


@pytest.mark.parametrize(("spec", "status", "expected"), REQUESTS.values(), ids=REQUESTS)
def test_requests_are_those_of_kube_scheduler(
    spec: dict[str, Any], status: dict[str, Any], expected: dict[str, str]
) -> None:
    found, unreadable = pod_requests(spec, status)
    assert quantities(found.items()) == {**expected, "pods": "1"}
    assert unreadable == ()


@pytest.mark.parametrize("quantity", ["-1", "1e99", "NaN", "x", "", None, "9" * 400, [], "2Ei"])
def test_an_amount_that_can_t_be_believed_is_named(quantity: Any) -> None:
    found, unreadable = pod_requests({"containers": [container({"cpu": quantity})]}, {})
    assert (dict(found), unreadable) == ({"pods": 1000}, ("cpu",))


def test_a_pod_with_very_many_resources_is_not_listed() -> None:
    many = {f"example.com/r{number}": "1" for number in range(1000)}
    assert pod_requests({"containers": [container(many)]}, {}) == ({"pods": 1000}, ("*",))


OWNERS = {
    "deployment": (
        owned("ReplicaSet", "web-5d4f", "u1", **{"pod-template-hash": "5d4f"}),
        PodOwner("u1", ("shop", "deployments.apps", "web")),
    ),
    "replica set of its own": (owned("ReplicaSet", "web-5d4f", "u1"), PodOwner("u1")),
    "cron job": (
        owned("Job", "night-29182320", "u2"),
        PodOwner("u2", ("shop", "cronjobs.batch", "night")),
    ),
    "job set": (
        owned("Job", "train-workers-0", "u8", **{"jobset.sigs.k8s.io/jobset-name": "train"}),
        PodOwner("u8", ("shop", "jobsets.jobset.x-k8s.io", "train")),
    ),
    "job": (owned("Job", "train", "u3"), PodOwner("u3")),
    "another kind": (owned("LeaderWorkerSet", "llm", "u4"), PodOwner("u4")),
    "nobody": ({"uid": "u5"}, PodOwner("u5")),
    "an owner that is no controller": (
        {"uid": "u6", "ownerReferences": [{"kind": "Job", "name": "a", "uid": "u7"}]},
        PodOwner("u6"),
    ),
}


@pytest.mark.parametrize(("metadata", "expected"), OWNERS.values(), ids=OWNERS)
def test_who_made_a_pod(metadata: dict[str, Any], expected: PodOwner) -> None:
    assert owner_of({"namespace": "shop", **metadata}) == expected


WAITING: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "not placed": (
        {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/1 nodes" + "x" * 5000,
                }
            ]
        },
        ("Unschedulable", ("0/1 nodes" + "x" * 5000)[:1024]),
    ),
    "no image": (
        {
            "conditions": [{"type": "PodScheduled", "status": "True"}],
            "containerStatuses": [
                {"name": "a", "state": {"running": {}}},
                {"name": "b", "state": {"waiting": {"reason": "ErrImagePull", "message": "x"}}},
            ],
        },
        ("ErrImagePull", ""),
    ),
    "not looked at yet": ({"conditions": None}, ("", "")),
}


@pytest.mark.parametrize(("status", "expected"), WAITING.values(), ids=WAITING)
def test_why_a_pod_is_pending(status: dict[str, Any], expected: tuple[str, str]) -> None:
    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    found = PodReader()(pod("p", phase="Pending", metadata=created, status=status))
    assert found.pending == ("2026-01-01T00:00:00Z", *expected)
    assert not found.running
