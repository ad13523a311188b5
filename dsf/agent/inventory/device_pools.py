"""Devices of the pools of ResourceSlices: those that share counters are one set.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/ and
https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/resource-slice-v1/
"""

import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from dsf.api.scoring.quantity import format_quantity, parse_quantity
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.port import Object

MAX_POOL_DEVICES = 1_024
"""Devices of a pool that are read; a GPU with MIG has about 30, a node 8 or 16 GPUs."""

_MAX_AMOUNT = 2.0**63
_MAX_KNOWN = 1 << 14
"""Pools that are not read again while they are the same: those of 5,000 nodes, and of changes.

They are kept as long as the process runs: at most 72 MiB of nodes with eight GPUs that MIG divides.
"""

_IDENTITIES = frozenset({"pciaddress", "pcibusid", "serial", "serialnumber"})
_KINDS = {"string": "strings", "version": "versions", "int": "ints", "bool": "bools"}


class PoolKey(NamedTuple):
    """A pool of a driver."""

    driver: str
    name: str


class PackedSlice(NamedTuple):
    """What the inventory keeps of a ResourceSlice: a hundredth of it, until its pool is read."""

    pool: PoolKey
    generation: int
    name: str
    spec: bytes


class PoolDeviceSet(NamedTuple):
    """Devices of a node that share counters, by name; `content` describes them as JSON."""

    node: str
    content: str
    devices: tuple[str, ...]
    unavailable: tuple[int, ...]


_CounterSet = tuple[int, str]
"""The slice of a counter set, by its place in the pool, and its name."""

_Counters = dict[_CounterSet, dict[str, str]]
"""Amounts by counter set and counter."""

_Member = tuple[str, Object, _Counters]
"""The node of a device, the device, and what it consumes."""


def read_slice(obj: Object) -> PackedSlice:
    """Return what the inventory keeps of a ResourceSlice."""
    spec = obj["spec"]
    return PackedSlice(
        PoolKey(sys.intern(spec["driver"]), sys.intern(spec["pool"]["name"])),
        spec["pool"]["generation"],
        str(obj["metadata"]["name"]),
        zlib.compress(json.dumps(spec, sort_keys=True).encode()),
    )


def read_pools(
    slices: Iterable[PackedSlice],
) -> dict[PoolKey, tuple[PoolDeviceSet, ...] | InvalidInput]:
    """Return the devices of pools in their newest generation, or why they give no capacity."""
    newest: dict[PoolKey, list[PackedSlice]] = {}
    for part in sorted(slices, key=lambda item: (item.pool, -item.generation, item.name)):
        parts = newest.setdefault(part.pool, [])
        if not parts or part.generation == parts[0].generation:
            parts.append(part)
    return {
        key: _read_pool(key.driver, tuple(part.spec for part in parts))
        for key, parts in newest.items()
    }


@lru_cache(maxsize=_MAX_KNOWN)
def _read_pool(driver: str, packed: tuple[bytes, ...]) -> tuple[PoolDeviceSet, ...] | InvalidInput:
    try:
        return tuple(_sets(driver, [json.loads(zlib.decompress(spec)) for spec in packed]))
    except ValueError as refusal:
        return InvalidInput("Unreadable", str(refusal))


def _sets(driver: str, specs: Sequence[Object]) -> Iterator[PoolDeviceSet]:
    """Yield the devices of a pool. Raises ValueError with why they give no capacity."""
    wanted = specs[0]["pool"].get("resourceSliceCount")
    if len(specs) != wanted:
        raise ValueError(f"{len(specs)} of {wanted} ResourceSlices are there")
    total = sum(len(spec.get("devices") or ()) for spec in specs)
    if total > MAX_POOL_DEVICES:
        raise ValueError(f"it has {total} devices, of which at most {MAX_POOL_DEVICES} are read")
    counters = {
        (place, shared["name"]): _quantities(shared.get("counters"), "counter", shared["name"])
        for place, spec in enumerate(specs)
        for shared in spec.get("sharedCounters") or ()
    }
    members = [
        (_node(spec, device), device, _consumed(device, place, counters))
        for place, spec in enumerate(specs)
        for device in spec.get("devices") or ()
    ]
    if len({device["name"] for _, device, _ in members}) < total:
        raise ValueError("two of its devices have the same name")
    for group in _sharing(members):
        nodes = {node for node, _, _ in group}
        if len(nodes) > 1 or "" in nodes:
            raise ValueError("several nodes share its devices, which are not counted")
        yield PoolDeviceSet(
            nodes.pop(),
            sys.intern(json.dumps(_content(driver, group, counters), sort_keys=True)),
            tuple(sys.intern(device["name"]) for _, device, _ in group),
            tuple(place for place, (_, device, _) in enumerate(group) if not _counts(device)),
        )


