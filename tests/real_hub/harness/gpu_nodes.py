"""GPU nodes as NVIDIA's GPU operator leaves them, and the devices that its DRA driver publishes.

- Labels: GPU feature discovery (https://github.com/NVIDIA/k8s-device-plugin).
- Resources: the device plugin's, with the MIG strategy `mixed`: ``nvidia.com/mig-3g.40gb``.
- Devices: NVIDIA's DRA driver (https://github.com/NVIDIA/k8s-dra-driver-gpu); the counters of a
  GPU that is partitioned on demand are those of Kubernetes' KEP-4815.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .scheduled import KWOK_NODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .api import Object

GPU = "nvidia.com/gpu"
TRIED = "nvidia.com/mig.config.tried"
"""Annotation: the configuration that the MIG manager last tried. The real one asks the GPUs."""
DRIVER = "gpu.nvidia.com"
DRA = "resource.k8s.io/v1"
MIG_PROFILES = {
    "1g.10gb": (1, 16, range(7)),
    "1g.20gb": (2, 26, range(0, 8, 2)),
    "2g.20gb": (2, 32, range(0, 6, 2)),
    "3g.40gb": (4, 60, range(0, 8, 4)),
    "4g.40gb": (4, 64, range(1)),
    "7g.80gb": (8, 132, range(1)),
}
"""H100-80GB: memory slices, multiprocessors, and the slices at which an instance may start.

Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide (supported profiles).
"""
MEMORY_SLICES = 8
MULTIPROCESSORS = 132


@dataclass(frozen=True)
class GpuModel:
    """A model as GPU feature discovery names it; ``memory`` in MiB."""

    product: str
    memory: int
    family: str


H100 = GpuModel("NVIDIA-H100-80GB-HBM3", 81559, "hopper")
L40S = GpuModel("NVIDIA-L40S", 46068, "ada-lovelace")


def gpu_node(
    name: str,
    gpus: int = 0,
    *,
    model: GpuModel = H100,
    mig: Mapping[str, int] | None = None,
    cpu: str = "64",
    memory: str = "512Gi",
    pods: int = 110,
    cordoned: bool = False,
    ready: bool = True,
    device_plugin: bool = True,
    labels: Mapping[str, str] | None = None,
) -> Object:
    """A node with so many GPUs.

    ``mig`` are the MIG devices of all GPUs together, by profile; then there are no whole GPUs.
    Where a DRA driver serves the GPUs, there is no device plugin (``device_plugin=False``). A node
    that is not ready never becomes ready.
    """
    resources = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    if device_plugin and gpus:
        resources |= advertised(gpus, mig)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                **(discovered(gpus, model, mig) if gpus else {}),
                **(KWOK_NODE if ready else {}),
                **(labels or {}),
            },
            "annotations": {TRIED: config(mig)},
        },
        "spec": {"unschedulable": cordoned},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [] if ready else [{"type": "Ready", "status": "False"}],
        },
    }


def advertised(gpus: int, mig: Mapping[str, int] | None) -> dict[str, str]:
    """What the device plugin advertises; with MIG devices, the whole GPUs are none."""
    if mig is None:
        return {GPU: str(gpus)}
    return {GPU: "0", **{mig_resource(profile): str(count) for profile, count in mig.items()}}


def mig_resource(profile: str) -> str:
    """The extended resource of a MIG profile; the device plugin writes ``.me`` for ``+me``."""
    return f"nvidia.com/mig-{profile.replace('+', '.')}"


def discovered(gpus: int, model: GpuModel, mig: Mapping[str, int] | None) -> dict[str, str]:
    """The labels of GPU feature discovery and of the MIG manager."""
    capable = model.family in {"ampere", "hopper", "blackwell"}
    labels = {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": model.product,
        "nvidia.com/gpu.family": model.family,
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.memory": str(model.memory),
        "nvidia.com/mig.capable": str(capable).lower(),
    }
    if capable:
        labels |= {
            "nvidia.com/mig.strategy": "mixed",
            "nvidia.com/mig.config": config(mig),
            "nvidia.com/mig.config.state": "success",
        }
    return labels | mig_counts(mig or {})


def config(mig: Mapping[str, int] | None) -> str:
    """The MIG configuration of a new node."""
    return "all-disabled" if mig is None else "custom"


def mig_counts(mig: Mapping[str, int]) -> dict[str, str]:
    """The labels that count the MIG devices of a node by profile."""
    return {f"{mig_resource(profile)}.count": str(count) for profile, count in mig.items()}


def device_classes() -> list[Object]:
    """The DeviceClasses that NVIDIA's DRA driver installs for GPUs and MIG devices."""
    return [
        {
            "apiVersion": DRA,
            "kind": "DeviceClass",
            "metadata": {"name": f"{kind}.nvidia.com"},
            "spec": {
                "selectors": [
                    {
                        "cel": {
                            "expression": f"device.driver == '{DRIVER}' && "
                            f"device.attributes['{DRIVER}'].type == '{kind}'"
                        }
                    }
                ]
            },
        }
        for kind in ("gpu", "mig")
    ]


