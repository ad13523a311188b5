"""The GPUs that a request speaks of, or that the hub knows of where the request asks for it."""

from collections.abc import Iterable

from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.mig.gpu_pools import GpuPool, GpuPools
from optimizer.mig.gpus import ReconfigurationRules
from optimizer.snapshot.gpu_facts import discovered
from optimizer.snapshot.labels import name_of
from optimizer.wire.mig import MigOptions
from optimizer.wire.mig import gpu_pools as pools_of
from optimizer.wire.request import ClusterChoice, OptimizeRequest


def gpu_pools(
    managed_clusters: Iterable[Object], request: OptimizeRequest
) -> tuple[GpuPools, tuple[Issue, ...]]:
    """Return the GPU pools by cluster, and what the hub says of GPUs that can't be used."""
    managed = {name_of(obj): obj for obj in managed_clusters}
    workloads = frozenset(item.name for item in request.target_workloads)
    discover = bool(request.mig and request.mig.discover)
    pools, gaps = dict[str, tuple[GpuPool, ...]](), list[Issue]()
    for cluster in request.clusters:
        found = _pools(cluster, managed[cluster.name] if discover else None, workloads)
        if isinstance(found, Issue):
            gaps.append(found)
        elif found:
            pools[cluster.name] = found
    return pools, tuple(gaps)


def mig_rules(request: OptimizeRequest) -> ReconfigurationRules:
    """Return how a request lets GPUs be reconfigured."""
    return (request.mig or MigOptions()).rules(len(request.clusters))


def _pools(
    cluster: ClusterChoice, managed: Object | None, workloads: frozenset[str]
) -> tuple[GpuPool, ...] | Issue:
    if cluster.gpus or managed is None:
        return pools_of(cluster.name, cluster.gpus, workloads)
    return discovered(managed)
