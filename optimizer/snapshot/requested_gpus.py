"""The GPUs that a request lists, or that are discovered if it asks for discovery."""

from collections.abc import Iterable

from dsf.kube.port import Object
from optimizer.domain.issue import Issue
from optimizer.mig.gpu_patterns import ReconfigurationRules
from optimizer.mig.gpu_pools import GpuPool, GpuPools
from optimizer.snapshot.gpu_discovery import discover_gpus
from optimizer.snapshot.object_readers import name_of
from optimizer.wire.mig_request import MigOptions
from optimizer.wire.mig_request import gpu_pools_of as pools_of
from optimizer.wire.request import OptimizeRequest, RequestedCluster


def read_gpu_pools(
    managed_clusters: Iterable[Object], request: OptimizeRequest
) -> tuple[GpuPools, tuple[Issue, ...]]:
    """Return the GPU pools by cluster, and issues for GPU labels that can't be used."""
    managed = {name_of(obj): obj for obj in managed_clusters}
    workloads = frozenset(item.name for item in request.target_workloads)
    discover = bool(request.mig and request.mig.discover)
    pools, issues = dict[str, tuple[GpuPool, ...]](), list[Issue]()
    for cluster in request.clusters:
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
