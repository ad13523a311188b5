"""Reads NodeInventories: what nodes have, and what Pods there request by ManifestWork."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dsf.api.crd.inventory_times import GRACE, InventoryTimes
from dsf.api.pod_spec import read_amount
from dsf.api.untrusted_text import InvalidInput, UntrustedName
from dsf.kube.port import Object
from dsf.placement import Taint
from optimizer.domain.dra.device_sets import DeviceClasses, DeviceSet
from optimizer.domain.nodes import (
    GPU_KIND,
    GPU_RESOURCE,
    MIG_PRODUCT_MARK,
    PRODUCT,
    Amounts,
    kind_and_device,
)
from optimizer.snapshot.capacity.device_inventory import (
    NO_DEVICES,
    SeenDevices,
    read_device_classes,
    read_device_sets,
    read_node_devices,
)
from optimizer.snapshot.object_readers import name_of

MAX_NODES = 1_000_000
"""Nodes of one group: more than any cluster has."""

CORDONED = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
"""What Kubernetes adds to a node with spec.unschedulable."""


@dataclass(frozen=True, slots=True)
class SeenNodes:
    """Equal nodes as an inventory lists them; amounts are of each of them.

    `requested`: of all Pods. `works`: of those of ManifestWorks, by name.
    """

    count: int
    names: tuple[str, ...]
    ready: bool
    cordoned: bool
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Amounts
    requested: Amounts
    works: tuple[tuple[str, Amounts], ...]
    devices: SeenDevices = NO_DEVICES

    @property
    def profile(self) -> str:
        """The MIG profile that its GPUs stand for, with MIG strategy `single`; else empty."""
        return self.labels.get(PRODUCT, "").partition(MIG_PRODUCT_MARK)[2]

    def kind_and_device(self, resource: str) -> tuple[str, str]:
        """Return the kind and device that a resource is on these nodes."""
        single = resource == GPU_RESOURCE and self.profile
        return (GPU_KIND, self.profile) if single else kind_and_device(resource)


@dataclass(frozen=True, slots=True)
class Inventory:
    """What an agent saw of the nodes of its cluster.

    `left`: for how many seconds it is relied on, 0 or less if it is not any more. `works`: the
    ManifestWorks that have Pods.
    """

    nodes: tuple[SeenNodes, ...]
    works: frozenset[str]
    observed: datetime
    left: float
    device_classes: DeviceClasses = field(default_factory=dict)


def by_cluster(inventories: Iterable[Object] | None) -> dict[str, Object]:
    """Return NodeInventories by cluster, without those that lack their cluster's name.

    An agent can create objects in the namespace of its cluster only, but under any name.
    """
    named = ((name_of(obj), obj) for obj in inventories or ())
    return {name: obj for name, obj in named if obj["metadata"].get("namespace") == name}


def says_the_same(
    before: Object, after: Object, settled: datetime, then: datetime, now: datetime
) -> bool:
    """Return whether an inventory reads now as one did then: it differs in nothing but times.

    If their times differ, both were observed after `settled`, and both are relied on.
    """
    was, renewed = InventoryTimes.of(before), InventoryTimes.of(after)
    if was is None or renewed is None:
        return before == after
    relied = was.relied_on(then)
    later = relied and settled <= was.observed <= renewed.observed
    return relied == renewed.relied_on(now) and (
        before is after or ((was == renewed or later) and _untimed(before) == _untimed(after))
    )


def _untimed(inventory: Object) -> tuple[Any, ...]:
    metadata, status = inventory["metadata"], {**(inventory.get("status") or {})}
    status.pop("observedTime", None)
    status.pop("validUntil", None)
    return metadata.get("namespace"), name_of(inventory), status


def read_inventory(inventory: Object, now: datetime) -> Inventory | InvalidInput:
    """Return what a NodeInventory says; its schema has been checked, its quantities have not."""
    status: Mapping[str, Any] = inventory.get("status") or {}
    times = InventoryTimes.of(inventory)
    if times is None:
        return InvalidInput("Unreadable", "status.observedTime is missing")
    observed, until = times
    if observed > now + GRACE:
        ahead = (observed - now).total_seconds()
        why = f"status.observedTime is {ahead:.0f} s ahead: the clock of its cluster or of the hub"
        return InvalidInput("Unreadable", f"{why} is wrong")
    nodes, place = list[SeenNodes](), "deviceSets"
    try:
        sets = read_device_sets(status.get("deviceSets") or ())
        for index, item in enumerate(status.get("nodes") or ()):
            place = f"nodes[{index}]"
            nodes.append(_nodes(item, sets))
    except ValueError as error:
        return InvalidInput("Unreadable", f"status.{place}: {error}")
    works = frozenset(str(item["name"]) for item in status.get("works") or ())
    classes = read_device_classes(status.get("deviceClasses") or ())
    return Inventory(tuple(nodes), works, observed, (until - now).total_seconds(), classes)


def _nodes(item: Mapping[str, Any], sets: Mapping[str, DeviceSet]) -> SeenNodes:
    """Return a group of nodes. Raises ValueError, which names the number that is wrong."""
    if item["count"] > MAX_NODES:
        raise ValueError(f"{item['count']} nodes are more than any cluster has")
    return SeenNodes(
        count=int(item["count"]),
        names=tuple(item.get("names") or ()),
        ready=bool(item["ready"]),
        cordoned=bool(item.get("unschedulable")),
        labels=item.get("labels") or {},
        taints=tuple(
            Taint(str(taint["key"]), str(taint["effect"]), str(taint.get("value") or ""))
            for taint in item.get("taints") or ()
        ),
        allocatable=_amounts(item["allocatable"]),
        requested=_amounts(item["requested"]),
        works=tuple(
            (str(work["name"]), _amounts(work["requested"])) for work in item.get("works") or ()
        ),
        devices=read_node_devices(item.get("devices") or (), sets),
    )


def _amounts(quantities: Mapping[str, Any]) -> Amounts:
    found = dict[str, float]()
    for name, text in quantities.items():
        try:
            found[name] = read_amount(str(text))
        except ValueError as error:
            raise ValueError(f"{UntrustedName(name)}: {error}") from None
    return found