def resource_slices(
    node: str, gpus: int, *, model: GpuModel = H100, partitionable: bool = False
) -> list[Object]:
    """The ResourceSlices of a node, one per GPU: the GPU, and every MIG device it can have.

    A partitionable GPU is an H100-80GB; two of its devices exclude each other if they use the same
    memory slice or more multiprocessors than there are.
    """
    return [
        {
            "apiVersion": DRA,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-gpu-{index}"},
            "spec": {
                "driver": DRIVER,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": gpus},
                **gpu_devices(index, model, partitionable=partitionable),
            },
        }
        for index in range(gpus)
    ]


def gpu_devices(index: int, model: GpuModel, *, partitionable: bool) -> Object:
    """The devices and shared counters of one GPU."""
    name = f"gpu-{index}"
    whole = device(name, model, "gpu", model.memory)
    if not partitionable:
        return {"devices": [whole]}
    devices = [whole | consumes(name, range(MEMORY_SLICES), MULTIPROCESSORS)]
    for profile, (size, processors, starts) in MIG_PROFILES.items():
        for start in starts:
            instance = f"{name}-mig-{profile.replace('.', '-')}-{start}"
            part = device(instance, model, "mig", model.memory * size // MEMORY_SLICES, profile)
            devices.append(part | consumes(name, range(start, start + size), processors))
    counters = consumes(name, range(MEMORY_SLICES), MULTIPROCESSORS)["consumesCounters"][0]
    shared = {"name": counters["counterSet"], "counters": counters["counters"]}
    return {"sharedCounters": [shared], "devices": devices}


def device(name: str, model: GpuModel, kind: str, memory: int, profile: str = "") -> Object:
    """A device with the attributes by which claims select; ``memory`` in MiB."""
    attributes = {"type": kind, "productName": model.product.replace("-", " ")}
    if profile:
        attributes["profile"] = profile
    return {
        "name": name,
        "attributes": {key: {"string": value} for key, value in attributes.items()},
        "capacity": {"memory": {"value": f"{memory}Mi"}},
    }


def consumes(gpu: str, slices: range, processors: int) -> Object:
    """What a device takes of the counters of its GPU."""
    counters = {f"memory-slice-{number}": {"value": "1"} for number in slices}
    counters["multiprocessors"] = {"value": str(processors)}
    return {"consumesCounters": [{"counterSet": f"{gpu}-counters", "counters": counters}]}


def claim_template(
    name: str, namespace: str, *, device_class: str = DRIVER, count: int = 1, selector: str = ""
) -> Object:
    """A ResourceClaimTemplate that asks for devices of a class, chosen by a CEL expression."""
    exactly: Object = {"deviceClassName": device_class, "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {
        "apiVersion": DRA,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}},
    }


def mig_claim_template(name: str, namespace: str, profile: str) -> Object:
    """A ResourceClaimTemplate that asks for a MIG device of a profile."""
    selector = f"device.attributes['{DRIVER}'].profile == '{profile}'"
    return claim_template(name, namespace, device_class="mig.nvidia.com", selector=selector)


def pod(
    name: str,
    namespace: str,
    requests: Mapping[str, str] | None = None,
    *,
    claim: str = "",
    node: str = "",
    labels: Mapping[str, str] | None = None,
) -> Object:
    """A Pod with one container; ``claim`` names a template, and ``node`` bypasses the scheduler."""
    template = pod_template(requests, claim=claim, labels=labels)
    template["metadata"] |= {"name": name, "namespace": namespace}
    if node:
        template["spec"]["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", **template}


def pod_template(
    requests: Mapping[str, str] | None = None,
    *,
    claim: str = "",
    labels: Mapping[str, str] | None = None,
) -> Object:
    """The template of a Pod with one container that requests resources or devices."""
    resources: Object = {"requests": dict(requests or {})}
    # Extended resources cannot be overcommitted: their limit is their request.
    resources["limits"] = {key: value for key, value in resources["requests"].items() if "/" in key}
    spec: Object = {"terminationGracePeriodSeconds": 0}
    if claim:
        spec["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": claim}]
        resources["claims"] = [{"name": "gpus"}]
    spec["containers"] = [{"name": "main", "image": "app", "resources": resources}]
    return {"metadata": {"labels": dict(labels or {})}, "spec": spec}


def deployment(name: str, namespace: str, replicas: int, template: Object) -> Object:
    """A Deployment of Pods of a template."""
    labels = {"app": name}
    metadata = {"labels": {**template["metadata"].get("labels", {}), **labels}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {**template, "metadata": metadata},
        },
    }
