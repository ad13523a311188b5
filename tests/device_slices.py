"""ResourceSlices, ResourceClaims and DeviceClasses as drivers for GPUs publish them.

What the slices of NVIDIA's driver look like with dynamic MIG is a fact of its source
(https://github.com/NVIDIA/k8s-dra-driver-gpu, cmd/gpu-kubelet-plugin/partitions.go and mig.go at
v25.12): one counter set for each GPU, with its engines and one counter for each memory slice; the
GPU itself consumes all of it, a MIG device its share and the slices of its placement.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Object = dict[str, Any]

DRIVER = "gpu.nvidia.com"
GIB = 2**30

A100: tuple[tuple[str, int, int, tuple[int, ...]], ...] = (
    ("1g.5gb", 14, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("2g.10gb", 28, 2, (0, 2, 4)),
    ("3g.20gb", 42, 4, (0, 4)),
    ("7g.40gb", 98, 8, (0,)),
)
"""Profiles of an A100 with 40 GB: multiprocessors, memory slices, and where they may start.

Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html
"""


def counters(multiprocessors: int, slices: Iterable[int]) -> Object:
    """Return counters of a GPU or of a part of it."""
    amounts = {"multiprocessors": multiprocessors} | {f"memory-slice-{one}": 1 for one in slices}
    return {name: {"value": str(amount)} for name, amount in amounts.items()}


def attributes(kind: str, minor: int, node: str, **more: str) -> Object:
    """Return the attributes that GPUs and MIG devices have in common."""
    uuid = {"gpu": "uuid", "mig": "parentUUID"}[kind]
    strings = {
        "type": kind,
        uuid: f"GPU-{node}-{minor}",
        "productName": "NVIDIA A100-SXM4-40GB",
        "architecture": "Ampere",
        "resource.kubernetes.io/pciBusID": f"0000:0{minor}:00.0",
        **more,
    }
    found: Object = {name: {"string": value} for name, value in strings.items()}
    return found | {"driverVersion": {"version": "580.65.6"}}


def mig_gpu(minor: int, node: str) -> Iterator[Object]:
    """Yield the devices of a GPU with dynamic MIG."""
    name = f"gpu-{minor}-counter-set"
    yield {
        "name": f"gpu-{minor}",
        "attributes": attributes("gpu", minor, node),
        "capacity": {"memory": {"value": "40Gi"}, "multiprocessors": {"value": "98"}},
        "consumesCounters": [{"counterSet": name, "counters": counters(98, range(8))}],
    }
    for profile, multiprocessors, size, starts in A100:
        for start in starts:
            takes = counters(multiprocessors, range(start, start + size))
            memory = {"value": f"{size * 5}Gi"}
            yield {
                "name": f"gpu-{minor}-mig-{profile.replace('.', '')}-{start}",
                "attributes": attributes("mig", minor, node, profile=profile),
                "capacity": {"memory": memory, "multiprocessors": takes["multiprocessors"]},
                "consumesCounters": [{"counterSet": name, "counters": takes}],
            }


def plain_gpu(minor: int, node: str) -> Object:
    """Return a GPU without partitions."""
    return {
        "name": f"gpu-{minor}",
        "attributes": attributes("gpu", minor, node),
        "capacity": {"memory": {"value": "40Gi"}},
    }


def resource_slice(
    node: str, devices: Sequence[Object], *, generation: int = 1, count: int = 1, **spec: Any
) -> Object:
    """Return a slice of the pool that has the name of its node."""
    place = {} if "allNodes" in spec or "perDeviceNodeSelection" in spec else {"nodeName": node}
    pool = {"name": node, "generation": generation, "resourceSliceCount": count}
    name = f"{node}-{spec.pop('number', 0)}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "pool": pool, **place, "devices": list(devices), **spec},
    }


def mig_slice(node: str, gpus: int = 1, **spec: Any) -> Object:
    """Return the slice of a node whose GPUs are divided by MIG on demand."""
    devices = [device for minor in range(gpus) for device in mig_gpu(minor, node)]
    shared = [
        {"name": f"gpu-{minor}-counter-set", "counters": counters(98, range(8))}
        for minor in range(gpus)
    ]
    return resource_slice(node, devices, sharedCounters=shared, **spec)


def claim(name: str, node: str, *devices: str, pods: Sequence[str] = (), **result: Any) -> Object:
    """Return a ResourceClaim that has devices of a node, reserved for Pods of namespace shop."""
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": node, "device": device, **result}
        for device in devices
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": pod} for pod in pods],
        },
    }


def device_class(name: str, *selectors: str, **spec: Any) -> Object:
    """Return a DeviceClass."""
    cel = [{"cel": {"expression": text}} for text in selectors]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": cel, **spec},
    }


def nvidia_classes() -> list[Object]:
    """Return the DeviceClasses of the driver's chart."""
    text = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == '{}'"
    return [
        device_class("gpu.nvidia.com", text.format("gpu"), extendedResourceName="nvidia.com/gpu"),
        device_class("mig.nvidia.com", text.format("mig")),
    ]
