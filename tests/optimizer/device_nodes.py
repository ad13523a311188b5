"""Devices of nodes, and claims for them, as the optimizer reads them from what agents report."""

from collections.abc import Iterable, Sequence
from typing import Any

from dsf.agent.inventory.device_classes import read_class
from dsf.agent.inventory.device_pools import read_slice
from dsf.agent.inventory.devices import read_claim, summarize_devices
from optimizer.domain.dra.allocation import Claims
from optimizer.domain.dra.device_sets import (
    ClaimRequest,
    DeviceClaim,
    DeviceClasses,
    MatchAttribute,
    NodeDevices,
)
from optimizer.domain.dra.selectors import NotEvaluated
from optimizer.domain.dra.wanted_claims import ClusterClaims
from optimizer.snapshot.capacity.device_inventory import (
    read_device_classes,
    read_device_sets,
    read_node_devices,
)
from tests.device_slices import nvidia_classes

CLASSES: DeviceClasses = read_device_classes(list(map(read_class, nvidia_classes())))


def node(slices: Iterable[Any], claims: Iterable[Any] = ()) -> tuple[NodeDevices, ...]:
    """Return the devices of the only node of ResourceSlices."""
    summary = summarize_devices(map(read_slice, slices), map(read_claim, claims), {})
    assert summary.problems == ()
    sets = read_device_sets(summary.sets)
    (listed,) = summary.nodes.values()
    return read_node_devices([item.document() for item in listed], sets).devices


def profile(name: str) -> tuple[str, ...]:
    """Return the selector of a MIG profile."""
    return (f"device.attributes['gpu.nvidia.com'].profile == '{name}'",)


def mig(name: str, count: int = 1) -> DeviceClaim:
    """Return a claim for MIG devices."""
    return DeviceClaim(((ClaimRequest("mig", "mig.nvidia.com", profile(name), count),),))


def gpus(count: int = 1, *, every: bool = False) -> DeviceClaim:
    """Return a claim for whole GPUs."""
    return DeviceClaim(((ClaimRequest("gpu", "gpu.nvidia.com", (), count, every),),))


def one_gpu(*profiles: str) -> DeviceClaim:
    """Return a claim for MIG devices of the same GPU."""
    requests = [
        (ClaimRequest(f"r{place}", "mig.nvidia.com", profile(name)),)
        for place, name in enumerate(profiles)
    ]
    return DeviceClaim(tuple(requests), (MatchAttribute("gpu.nvidia.com/parentUUID"),))


def wanted(devices: Sequence[NodeDevices], *claims: DeviceClaim) -> Claims:
    """Return the claims of a Pod with the devices of a node that match."""
    found = ClusterClaims.of(CLASSES, [devices]).wanted(claims)
    assert not isinstance(found, NotEvaluated)
    return found
