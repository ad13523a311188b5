"""NodeInventories of the guide's clusters, as their agents publish them."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.port import Object
from tests.optimizer.build import NOW, managed_cluster, obj, workload

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-3g.48gb"
GH200 = {"nvidia.com/gpu.product": "NVIDIA-GH200-480GB", "nvidia.com/gpu.count": "1"}
"""Labels of a node with one GPU, which has the devices of the guide."""


def node(
    allocatable: Mapping[str, object],
    requested: Mapping[str, object] | None = None,
    works: Mapping[str, Mapping[str, object]] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A group of one node, ready; `works`: what ManifestWorks' Pods request, which all Pods do."""
    every: dict[str, Any] = dict(requested or {})
    for amounts in (works or {}).values():
        for name, amount in amounts.items():
            every[name] = float(str(amount)) + float(str(every.get(name, 0)))
    return {
        "count": 1,
        "ready": True,
        "allocatable": texts(allocatable),
        "requested": texts(every),
        "works": [{"name": name, "requested": texts(own)} for name, own in (works or {}).items()],
        **fields,
    }


def texts(amounts: Mapping[str, object]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def inventory(cluster: str, nodes: Iterable[Any], age: float = 0.0, **status: Any) -> Object:
    """An inventory that was confirmed `age` seconds before now."""
    nodes = list(nodes)
    observed = NOW - timedelta(seconds=age)
    listed = sorted({item["name"] for one in nodes for item in one.get("works") or ()})
    return obj(
        kinds.NODE_INVENTORY,
        cluster,
        cluster,
        status={
            "observedTime": rfc3339(observed),
            "validUntil": rfc3339(observed + timedelta(seconds=180)),
            "nodes": nodes,
            "works": [{"name": name, "requested": {}} for name in listed],
            **status,
        },
    )


async def publish_nodes(hub: EmbeddedHub, *inventories: Object) -> None:
    """Let agents publish inventories, or renew them."""
    for item in inventories:
        name = item["metadata"]["name"]
        if not (await hub.list(kinds.NODE_INVENTORY, name)).items:
            await hub.create(kinds.NODE_INVENTORY, {**item, "status": {}})
        status = {"status": item["status"]}
        await hub.patch(kinds.NODE_INVENTORY, name, status, name, subresource="status")


def compliant(name: str) -> Object:
    """A managed cluster whose policies in force are compliant."""
    claims = [{"name": "policy-watcher-claim", "value": "compliant"}]
    return {**managed_cluster(name, cluster_name=name), "status": {"clusterClaims": claims}}


def deploying(
    name: str, app: str, amount: object, *manifests: Any, placement: str | None = None
) -> Object:
    """A ManifestWorkReplicaSet that deploys something."""
    made = workload(name, app, amount, placement)
    made["spec"]["manifestWorkTemplate"] = {"workload": {"manifests": list(manifests)}}
    return made


def deployment(replicas: int = 1, **requests: object) -> dict[str, Any]:
    """A Deployment whose Pods request amounts; `gpu` and `mig` stand for their resources."""
    named = {"gpu": GPU, "mig": MIG}
    asked = {named.get(name, name): amount for name, amount in requests.items()}
    pod = {"containers": [{"name": "c", "image": "i", "resources": {"requests": asked}}]}
    spec = {"replicas": replicas, "selector": {}, "template": {"metadata": {}, "spec": pod}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