def _node(spec: Object, device: Object) -> str:
    """Return the one node that has a device; empty if there may be several."""
    place = device if spec.get("perDeviceNodeSelection") else spec
    return place.get("nodeName") or ""


def _consumed(device: Object, place: int, counters: _Counters) -> _Counters:
    """Return what a device takes of counter sets: of its slice, or else of another of the pool."""
    found: _Counters = {}
    for taken in device.get("consumesCounters") or ():
        name, who = taken["counterSet"], f"device {device['name']}"
        own = (place, name)
        keys = [own] if own in counters else [key for key in counters if key[1] == name]
        if len(keys) != 1:
            raise ValueError(f"{who} consumes counters of {name}, which is not there")
        amounts = _quantities(taken.get("counters"), "counter", who)
        if unknown := sorted(amounts.keys() - counters[keys[0]].keys()):
            raise ValueError(f"{who} consumes {unknown[0]}, which {name} has not")
        found[keys[0]] = amounts
    return found


def _sharing(members: Sequence[_Member]) -> Iterable[list[_Member]]:
    """Return the devices that share counters, directly or through others, together."""
    joined: dict[_CounterSet, _CounterSet] = {}

    def first(name: _CounterSet) -> _CounterSet:
        while joined.get(name, name) != name:
            name = joined[name]
        return name

    for _, _, takes in members:
        for name in takes:
            joined[first(name)] = first(next(iter(takes)))
    groups: dict[Any, list[_Member]] = {}
    for member in members:
        _, device, takes = member
        group = first(next(iter(takes))) if takes else device["name"]
        groups.setdefault(group, []).append(member)
    return groups.values()


def _content(driver: str, members: Sequence[_Member], counters: _Counters) -> Object:
    """Return devices as an inventory lists them: without what differs between equal GPUs."""
    places: dict[_CounterSet, int] = {}
    identities: dict[tuple[str, str], int] = {}
    devices = []
    for _, device, takes in members:
        for name in takes:
            places.setdefault(name, len(places))
        capacity = _quantities(device.get("capacity"), "capacity", f"device {device['name']}")
        described = {"capacity": capacity, "consumes": _numbered(takes, places)}
        for name, value in (device.get("attributes") or {}).items():
            key, typed = next(iter(value.items()), ("", ""))
            kind, short = _KINDS.get(key), name.rpartition("/")[2].lower()
            if kind is None:
                raise ValueError(
                    f"attribute {name} of device {device['name']} has no value of a known type"
                )
            if kind == "strings" and (short.endswith("uuid") or short in _IDENTITIES):
                values = [key for key in identities if key[0] == name]
                kind, typed = "identities", identities.setdefault((name, typed), len(values))
            described.setdefault(kind, {})[name] = typed
        devices.append({key: value for key, value in described.items() if value})
    shared = _numbered({name: counters[name] for name in places}, places)
    return {"driver": driver, **({"counters": shared} if shared else {}), "devices": devices}


def _numbered(counters: _Counters, places: Mapping[_CounterSet, int]) -> dict[str, str]:
    """Return counters by the number of their set and their name."""
    return {
        f"{places[name]}.{counter}": amount
        for name, amounts in counters.items()
        for counter, amount in amounts.items()
    }


def _counts(device: Object) -> bool:
    """Tell whether kube-scheduler gives a device to each claim that matches it, once."""
    kept_away = any(taint.get("effect") != "None" for taint in device.get("taints") or ())
    return not (
        kept_away or device.get("bindingConditions") or device.get("allowMultipleAllocations")
    )


def _quantities(listed: Mapping[str, Any] | None, what: str, whose: str) -> dict[str, str]:
    """Return quantities as inventories spell them. Raises ValueError if one is no amount."""
    found = {}
    for name, value in (listed or {}).items():
        text = str(value.get("value"))
        amount = parse_quantity(text)
        if amount is None or amount > _MAX_AMOUNT:
            raise ValueError(f"{what} {name} of {whose} is {text[:50]!r}, which is not an amount")
        found[name] = format_quantity(amount)
    return found
