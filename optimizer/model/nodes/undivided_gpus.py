"""Whole GPUs that nodes have free now, whichever policies their cluster may enforce."""

from collections import Counter
from dataclasses import replace

from optimizer.domain.fleet import Cluster
from optimizer.domain.nodes import GPU_RESOURCE, MIG_PRODUCT_MARK, PRODUCT, NodeGroup
from optimizer.model.nodes.node_fit import accepts, missing_node
from optimizer.model.parameters import Nodes, PodDemand


def undivided_gpus(cluster: Cluster, pods: tuple[PodDemand, ...]) -> float:
    """Return how many whole GPUs are free now on nodes of a cluster that let these Pods run there.

    0 where the Pods are not sure to find what they request on nodes as they are now.
    """
    allowed = [i for i in cluster.nodes or () if any(accepts(i, pod) for pod in pods)]
    groups = tuple(map(_undivided, allowed))
    free = sum(group.count * group.allocatable.get(GPU_RESOURCE, 0.0) for group in groups)
    fits = free and not missing_node(Nodes(groups, cluster.packing == "BestFit"), pods)
    return free if fits else 0.0


def _undivided(group: NodeGroup) -> NodeGroup:
    """Return nodes with what is free on them now, and no GPUs where those are MIG devices."""
    free = Counter(group.allocatable)
    for amounts in (group.taken, *(amounts for _, amounts in group.held)):
        free.subtract(amounts)
    if MIG_PRODUCT_MARK in group.labels.get(PRODUCT, ""):
        del free[GPU_RESOURCE]
    return replace(group, allocatable={name: max(0.0, n) for name, n in free.items()}, taken={})
