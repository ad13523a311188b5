"""Devices of dynamic resource allocation on nodes, and the claims by which Pods ask for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Version(NamedTuple):
    """A semantic version, which is no string to a selector."""

    text: str


AttributeValue = str | int | bool | Version


@dataclass(frozen=True, slots=True)
class Device:
    """A device, with the names of attributes and capacities as its driver publishes them.

    `identities`: attributes whose value is not known; devices of a set that have the same number
    have the same value. `consumes`: of each counter of its set, while it is allocated.
    """

    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    identities: tuple[tuple[str, int], ...] = ()
    capacity: tuple[tuple[str, float], ...] = ()
    consumes: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceSet:
    """Devices of a driver that share counters, such as a GPU and its MIG devices."""

    driver: str
    devices: tuple[Device, ...]
    counters: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """Equal device sets of a node.

    `taken`: the devices that are allocated, by index. `unavailable`: those that a claim may not
    get, which take nothing of the counters.
    """

    devices: DeviceSet
    count: int = 1
    taken: frozenset[int] = frozenset()
    unavailable: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A number of devices of a DeviceClass that match each selector; `every`: all that match."""

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    count: int = 1
    every: bool = False


class MatchAttribute(NamedTuple):
    """Devices of the requests (of all, if empty) have the same value of an attribute."""

    attribute: str
    requests: tuple[str, ...] = ()


class DeviceClaim(NamedTuple):
    """What one ResourceClaim asks for: of each request one of its alternatives, the first first."""

    requests: tuple[tuple[ClaimRequest, ...], ...]
    constraints: tuple[MatchAttribute, ...] = ()


class DeviceClass(NamedTuple):
    """A DeviceClass of a cluster; `resource`: what Pods may request instead of a claim."""

    selectors: tuple[str, ...] = ()
    resource: str = ""


DeviceClasses = Mapping[str, DeviceClass]
"""The DeviceClasses of a cluster, by name."""


def attribute(driver: str, device: Device, name: str) -> AttributeValue | int | None:
    """Return the value of an attribute by its full name, or its identity; None if it has none."""
    domain, _, short = name.rpartition("/")
    for key, value in (*device.attributes, *device.identities):
        if key == name or (domain == driver and key == short):
            return value
    return None
