"""Nodes and Pods as an API server has them."""

from collections.abc import Mapping
from typing import Any

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import APPLIED_MANIFEST_WORK, NAMESPACE, NODE, POD
from dsf.kube.port import Object
from tests.objects_with_status import create_with_status

HAS = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "4"}


def node(
    name: str,
    allocatable: Mapping[str, Any] = HAS,
    *,
    labels: Mapping[str, str] | None = None,
    ready: str = "True",
    **spec: Any,
) -> Object:
    """A node; by default one with four GPUs."""
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": spec,
        "status": {
            "allocatable": dict(allocatable),
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def container(requests: Mapping[str, Any] | None = None, **fields: Any) -> Object:
    """A container that requests something."""
    return {"name": "main", "resources": {"requests": dict(requests or {})}, **fields}


def pod(
    name: str,
    requests: Mapping[str, Any] | None = None,
    *,
    on: str = "",
    phase: str = "Running",
    namespace: str = "shop",
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Object:
    """A Pod of one container; `on` is its node."""
    return {
        "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
        "spec": {"containers": [container(requests)], **({"nodeName": on} if on else {}), **spec},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": str(phase == "Running")}],
            **(status or {}),
        },
    }


def owned(kind: str, name: str, uid: str = "u", **labels: str) -> Object:
    """The metadata of a Pod with a controller."""
    reference = {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": True}
    return {"ownerReferences": [reference], "labels": labels}


def applied(work: str, *resources: Mapping[str, str]) -> Object:
    """What OCM's work agent has applied of a ManifestWork."""
    return {
        "metadata": {"name": f"hub-{work}"},
        "spec": {"hubHash": "hub", "manifestWorkName": work},
        "status": {"appliedResources": [{"version": "v1", **each} for each in resources]},
    }


async def put(kube: EmbeddedHub, *objects: Object) -> None:
    """Create objects with their status."""
    for obj in objects:
        kind = APPLIED_MANIFEST_WORK if "hubHash" in obj["spec"] else NODE
        if "containers" in obj["spec"]:
            kind = POD
        await create_with_status(kube, kind, obj)


async def cluster_with(*objects: Object) -> EmbeddedHub:
    """A managed cluster with these objects, whose Pods are in namespace shop."""
    kube = EmbeddedHub()
    for name in ("dynamic-scoring", "shop"):
        await kube.create(NAMESPACE, {"metadata": {"name": name}})
    await put(kube, *objects)
    return kube
