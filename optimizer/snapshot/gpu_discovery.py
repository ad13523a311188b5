"""Discovers a managed cluster's GPUs from its labels or ClusterClaims.

Keys: labels of the ManagedCluster named as GPU feature discovery names those of a node
(https://github.com/NVIDIA/k8s-device-plugin docs/gpu-feature-discovery), or ClusterClaims,
whose names can't hold a slash. They speak of one node with GPUs of one model.
"""

from dsf.api.invalid_input import InvalidInput
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.mig.geometry import geometry
from optimizer.mig.gpu_patterns import Gpu
from optimizer.mig.gpu_pools import GpuPool, NodeGpus
from optimizer.mig.mig_parted import ALL_DISABLED

PRODUCT, COUNT, CONFIG = "gpu.product", "gpu.count", "mig.config"
MIG_PRODUCT_MARK = "-MIG-"
MAX_GPUS_PER_NODE = 16


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


def _fact(managed_cluster: Object, key: str) -> str:
    """Return the label `nvidia.com/gpu.product`, or else the claim `gpu-product.nvidia.com`."""
    labels = managed_cluster["metadata"].get("labels") or {}
    if labels.get(f"nvidia.com/{key}"):
        return UntrustedName(labels[f"nvidia.com/{key}"])
    wanted = f"{key.replace('.', '-')}.nvidia.com"
    claims = (managed_cluster.get("status") or {}).get("clusterClaims") or []
    return next(
        (UntrustedName(item.get("value")) for item in claims if item.get("name") == wanted), ""
    )


def _issue(cluster: str, why: str) -> Issue:
    return Issue(reason="UnknownGpus", message=f"cluster {cluster}: {why}", cluster=cluster)
