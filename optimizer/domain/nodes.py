"""Nodes and Pods as kube-scheduler sees them: what is on one node can't be asked of two.

Resources have the names of Kubernetes: cpu, memory, pods, nvidia.com/gpu, nvidia.com/mig-3g.40gb.
Amounts are numbers in the base unit: cores, bytes, devices.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple

from dsf.placement import Taint, Toleration
from optimizer.domain.dra.device_sets import Device, DeviceClaim, NodeDevices

GPU_KIND = "gpu"
"""The kind of resource that GPUs and their MIG devices supply."""

WHOLE_GPU = "all"
"""The device that a GPU without MIG supplies, as the guide's policies name it."""

GPU_RESOURCE, MIG_PREFIX = "nvidia.com/gpu", "nvidia.com/mig-"
"""What NVIDIA's device plugin advertises: whole GPUs, and with strategy mixed MIG devices."""

PODS = "pods"
"""The resource of nodes that counts Pods: each Pod takes one."""

PRODUCT = "nvidia.com/gpu.product"
"""The label of GPU feature discovery with the model of GPUs."""

MIG_PRODUCT_MARK = "-MIG-"
"""What a product's label has before the profile, where MIG devices are advertised as GPUs."""


def kind_and_device(resource: str) -> tuple[str, str]:
    """Return the kind and device that a resource of nodes is: (gpu, 3g.40gb), (cpu, "")."""
    if resource == GPU_RESOURCE:
        return GPU_KIND, WHOLE_GPU
    if resource.startswith(MIG_PREFIX):
        return GPU_KIND, resource.removeprefix(MIG_PREFIX)
    return resource, ""


def resource_of(kind: str, device: str) -> str:
    """Return the resource of nodes that a device of a kind is; the other way round."""
    if kind != GPU_KIND:
        return kind
    return GPU_RESOURCE if device == WHOLE_GPU else MIG_PREFIX + device


def scored_as(driver: str, device: Device) -> tuple[str, str]:
    """Return the kind and device by which scores and supplies name a device.

    A MIG device has its profile, another GPU is `all`; what is no GPU has its driver as its kind.
    """
    values = dict(device.attributes)
    if isinstance(profile := values.get("profile"), str):
        return GPU_KIND, profile
    if values.get("type") == GPU_KIND or driver.startswith("gpu."):
        return GPU_KIND, WHOLE_GPU
    return driver, ""


Packing = Literal["AnyOrder", "BestFit"]
"""Which Pods start: those that do on whatever nodes, or those that do if the largest come first."""

Amounts = Mapping[str, float]
"""Amounts by resource; a resource that is missing is none."""


class NodeSelectorTerm(NamedTuple):
    """A condition on one label of a node (`core/v1` NodeSelectorRequirement)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Equal nodes on which Pods can start; `devices` on each of them are allocated by claims.

    `names`: empty unless the nodes have GPUs. `taken`: what Pods on each of the nodes hold that the
    request does not decide about. `held`: what Pods of workloads of the request hold on each of
    them, by workload.
    """

    count: int
    allocatable: Amounts = field(hash=False)
    taken: Amounts = field(default_factory=dict, hash=False)
    held: tuple[tuple[str, Amounts], ...] = field(default=(), hash=False)
    names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    taints: tuple[Taint, ...] = ()
    devices: tuple[NodeDevices, ...] = field(default=(), hash=False)

    @property
    def free(self) -> Amounts:
        """What Pods of the request can have of each node; Pods are unlimited unless it is said."""
        every = {PODS: inf, **self.allocatable}
        return {name: amount - self.taken.get(name, 0.0) for name, amount in every.items()}


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Equal Pods that one replica of a workload starts on its cluster, and where they may run.

    `affinity`: of each inner tuple all terms hold, of the outer one at least one (empty: any node).
    `per_node`: one Pod on each node that fits (DaemonSet); `count` is 0 then.
    """

    count: int
    requests: Amounts = field(hash=False)
    affinity: tuple[tuple[NodeSelectorTerm, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    per_node: bool = False
    claims: tuple[DeviceClaim, ...] = ()
