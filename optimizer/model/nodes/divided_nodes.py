"""The nodes of a cluster, and their devices as each policy divides the GPUs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import inf

from optimizer.domain.fleet import CandidatePolicy, Cluster, Fleet, NodeLayout
from optimizer.domain.nodes import (
    GPU_KIND,
    GPU_RESOURCE,
    WHOLE_GPU,
    Amounts,
    NodeGroup,
    kind_and_device,
    resource_of,
)
from optimizer.model.parameters import Nodes

_STRATEGY = "nvidia.com/mig.strategy"
"""The label by which GPU feature discovery says how MIG devices are advertised."""


def nodes_of(cluster: Cluster, fleet: Fleet) -> tuple[Nodes | None, Mapping[str, Nodes]]:
    """Return the nodes of a cluster, and what they have while each of its policies is enforced.

    Devices of GPUs depend on policies where any candidate supplies them. The policy in force gives
    what is there now, another one what its layouts say of each node. What else depends on a policy
    has no node boundary: it is unlimited in the first result.
    """
    if cluster.nodes is None:
        return None, {}
    packs = cluster.packing == "BestFit"
    classes = tuple(sorted(cluster.device_classes.items()))
    whole = Nodes(cluster.nodes, packs, classes)
    dividing = [
        item
        for item in cluster.candidates
        if any(supply.kind == GPU_KIND for supply in item.supplies)
    ]
    if not dividing:
        return whole, {}
    requested = (pod.requests for item in fleet.workloads for pod in item.pods)
    devices = {name: inf for name in chain.from_iterable(requested) if _is_gpu(name)}
    groups = (replace(i, allocatable={**i.allocatable, **devices}) for i in cluster.nodes)
    found = dict[str, Nodes]()
    for item in dividing if len({item.pool for item in cluster.candidates}) == 1 else ():
        divided = cluster.nodes if item.current else _divided(cluster.nodes, item)
        if divided is not None:
            found[item.policy] = Nodes(divided, packs, classes)
    return Nodes(tuple(groups), packs, classes), found


def _divided(groups: Sequence[NodeGroup], policy: CandidatePolicy) -> tuple[NodeGroup, ...] | None:
    """Return nodes with the devices of a policy's layouts; None where it names none of a node."""
    layouts = {item.node: item for item in policy.layouts or policy.declared_layouts}
    found, left = list[NodeGroup](), set(layouts)
    for group in groups:
        changed = [name for name in group.names if name in layouts]
        left -= set(changed)
        rest = tuple(name for name in group.names if name not in layouts)
        if group.count > len(changed):
            found.append(replace(group, count=group.count - len(changed), names=rest))
        for name in changed:
            others = {key: much for key, much in group.allocatable.items() if not _is_gpu(key)}
            single = group.labels.get(_STRATEGY) == "single"
            devices = _devices(layouts[name], single=single)
            found.append(replace(group, count=1, names=(name,), allocatable={**others, **devices}))
    return None if left or not layouts else tuple(found)


def _devices(layout: NodeLayout, *, single: bool) -> Amounts:
    """Return what the device plugin advertises; with strategy `single` all devices are GPUs."""
    found = Counter[str]()
    for gpu in layout.gpus:
        for device, count in ((WHOLE_GPU, 1),) if gpu is None else gpu:
            found[GPU_RESOURCE if single else resource_of(GPU_KIND, device)] += count
    return {name: float(count) for name, count in found.items()}


def _is_gpu(resource: str) -> bool:
    return kind_and_device(resource)[0] == GPU_KIND
