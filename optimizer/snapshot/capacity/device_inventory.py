"""Devices of dynamic resource allocation, read from the NodeInventory of a cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from dsf.api.crd import node_inventory
from dsf.api.pod_spec import read_amount
from optimizer.domain.dra.allocation import DeviceSetState
from optimizer.domain.dra.device_sets import (
    AttributeValue,
    Device,
    DeviceClass,
    DeviceClasses,
    DeviceSet,
    NodeDevices,
    Version,
)
from optimizer.domain.nodes import scored_as

MAX_NODE_DEVICES = 4_096
"""Devices of one node: more than 16 GPUs with all their MIG devices."""


def read_device_sets(listed: Sequence[Mapping[str, Any]]) -> Mapping[str, DeviceSet]:
    """Return the device sets of an inventory by name. Raises ValueError with what can't be true."""
    if sum(len(item["devices"]) for item in listed) > node_inventory.MAX_DEVICES:
        raise ValueError(f"they have more than {node_inventory.MAX_DEVICES} devices")
    found = {}
    for index, item in enumerate(map(node_inventory.InventoriedDeviceSet.model_validate, listed)):
        counters = sorted(item.counters or {})
        try:
            found[item.name] = DeviceSet(
                item.driver,
                tuple(_device(device, counters) for device in item.devices),
                tuple(read_amount((item.counters or {})[name]) for name in counters),
            )
        except ValueError as error:
            raise ValueError(f"set {index}: {error}") from None
    return found


def _device(listed: node_inventory.InventoriedDevice, counters: Sequence[str]) -> Device:
    consumes = listed.consumes or {}
    if unknown := sorted(consumes.keys() - set(counters)):
        raise ValueError(f"a device consumes {unknown[0][:50]!r}, which is no counter of the set")
    versions = {name: Version(text) for name, text in (listed.versions or {}).items()}
    attributes: dict[str, AttributeValue] = {
        **(listed.strings or {}),
        **versions,
        **(listed.ints or {}),
        **(listed.bools or {}),
    }
    capacity = {name: read_amount(text) for name, text in (listed.capacity or {}).items()}
    return Device(
        tuple(sorted(attributes.items())),
        tuple(sorted((listed.identities or {}).items())),
        tuple(sorted(capacity.items())),
        tuple(read_amount(consumes[name]) if name in consumes else 0.0 for name in counters),
    )


class SeenDevices(NamedTuple):
    """The devices of each node of a group; `works`: those that Pods of ManifestWorks have."""

    devices: tuple[NodeDevices, ...] = ()
    works: tuple[tuple[str, NodeDevices, int], ...] = ()


NO_DEVICES = SeenDevices()


def read_node_devices(
    listed: Iterable[Mapping[str, Any]], sets: Mapping[str, DeviceSet]
) -> SeenDevices:
    """Return the devices of each node of a group. Raises ValueError with what can't be true."""
    found, works, total = list[NodeDevices](), list[tuple[str, NodeDevices, int]](), 0
    for item in map(node_inventory.NodeDeviceSets.model_validate, listed):
        if item.set not in sets:
            raise ValueError(f"device set {item.set[:50]!r} is not listed")
        known = sets[item.set]
        taken = frozenset(one.device for one in item.allocated or ())
        unavailable = frozenset(item.unavailable or ())
        total += item.count * len(known.devices)
        if max(taken | unavailable, default=-1) >= len(known.devices):
            raise ValueError(f"device set {item.set} has no such devices")
        if total > MAX_NODE_DEVICES:
            raise ValueError(f"a node has more than {MAX_NODE_DEVICES} devices")
        state = NodeDevices(known, item.count, taken, unavailable)
        found.append(state)
        works += [(one.work, state, one.device) for one in item.allocated or () if one.work]
    return SeenDevices(tuple(found), tuple(works))


def free_by_name(state: NodeDevices) -> Iterator[tuple[str, str, int]]:
    """Yield the kind and name of devices of a node, and how many of them claims can still get.

    Devices with different names share counters, so the numbers do not hold all at once.
    """
    for (kind, name), most in _free_in_set(replace(state, count=1)):
        yield kind, name, most * state.count


@lru_cache(maxsize=4_096)
def _free_in_set(state: NodeDevices) -> tuple[tuple[tuple[str, str], int], ...]:
    by_name: dict[tuple[str, str], set[int]] = {}
    for index, device in enumerate(state.devices.devices):
        by_name.setdefault(scored_as(state.devices.driver, device), set()).add(index)
    found = []
    for name, indexes in by_name.items():
        left = DeviceSetState(state)
        found.append((name, sum(left.take(index) for index in sorted(indexes))))
    return tuple(found)


def read_device_classes(listed: Iterable[Mapping[str, Any]]) -> DeviceClasses:
    """Return the DeviceClasses of an inventory by name."""
    return {
        item.name: DeviceClass(tuple(item.selectors or ()), item.extended_resource_name or "")
        for item in map(node_inventory.InventoriedDeviceClass.model_validate, listed)
    }
