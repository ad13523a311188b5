"""The GPUs of a managed cluster as the page draws them, from the best source that there is.

Nobody reports where an instance lies on its GPU: a layout is one that the table of MIG profiles
allows, with the devices that nodes advertise or policies supply.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from dsf.kube.port import Object
from optimizer.domain.dra.device_sets import NodeDevices
from optimizer.domain.fleet import CandidatePolicy, ProfileCounts
from optimizer.domain.mig.geometry import Geometry, geometry
from optimizer.domain.mig.gpu_pools import device_counts
from optimizer.domain.mig.layouts import geometries_with, least_fragmented_layout, packed_gpus
from optimizer.domain.nodes import GPU_KIND, MIG_PRODUCT_MARK, PRODUCT, WHOLE_GPU, scored_as
from optimizer.snapshot.capacity.labelled_gpus import LabelledGpus, labelled_gpus
from optimizer.snapshot.capacity.node_inventories import Inventory, SeenNodes
from optimizer.snapshot.requested_gpus import StatedGpus, stated_gpus
from optimizer.wire.result import ClusterGpus, GpuLayout, GpuSlice, GpuSource, OccupiedDevice

MAX_LAYOUTS = 1_000
"""Layouts of one answer: more than all GPU models together are divided into in a fleet."""

MAX_GROUPS, MAX_GPUS = 64, 100_000
"""Groups of equal GPUs that an answer lists for a cluster, and the largest count of a group."""

MAX_OCCUPANTS = 500
"""Reservations that an answer lists for a cluster: one for each device and workload."""


class Gpus(NamedTuple):
    """Equal GPUs: of which model they are, how they are divided, and from where it is known."""

    model: str
    layout: GpuLayout
    known: GpuSource


GpuCounts = Mapping[Gpus, int]
"""The number of GPUs of each kind."""


class LayoutTable:
    """The layouts of one answer. Clusters name them by their position."""

    def __init__(self) -> None:
        self._positions = dict[GpuLayout, int]()

    @property
    def layouts(self) -> tuple[GpuLayout, ...]:
        """All layouts, in the order of their positions."""
        return tuple(self._positions)

    @property
    def is_full(self) -> bool:
        """Whether no other layout can be added."""
        return len(self._positions) >= MAX_LAYOUTS

    def listed(self, gpus: GpuCounts) -> tuple[ClusterGpus, ...]:
        """Return the GPUs of a cluster and add their layouts, except those that have no room."""
        return tuple(
            ClusterGpus(
                model=item.model,
                layout=self._positions.setdefault(item.layout, len(self._positions)),
                count=min(count, MAX_GPUS),
                known=item.known,
            )
            for item, count in list(gpus.items())[:MAX_GROUPS]
            if item.layout in self._positions or not self.is_full
        )


def gpus_of_cluster(
    cluster: Object, inventory: Inventory | None, policies: Iterable[CandidatePolicy]
) -> GpuCounts:
    """Return the GPUs of a managed cluster.

    They are known from its inventory, or else from the policies in force there, or else from
    labels, claims and `status.allocatable` of the ManagedCluster.
    """
    if inventory is not None:
        return _summed(part for nodes in inventory.nodes for part in _of_nodes(nodes))
    return gpus_of_policies(stated_gpus(cluster), policies, {})


def gpus_of_policies(
    stated: StatedGpus, policies: Iterable[CandidatePolicy], products: Mapping[str, str]
) -> GpuCounts:
    """Return the GPUs as policies divide them; without any, as the cluster states them.

    `products`: by node; other nodes have the one that the cluster states.
    """
    enforced = list(policies)
    layouts = [node for item in enforced for node in (*item.layouts, *item.declared_layouts)]
    if layouts:
        counts = Counter(
            (products.get(node.node, stated.product), device_counts(gpu))
            for node in layouts
            for gpu in node.gpus
        )
        every = ((product, dict(gpu), 1, many) for (product, gpu), many in counts.items())
        return _summed(_divided(*item, "Policy") for item in every)
    devices = defaultdict[str, int](int)
    for supply in (supply for item in enforced for supply in item.supplies):
        if supply.kind == GPU_KIND:
            devices[supply.device] += int(supply.amount)
    if any(devices.values()):
        least = _divided(stated.product, devices, 0, 1, "Policy")
        number = stated.number if sum(least.values()) < stated.number else 0  # of one node only
        return _divided(stated.product, devices, number, 1, "Policy")
    return _divided(stated.product, stated.devices, stated.number, 1, "Hardware")


def _of_nodes(nodes: SeenNodes) -> Iterator[GpuCounts]:
    """Yield the GPUs of equal nodes: those of the device plugin, and those of resource slices."""
    labelled = labelled_gpus(nodes)
    known = labelled if isinstance(labelled, LabelledGpus) else None
    devices = {
        device: int(amount)
        for resource, amount in nodes.allocatable.items()
        for kind, device in [nodes.kind_and_device(resource)]
        if kind == GPU_KIND
    }
    if known and devices.get(WHOLE_GPU, 0) > known.number:  # GPUs that Pods share count often
        devices[WHOLE_GPU] = known.number
    product = nodes.labels.get(PRODUCT, "").partition(MIG_PRODUCT_MARK)[0]
    if known or devices:
        yield _divided(product, devices, known.number if known else 0, nodes.count, "Inventory")
    for item in nodes.devices.devices:
        yield _divided(*_of_devices(item), 0, nodes.count * item.count, "Inventory")


def _of_devices(item: NodeDevices) -> tuple[str, dict[str, int]]:
    """Return the product and the devices of a device set.

    Devices that share counters are parts of one GPU: only those in use count, or else it is whole.
    """
    named = [scored_as(item.devices.driver, device) for device in item.devices.devices]
    gpus = [device for kind, device in named if kind == GPU_KIND]
    if item.devices.counters and gpus:
        taken = [named[at][1] for at in item.taken if named[at][0] == GPU_KIND]
        gpus = [device for device in taken if device != WHOLE_GPU] or [WHOLE_GPU]
    texts = (dict(device.attributes).get("productName") for device in item.devices.devices)
    product = next((text for text in texts if isinstance(text, str)), "")
    return product.replace(" ", "-"), dict(Counter(gpus))


def _summed(parts: Iterable[GpuCounts]) -> GpuCounts:
    found = Counter[Gpus]()
    for part in parts:
        found.update(part)
    return found


def _divided(
    product: str, devices: Mapping[str, int], number: int, times: int, known: GpuSource
) -> GpuCounts:
    """Return the GPUs that together have these devices, `times` over.

    `number`: how many GPUs have them; 0: not known.
    """
    having = tuple(sorted((device, most) for device, most in devices.items() if most > 0))
    found = _gpus_with(product, having, number)
    return {Gpus(*gpu, known): count * times for gpu, count in found.items() if count > 0}


@lru_cache(4_096)
def _gpus_with(
    product: str, devices: tuple[tuple[str, int], ...], number: int
) -> Mapping[tuple[str, GpuLayout], int]:
    migs = dict(devices)
    whole = migs.pop(WHOLE_GPU, 0)
    model, known = _model(product, migs)
    packed = packed_gpus(known, migs, number - whole) if known else ()
    found = Counter[GpuLayout]()
    if number and whole + sum(many for _, many in packed) > number:
        packed, whole = (), min(whole, number)  # what nodes advertise and their labels differ
    found[_layout(known, None)] += whole
    for counts, many in packed:
        found[_layout(known, counts)] += many
    found[_layout(known, ())] += max(0, number - found.total())
    for device, amount in migs.items():
        if not known or not known.profile(device):  # nobody says how large it is
            found[_one_slice(device)] += amount
    return {(model, layout): many for layout, many in found.items() if many}


def gpu_model(product: str) -> str:
    """Return the name of a GPU model in every view: that of its MIG geometry, if it has one."""
    whole = product.partition(MIG_PRODUCT_MARK)[0]
    known = geometry(whole)
    return known.model if isinstance(known, Geometry) else whole.removeprefix("NVIDIA-")


def _model(product: str, migs: Mapping[str, int]) -> tuple[str, Geometry | None]:
    """Return the model of GPUs, as far as their label or their MIG devices tell it."""
    if product or not migs:
        known = geometry(product)
        return gpu_model(product), known if isinstance(known, Geometry) else None
    having = geometries_with(migs)
    return having[0].model if len(having) == 1 else "", next(iter(having), None)


def _layout(known: Geometry | None, counts: ProfileCounts | None) -> GpuLayout:
    """Return a layout; None is a whole GPU."""
    memory, compute = (known.memory_slices, known.compute_slices) if known else (1, 1)
    slices = list[GpuSlice]()
    if counts is None:
        slices.append(GpuSlice(device=WHOLE_GPU, start=0, memory=memory, compute=compute))
    elif known:
        for name, start in least_fragmented_layout(known, counts) or ():
            if profile := known.profile(name):
                sizes = {"memory": profile.memory_slices, "compute": profile.compute_slices}
                slices.append(GpuSlice(device=profile.device, start=start, **sizes))
    return GpuLayout(slices=tuple(slices), memory=memory, compute=compute)


def _one_slice(device: str) -> GpuLayout:
    only = GpuSlice(device=device, start=0, memory=1, compute=1)
    return GpuLayout(slices=(only,), memory=1, compute=1)


def occupied_devices(amounts: Mapping[tuple[str, str], float]) -> tuple[OccupiedDevice, ...]:
    """Return what is reserved on a cluster. `amounts`: by device and workload."""
    reserved = sorted((*key, amount) for key, amount in amounts.items() if amount > 0)
    return tuple(
        OccupiedDevice(device=device, workload=workload, amount=amount)
        for device, workload, amount in reserved[:MAX_OCCUPANTS]
    )


def held_devices(nodes: SeenNodes) -> Iterator[tuple[str, str, float]]:
    """Yield device, ManifestWork and amount of what Pods hold on each node; no name: of others."""
    for resource, requested in nodes.requested.items():
        kind, device = nodes.kind_and_device(resource)
        if kind == GPU_KIND:
            works = [(name, amounts.get(resource, 0.0)) for name, amounts in nodes.works]
            yield from ((device, name, amount) for name, amount in works)
            yield device, "", max(0.0, requested - sum(amount for _, amount in works))
    holders = {(id(state), at): work for work, state, at in nodes.devices.works}
    for item in nodes.devices.devices:
        for at in item.taken:
            kind, device = scored_as(item.devices.driver, item.devices.devices[at])
            if kind == GPU_KIND:
                yield device, holders.get((id(item), at), ""), float(item.count)
