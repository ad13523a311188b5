"""The GPUs of nodes by which policies are generated, as an inventory and labels show them."""

import math

from dsf.api.untrusted_text import InvalidInput, listed
from optimizer.domain.mig.geometry import Geometry
from optimizer.domain.mig.gpu_pools import Gpu, NodeGpus
from optimizer.domain.mig.layouts import (
    GpuInstance,
    Layout,
    in_geometry_order,
    least_fragmented_layout,
)
from optimizer.domain.mig.policy_spec import ALL_DISABLED
from optimizer.domain.nodes import GPU_RESOURCE, MIG_PREFIX
from optimizer.snapshot.capacity.cluster_nodes import ClusterNodes, Shares
from optimizer.snapshot.capacity.labelled_gpus import (
    CHANGING,
    CONFIG,
    STATE,
    LabelledGpus,
    labelled_gpus,
)

_NAMED = 3
"""Nodes that one message names."""


def seen_gpus(nodes: ClusterNodes) -> tuple[tuple[NodeGpus, ...], tuple[str, ...]]:
    """Return the GPUs by node, and what can't be used of the labels, or contradicts them.

    Devices that others use supply nothing. Which GPU of a node they are on is not known, so no GPU
    of that node is reconfigured; nor is one of a node that is not ready or cordoned.
    """
    found, issues = list[NodeGpus](), list[str]()
    for item in nodes.shares:
        labelled = labelled_gpus(item.nodes)
        if labelled is None:
            continue
        where = f"nodes {listed(item.nodes.names, _NAMED) or 'without a name'}"
        gpus = _gpus(labelled, item) if isinstance(labelled, LabelledGpus) else labelled
        if isinstance(labelled, LabelledGpus) and labelled.contradiction:
            issues.append(f"{where}: {labelled.contradiction}")
        if isinstance(gpus, InvalidInput):
            issues.append(f"{where}: {gpus.message}")
        else:
            found += [NodeGpus(name, gpus) for name in item.nodes.names]
    return tuple(sorted(found, key=lambda node: node.name)), tuple(issues)


def _gpus(labelled: LabelledGpus, item: Shares) -> tuple[Gpu, ...] | InvalidInput:
    """Return the GPUs of each node of a group."""
    nodes, known = item.nodes, labelled.geometry
    if known is None:
        return InvalidInput("NoGeometry", f"no MIG geometry is known for GPU {labelled.product}")
    if len(nodes.names) < nodes.count:
        return InvalidInput("NoNames", f"{nodes.count} nodes with GPUs, and not all have a name")
    used = {
        name: max(0, math.ceil(amount - item.supplied.get(name, 0.0)))
        for name, amount in nodes.allocatable.items()
        if name == GPU_RESOURCE or name.startswith(MIG_PREFIX)
    }
    stays = any(used.values()) or nodes.cordoned or not nodes.ready
    all_whole = labelled.whole == labelled.number and not labelled.migs
    if all_whole or nodes.labels.get(CONFIG) == ALL_DISABLED:
        taken = labelled.number - math.floor(item.supplied.get(GPU_RESOURCE, 0.0))
        return tuple(
            Gpu(known, mig_disabled=True, in_use=taken > 0 or stays, foreign_use=index < taken)
            for index in range(labelled.number)
        )
    layout = None if nodes.labels.get(STATE) in CHANGING else _layout(known, labelled)
    if layout is None and (any(used.values()) or not nodes.ready):
        why = "others may use GPUs whose layout is not known, because they differ or are changing"
        return InvalidInput("UnknownLayout", why)
    if layout is None:
        return (Gpu(known),) * labelled.number
    busy = layout if stays else ()
    foreign = [_of_others(known, layout, used) for _ in range(labelled.number)]
    return tuple(Gpu(known, layout, busy, others) for others in foreign)


def _layout(known: Geometry, labelled: LabelledGpus) -> Layout | None:
    """Return the layout that all GPUs of a node have if they are alike; None if they can't be."""
    names = {profile.device: profile.name for profile in known.profiles}
    counts = dict(labelled.migs)
    alike = all(n % labelled.number == 0 and device in names for device, n in counts.items())
    if not counts or labelled.whole or not alike:
        return None
    each = {names[device]: n // labelled.number for device, n in counts.items()}
    return least_fragmented_layout(known, in_geometry_order(known, each))


def _of_others(known: Geometry, layout: Layout, used: dict[str, int]) -> Layout:
    """Return the instances of a GPU that others use; `used` is less by them."""
    found = list[GpuInstance]()
    for instance in layout:
        profile = known.profile(instance.profile)
        resource = MIG_PREFIX + (profile.device if profile else "")
        if used.get(resource, 0) > 0:
            used[resource] -= 1
            found.append(instance)
    return tuple(found)
