"""Devices of dynamic resource allocation, read from the NodeInventory of a cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsf.api.crd.node_inventory import (
    MAX_DEVICES,
    InventoriedDevice,
    InventoriedDeviceClass,
    InventoriedDeviceSet,
    NodeDeviceSets,
)
from dsf.api.invalid_input import InvalidInput
from dsf.api.pod_spec import read_amount
from optimizer.domain.devices import (
    AttributeValue,
    Device,
    DeviceClass,
    DeviceClasses,
    DeviceSet,
    NodeDevices,
    Version,
)

MAX_NODE_DEVICES = 4_096
"""Devices of one node: more than 16 GPUs with all their MIG devices."""


def read_device_sets(
    listed: Sequence[Mapping[str, Any]],
) -> Mapping[str, DeviceSet] | InvalidInput:
    """Return the device sets of an inventory by name, or what can't be true of one."""
    if sum(len(item["devices"]) for item in listed) > MAX_DEVICES:
        return InvalidInput("Unreadable", f"deviceSets have more than {MAX_DEVICES} devices")
    found = {}
    for index, item in enumerate(map(InventoriedDeviceSet.model_validate, listed)):
        counters = sorted(item.counters or {})
        try:
            found[item.name] = DeviceSet(
                item.driver,
                tuple(_device(device, counters) for device in item.devices),
                tuple(read_amount((item.counters or {})[name]) for name in counters),
            )
        except ValueError as error:
            return InvalidInput("Unreadable", f"deviceSets[{index}]: {error}")
    return found


def _device(listed: InventoriedDevice, counters: Sequence[str]) -> Device:
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


def read_node_devices(
    listed: Iterable[Mapping[str, Any]], sets: Mapping[str, DeviceSet]
) -> tuple[NodeDevices, ...] | InvalidInput:
    """Return the devices of each node of a group, or what can't be true of them."""
    found, total = [], 0
    for item in map(NodeDeviceSets.model_validate, listed):
        if item.set not in sets:
            return InvalidInput("Unreadable", f"device set {item.set[:50]!r} is not listed")
        known = sets[item.set]
        taken = frozenset(one.device for one in item.allocated or ())
        unavailable = frozenset(item.unavailable or ())
        total += item.count * len(known.devices)
        if max(taken | unavailable, default=0) >= max(len(known.devices), 1):
            return InvalidInput("Unreadable", f"device set {item.set} has no such devices")
        if total > MAX_NODE_DEVICES:
            return InvalidInput("Unreadable", f"a node has more than {MAX_NODE_DEVICES} devices")
        found.append(NodeDevices(known, item.count, taken, unavailable))
    return tuple(found)


def read_device_classes(listed: Iterable[Mapping[str, Any]]) -> DeviceClasses:
    """Return the DeviceClasses of an inventory by name."""
    return {
        item.name: DeviceClass(tuple(item.selectors or ()), item.extended_resource_name or "")
        for item in map(InventoriedDeviceClass.model_validate, listed)
    }
