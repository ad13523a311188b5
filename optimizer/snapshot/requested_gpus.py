"""The GPUs that a request lists, or that are discovered if it asks for discovery.

Keys of discovery: labels of the ManagedCluster named as GPU feature discovery names those of a node
(https://github.com/NVIDIA/k8s-device-plugin docs/gpu-feature-discovery), or ClusterClaims,
whose names can't hold a slash. They speak of one node with GPUs of one model. Where the cluster has
a NodeInventory, the labels of its nodes are read instead.
"""

import re
from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from dsf.api.scoring.quantity import parse_quantity
from dsf.api.untrusted_text import InvalidInput, UntrustedName
from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.domain.mig.geometry import geometry
from optimizer.domain.mig.gpu_pools import Gpu, GpuPool, GpuPools, NodeGpus, ReconfigurationRules
from optimizer.domain.mig.policy_spec import ALL_DISABLED
from optimizer.domain.nodes import GPU_KIND, MIG_PRODUCT_MARK, WHOLE_GPU, kind_and_device
from optimizer.snapshot.capacity.cluster_nodes import ClusterNodes
from optimizer.snapshot.capacity.labelled_gpus import MAX_GPUS_PER_NODE
from optimizer.snapshot.capacity.node_gpus import seen_gpus
from optimizer.snapshot.object_readers import claims_of, labels_of, name_of
from optimizer.wire.mig_request import MigOptions
from optimizer.wire.mig_request import gpu_pools_of as pools_of
from optimizer.wire.request import OptimizeRequest, RequestedCluster

PRODUCT, COUNT, CONFIG = "gpu.product", "gpu.count", "mig.config"


def discover_gpus(managed_cluster: Object) -> tuple[GpuPool, ...] | Issue:
    """Return the pool of a managed cluster's GPUs, empty if it names none, or an Issue."""
    name = str(managed_cluster["metadata"]["name"])
    product = _fact(managed_cluster, PRODUCT)
    if not product:
        return ()
    known = geometry(product)
    if MIG_PRODUCT_MARK in product:
        return _issue(name, f"{product} counts MIG devices, not GPUs; list clusters[].gpus instead")
    if isinstance(known, InvalidInput):
        return _issue(name, known.message)
    count = _fact(managed_cluster, COUNT) or "1"
    if not count.isdecimal() or not 1 <= int(count) <= MAX_GPUS_PER_NODE:
        return _issue(name, f"{COUNT} is {count!r}, not a number from 1 to {MAX_GPUS_PER_NODE}")
    gpu = Gpu(known, mig_disabled=_fact(managed_cluster, CONFIG) == ALL_DISABLED)
    return (GpuPool(name, (NodeGpus("", (gpu,) * int(count)),)),)


class StatedGpus(NamedTuple):
    """The GPUs that a ManagedCluster states; `number` is 0 if it does not say how many."""

    product: str
    number: int
    devices: Mapping[str, int]


def stated_gpus(managed_cluster: Object) -> StatedGpus:
    """Return what labels, claims and `status.allocatable` of a cluster say of its GPUs."""
    product, _, profile = _fact(managed_cluster, PRODUCT).partition(MIG_PRODUCT_MARK)
    count = _fact(managed_cluster, COUNT) or str(int(bool(product)))
    number = int(count) if re.fullmatch("[0-9]{1,4}", count) else 0
    devices = dict[str, int]()
    for resource, text in ((managed_cluster.get("status") or {}).get("allocatable") or {}).items():
        kind, device = kind_and_device(str(resource))
        amount = parse_quantity(str(text)) if kind == GPU_KIND else None
        if amount:
            devices[device] = int(amount)
    if profile:  # each of its devices counts as a GPU
        return StatedGpus(product, 0, {profile: devices.get(WHOLE_GPU, number)})
    if not devices and _fact(managed_cluster, CONFIG) == ALL_DISABLED:
        devices[WHOLE_GPU] = number
    return StatedGpus(product, number, devices)


def _fact(managed_cluster: Object, key: str) -> str:
    """Return the label `nvidia.com/gpu.product`, or else the claim `gpu-product.nvidia.com`."""
    if label := labels_of(managed_cluster).get(f"nvidia.com/{key}"):
        return UntrustedName(label)
    claim = f"{key.replace('.', '-')}.nvidia.com"
    return UntrustedName(claims_of(managed_cluster).get(claim, ""))


def _issue(cluster: str, why: str) -> Issue:
    return Issue(reason="UnknownGpus", message=f"cluster {cluster}: {why}", cluster=cluster)


def read_gpu_pools(
    managed_clusters: Iterable[Object],
    request: OptimizeRequest,
    nodes: Mapping[str, ClusterNodes] = MappingProxyType({}),
    kept: Container[str] = (),
) -> tuple[GpuPools, tuple[Issue, ...]]:
    """Return the GPU pools by cluster, and issues for GPU labels that can't be used.

    `nodes`: those of clusters with an inventory. `kept`: the clusters whose GPUs stay as they are.
    """
    managed = {name_of(obj): obj for obj in managed_clusters}
    workloads = frozenset(item.name for item in request.target_workloads)
    discover = bool(request.mig and request.mig.discover)
    pools, issues = dict[str, tuple[GpuPool, ...]](), list[Issue]()
    for cluster in request.clusters:
        if cluster.name in kept:
            continue
        if discover and not cluster.gpus and cluster.name in nodes:
            gpus, wrong = seen_gpus(nodes[cluster.name])
            pools |= {cluster.name: (GpuPool(cluster.name, gpus),)} if gpus else {}
            issues += [_issue(cluster.name, why) for why in wrong]
            continue
        found = _pools(cluster, managed[cluster.name] if discover else None, workloads)
        if isinstance(found, Issue):
            issues.append(found)
        elif found:
            pools[cluster.name] = found
    return pools, tuple(issues)


def mig_rules(request: OptimizeRequest) -> ReconfigurationRules:
    """Return the reconfiguration rules of a request."""
    return (request.mig or MigOptions()).rules(len(request.clusters))


def _pools(
    cluster: RequestedCluster, managed: Object | None, workloads: frozenset[str]
) -> tuple[GpuPool, ...] | Issue:
    if cluster.gpus or managed is None:
        return pools_of(cluster.name, cluster.gpus, workloads)
    return discover_gpus(managed)
