"""Devices of dynamic resource allocation by node, and which of them ResourceClaims hold."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dsf.agent.inventory.device_pools import PackedSlice, read_pools
from dsf.api.crd.node_inventory import MAX_DEVICES
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.port import Object

MAX_SET_BYTES = 256 << 10
"""JSON of all device sets that are listed."""


class ClaimAllocation(NamedTuple):
    """The devices of a ResourceClaim (driver, pool and name), and the Pods that have it."""

    devices: tuple[tuple[str, str, str], ...] = ()
    pods: tuple[tuple[str, str], ...] = ()


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
    capacity, and why, one for each pool.
    """

    sets: tuple[Object, ...] = ()
    nodes: Mapping[str, tuple[DeviceSets, ...]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def summarize_devices(
    slices: Iterable[PackedSlice],
    claims: Iterable[ClaimAllocation],
    works: Mapping[tuple[str, str], str],
) -> DeviceSummary:
    """Return the devices of ResourceSlices by node, with those that ResourceClaims have.

    `works`: the ManifestWork of each Pod of ours, by its namespace and name.
    """
    allocated = dict(_allocations(claims, works))
    found: dict[str, Counter[DeviceSets]] = {}
    used: Counter[str] = Counter()
    sizes: dict[str, int] = {}
    problems = []
    for key, pool in read_pools(slices).items():
        if isinstance(pool, InvalidInput):
            problems.append(f"pool {key.name} of {key.driver} gives no devices: {pool.message}")
            continue
        for part in pool:
            taken = tuple(
                TakenDevice(index, allocated[key.driver, key.name, name])
                for index, name in enumerate(part.devices)
                if (key.driver, key.name, name) in allocated
            )
            used[part.content] += 1
            sizes[part.content] = len(part.devices)
            one = DeviceSets(part.content, 1, taken, part.unavailable)
            found.setdefault(part.node, Counter())[one] += 1
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
        nodes={
            node: tuple(
                replace(one, set=names[one.set], count=count)
                for one, count in sorted(sets.items())
                if one.set in names
            )
            for node, sets in found.items()
        },
        problems=tuple(problems),
    )


def _allocations(
    claims: Iterable[ClaimAllocation], works: Mapping[tuple[str, str], str]
) -> Iterator[tuple[tuple[str, str, str], str]]:
    """Yield each allocated device, and the ManifestWork whose Pods have it alone."""
    for claim in claims:
        owners = {works.get(pod, "") for pod in claim.pods}
        work = owners.pop() if len(owners) == 1 else ""
        for device in claim.devices:
            yield device, work
