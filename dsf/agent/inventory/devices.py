"""Devices of dynamic resource allocation: what ResourceSlices have, and what ResourceClaims hold.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/ and
https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/resource-slice-v1/
"""

import hashlib
import json
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dsf.api.crd.node_inventory import MAX_DEVICES
from dsf.api.scoring.quantity import format_quantity, parse_quantity
from dsf.kube.port import Object

MAX_POOL_DEVICES = 1_024
"""Devices of a pool that are read; a GPU with MIG has about 30, a node 8 or 16 GPUs."""

MAX_SET_BYTES = 256 << 10
"""JSON of all device sets that are listed."""

_MAX_AMOUNT = 2.0**63
_IDENTITIES = frozenset({"pciaddress", "pcibusid", "serial", "serialnumber"})
_TYPES = (
    ("string", "strings", str),
    ("version", "versions", str),
    ("int", "ints", int),
    ("bool", "bools", bool),
)


class PoolKey(NamedTuple):
    """A pool of a driver."""

    driver: str
    name: str


class PackedSlice(NamedTuple):
    """What the inventory keeps of a ResourceSlice: a hundredth of it, until its pool is read."""

    pool: PoolKey
    generation: int
    name: str
    version: tuple[str, str]
    spec: bytes

    def unpacked(self) -> Object:
        """Return the spec."""
        found: Object = json.loads(zlib.decompress(self.spec))
        return found


class ClaimAllocation(NamedTuple):
    """The devices of a ResourceClaim (driver, pool and name), and the Pods that have it."""

    devices: tuple[tuple[str, str, str], ...] = ()
    pods: tuple[tuple[str, str], ...] = ()


def read_slice(obj: Object) -> PackedSlice:
    """Return what the inventory keeps of a ResourceSlice."""
    metadata, spec = obj["metadata"], obj["spec"]
    return PackedSlice(
        PoolKey(sys.intern(spec["driver"]), sys.intern(spec["pool"]["name"])),
        spec["pool"]["generation"],
        str(metadata["name"]),
        (str(metadata.get("uid")), str(metadata.get("resourceVersion"))),
        zlib.compress(json.dumps(spec, sort_keys=True).encode()),
    )


def read_claim(obj: Object) -> ClaimAllocation:
    """Return what the inventory keeps of a ResourceClaim."""
    status, metadata = obj.get("status") or {}, obj["metadata"]
    pods = [
        (str(metadata.get("namespace")), str(pod.get("name")))
        for pod in status.get("reservedFor") or metadata.get("ownerReferences") or ()
        if pod.get("resource") == "pods" or pod.get("kind") == "Pod"
    ]
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    devices = [
        (str(result["driver"]), str(result["pool"]), str(result["device"]))
        for result in results
        if not result.get("adminAccess")
    ]
    return ClaimAllocation(tuple(devices), tuple(pods))


class _Set(NamedTuple):
    """Devices of a pool that share counters, by name; `content` describes them."""

    node: str
    content: str
    devices: tuple[str, ...]
    unavailable: tuple[int, ...]


class PoolDevices(NamedTuple):
    """The device sets of a pool, or why its devices give no capacity, read from `versions`."""

    versions: tuple[tuple[str, str], ...]
    sets: tuple[_Set, ...] = ()
    problem: str = ""


class TakenDevice(NamedTuple):
    """A device of a set, by index, and the ManifestWork whose Pod has it."""

    device: int
    work: str


@dataclass(frozen=True, order=True, slots=True)
class DeviceSets:
    """Equal device sets of a node with the same devices allocated (`NodeDeviceSets`)."""

    set: str
    count: int
    allocated: tuple[TakenDevice, ...] = ()
    unavailable: tuple[int, ...] = ()

    def document(self) -> Object:
        """Return them as the inventory has them."""
        allocated = [item._asdict() for item in self.allocated]
        return {
            "set": self.set,
            "count": self.count,
            **({"allocated": allocated} if allocated else {}),
            **({"unavailable": list(self.unavailable)} if self.unavailable else {}),
        }


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """The devices of all nodes.

    `sets`: as the inventory has them. `nodes`: by the node's name. `problems`: what gives no
    capacity, and why, one for each pool. `pools`: what was read, for the next summary.
    """

    sets: tuple[Object, ...] = ()
    nodes: Mapping[str, tuple[DeviceSets, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    pools: Mapping[PoolKey, PoolDevices] = field(default_factory=dict)


_Counters = dict[tuple[int, str], dict[str, float]]
"""Amounts by counter set (its slice and name) and counter."""

_Member = tuple[str, Object, _Counters]
"""The node of a device, the device, and what it consumes."""


class _Refused(ValueError):
    """Why the devices of a pool give no capacity."""


def summarize_devices(
    slices: Iterable[PackedSlice],
    claims: Iterable[ClaimAllocation],
    works: Mapping[tuple[str, str], str],
    known: Mapping[PoolKey, PoolDevices] = {},
) -> DeviceSummary:
    """Return the devices of ResourceSlices by node, with those that ResourceClaims have.

    `works`: the ManifestWork of each Pod of ours, by its namespace and name. `known`: the pools of
    an earlier summary, so that only changed ones are read.
    """
    pools = {key: _pool(key, parts, known.get(key)) for key, parts in _newest(slices).items()}
    allocated = dict(_allocations(claims, works))
    found: dict[str, Counter[tuple[Any, ...]]] = {}
    used: Counter[str] = Counter()
    sizes: dict[str, int] = {}
    for key, pool in sorted(pools.items()):
        for part in pool.sets:
            taken = tuple(
                TakenDevice(index, allocated[key.driver, key.name, name])
                for index, name in enumerate(part.devices)
                if (key.driver, key.name, name) in allocated
            )
            used[part.content] += 1
            sizes[part.content] = len(part.devices)
            state = part.content, taken, part.unavailable
            found.setdefault(part.node, Counter())[state] += 1
    problems = [
        f"pool {key.name} of {key.driver} gives no devices: {pool.problem}"
        for key, pool in sorted(pools.items())
        if pool.problem
    ]
    names, left, bytes_left = dict[str, str](), MAX_DEVICES, MAX_SET_BYTES
    for content, _ in sorted(used.items(), key=lambda item: (-item[1], item[0])):
        if sizes[content] <= left and len(content) <= bytes_left:
            names[content] = hashlib.sha256(content.encode()).hexdigest()[:12]
            left, bytes_left = left - sizes[content], bytes_left - len(content)
    if len(names) < len(used):
        problems.append(
            f"{len(used) - len(names)} of {len(used)} device sets are not listed, because an"
            f" inventory lists {MAX_DEVICES} devices and {MAX_SET_BYTES >> 10} KiB of them"
        )
    return DeviceSummary(
        sets=tuple(
            {"name": name, **json.loads(content)}
            for content, name in sorted(names.items(), key=lambda item: item[1])
        ),
        nodes={node: tuple(_node_sets(states, names)) for node, states in found.items()},
        problems=tuple(problems),
        pools=pools,
    )


def _node_sets(states: Counter[tuple[Any, ...]], names: Mapping[str, str]) -> Iterator[DeviceSets]:
    for (content, taken, unavailable), count in sorted(states.items()):
        if content in names:
            yield DeviceSets(names[content], count, taken, unavailable)


def _newest(slices: Iterable[PackedSlice]) -> dict[PoolKey, list[PackedSlice]]:
    """Return the slices of each pool that have its highest generation."""
    found: dict[PoolKey, list[PackedSlice]] = {}
    for part in sorted(slices, key=lambda item: item.name):
        parts = found.setdefault(part.pool, [])
        if not parts or part.generation > parts[0].generation:
            parts[:] = [part]
        elif part.generation == parts[0].generation:
            parts.append(part)
    return found


def _pool(key: PoolKey, parts: Sequence[PackedSlice], known: PoolDevices | None) -> PoolDevices:
    versions = tuple(part.version for part in parts)
    if known is not None and known.versions == versions:
        return known
    try:
        sets = tuple(_sets(key.driver, [part.unpacked() for part in parts]))
    except _Refused as refusal:
        return PoolDevices(versions, problem=str(refusal))
    return PoolDevices(versions, sets)


def _sets(driver: str, specs: Sequence[Object]) -> Iterator[_Set]:
    """Yield the devices of a pool, those that share counters together."""
    wanted = specs[0]["pool"].get("resourceSliceCount")
    if len(specs) != wanted:
        raise _Refused(f"{len(specs)} of {wanted} ResourceSlices are there")
    total = sum(len(spec.get("devices") or ()) for spec in specs)
    if total > MAX_POOL_DEVICES:
        raise _Refused(f"it has {total} devices, of which at most {MAX_POOL_DEVICES} are read")
    counters = _counters(specs)
    members = [
        (_node(spec, device), device, _consumed(device, place, counters))
        for place, spec in enumerate(specs)
        for device in spec.get("devices") or ()
    ]
    if len({device["name"] for _, device, _ in members}) < total:
        raise _Refused("two of its devices have the same name")
    for group in _sharing(members):
        nodes = {node for node, _, _ in group}
        if len(nodes) > 1 or "" in nodes:
            raise _Refused("several nodes share its devices, which are not counted")
        yield _set(driver, nodes.pop(), group, counters)


def _sharing(members: Sequence[_Member]) -> Iterable[list[_Member]]:
    """Return the devices that share counters, directly or through others, together."""
    joined: dict[tuple[int, str], tuple[int, str]] = {}

    def first(name: tuple[int, str]) -> tuple[int, str]:
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


def _set(
    driver: str,
    node: str,
    members: Sequence[_Member],
    counters: _Counters,
) -> _Set:
    """Return devices as text that equal GPUs share: without what differs between them."""
    sets: dict[tuple[int, str], int] = {}
    identities: dict[tuple[str, str], int] = {}
    devices = []
    for _, device, takes in members:
        consumes = {
            f"{sets.setdefault(name, len(sets))}.{counter}": format_quantity(amount)
            for name, amounts in takes.items()
            for counter, amount in amounts.items()
        }
        capacity = {
            name: format_quantity(_amount(value, f"capacity {name} of device {device['name']}"))
            for name, value in (device.get("capacity") or {}).items()
        }
        described = {"capacity": capacity, "consumes": consumes}
        for name, value in (device.get("attributes") or {}).items():
            kind, typed = _attribute(name, value, device["name"])
            short = name.rpartition("/")[2].lower()
            if kind == "strings" and (short.endswith("uuid") or short in _IDENTITIES):
                values = [key for key in identities if key[0] == name]
                kind, typed = "identities", identities.setdefault((name, typed), len(values))
            described.setdefault(kind, {})[name] = typed
        devices.append({key: value for key, value in described.items() if value})
    shared = {
        f"{place}.{counter}": format_quantity(amount)
        for name, place in sets.items()
        for counter, amount in counters[name].items()
    }
    content = {
        "driver": driver,
        **({"counters": shared} if shared else {}),
        "devices": devices,
    }
    return _Set(
        node,
        sys.intern(json.dumps(content, sort_keys=True)),
        tuple(sys.intern(device["name"]) for _, device, _ in members),
        tuple(place for place, (_, device, _) in enumerate(members) if not _counts(device)),
    )


def _counts(device: Object) -> bool:
    """Tell whether kube-scheduler gives a device to each claim that matches it, once."""
    kept_away = any(taint.get("effect") != "None" for taint in device.get("taints") or ())
    return not (
        kept_away or device.get("bindingConditions") or device.get("allowMultipleAllocations")
    )


def _node(spec: Object, device: Object) -> str:
    """Return the one node that has a device; empty if there may be several."""
    place = device if spec.get("perDeviceNodeSelection") else spec
    return place.get("nodeName") or ""


def _attribute(name: str, value: Object, device: str) -> tuple[str, Any]:
    for key, kind, wanted in _TYPES:
        if type(value.get(key)) is wanted:
            return kind, value[key]
    raise _Refused(f"attribute {name} of device {device} has no value of a known type")


def _amount(value: Object, what: str) -> float:
    text = str(value.get("value"))
    amount = parse_quantity(text)
    if amount is None or amount > _MAX_AMOUNT:
        raise _Refused(f"{what} is {text[:50]!r}, which is not an amount")
    return amount


def _counters(specs: Sequence[Object]) -> _Counters:
    """Return the counter sets of a pool by the slice that has them and their name."""
    return {
        (place, shared["name"]): {
            name: _amount(counter, f"counter {name} of {shared['name']}")
            for name, counter in (shared.get("counters") or {}).items()
        }
        for place, spec in enumerate(specs)
        for shared in spec.get("sharedCounters") or ()
    }


def _consumed(device: Object, place: int, counters: _Counters) -> _Counters:
    """Return what a device takes of counter sets: of its slice, or else of another of the pool."""
    found: _Counters = {}
    for taken in device.get("consumesCounters") or ():
        name = taken["counterSet"]
        places = (
            [place] if (place, name) in counters else [at for at, own in counters if own == name]
        )
        if len(places) != 1:
            raise _Refused(
                f"device {device['name']} consumes counters of {name}, which is not there"
            )
        key = places[0], name
        amounts = {
            counter: _amount(value, f"counter {counter} of device {device['name']}")
            for counter, value in (taken.get("counters") or {}).items()
        }
        if unknown := sorted(amounts.keys() - counters[key].keys()):
            raise _Refused(f"device {device['name']} consumes {unknown[0]}, which {name} has not")
        found[key] = amounts
    return found


def _allocations(
    claims: Iterable[ClaimAllocation], works: Mapping[tuple[str, str], str]
) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield each allocated device, and the ManifestWork whose Pods have it alone."""
    for claim in claims:
        owners = {works.get(pod, "") for pod in claim.pods}
        work = owners.pop() if len(owners) == 1 else ""
        for device in claim.devices:
            yield device, work
