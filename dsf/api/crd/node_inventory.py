"""NodeInventory: what the nodes of a managed cluster have, and what Pods there request."""

from typing import Annotated, Literal

from pydantic import Field

from dsf.api.crd.structural_schema import AtomicList, ConditionList, Timestamp
from dsf.api.wire_model import WireModel

MAX_NODE_GROUPS = 500
"""Groups of equal nodes that an inventory lists; with more, similar nodes share a group."""

MAX_NODE_NAMES = 2_000
"""Names of nodes that an inventory lists in all: of nodes with GPUs, which policies name."""

MAX_WORKS = 2_000
"""ManifestWorks whose Pods an inventory lists."""

MAX_DEVICES = 1_000
"""Devices of dynamic resource allocation that an inventory describes, in all device sets."""

MAX_DEVICE_CLASSES = 200
"""DeviceClasses that an inventory lists."""

MAX_SELECTOR_LENGTH = 2_048
"""Characters of a CEL selector that is listed or evaluated; Kubernetes accepts 10,240."""

Quantities = Annotated[
    dict[str, str],
    Field(description="Quantities by resource, such as cpu, memory, pods and nvidia.com/gpu."),
]


class InventoriedTaint(WireModel):
    """A taint that keeps Pods from a node (`core/v1` Taint); PreferNoSchedule keeps none."""

    key: str = Field(description="The taint's key.")
    value: str = Field("", description="The taint's value.")
    effect: Literal["NoSchedule", "NoExecute"] = Field(
        description="NoExecute removes Pods that run there, too."
    )


class NodeWorkPods(WireModel):
    """The Pods of one ManifestWork on each node of a group."""

    name: str = Field(description="Name of the ManifestWork, in the namespace of the cluster.")
    requested: Quantities


class InventoriedDevice(WireModel):
    """A device that DRA allocates, with its attributes by type."""

    strings: dict[str, str] | None = Field(None, description="Attributes that are strings.")
    versions: dict[str, str] | None = Field(None, description="Semantic versions.")
    ints: dict[str, int] | None = Field(None, description="Attributes that are numbers.")
    bools: dict[str, bool] | None = Field(None, description="Attributes that are true or false.")
    identities: dict[str, int] | None = Field(
        None,
        description="Attributes that tell the device or its GPU from equal ones, such as uuid and"
        " pciBusID. Devices of the set with the same number have the same value.",
    )
    capacity: dict[str, str] | None = Field(None, description="Capacities by name, as quantities.")
    consumes: dict[str, str] | None = Field(
        None, description="What it takes of the set's counters while it is allocated."
    )


class InventoriedDeviceSet(WireModel):
    """Devices of one driver that share counters, such as a GPU and its MIG devices, or one device.

    Sets are listed once, however many nodes have them.
    """

    name: str = Field(description="Name of the set in this inventory.")
    driver: str = Field(description="The DRA driver's name, such as gpu.nvidia.com.")
    counters: dict[str, str] | None = Field(
        None, description="The counters that the devices share, as quantities."
    )
    devices: AtomicList[InventoriedDevice] = Field(
        description="The devices in the order of their ResourceSlices, in which kube-scheduler"
        " tries them."
    )


class AllocatedDevice(WireModel):
    """A device of a set that a ResourceClaim has."""

    device: Annotated[int, Field(ge=0, description="Index of the device in its set.")]
    work: str = Field("", description="The ManifestWork whose Pod has it; empty: none's.")


class NodeDeviceSets(WireModel):
    """Equal device sets of each node of a group, with the same devices allocated."""

    set: str = Field(description="Name of the device set.")
    count: int = Field(ge=1, description="How many such sets each of the nodes has.")
    allocated: AtomicList[AllocatedDevice] | None = Field(
        None, description="Devices that ResourceClaims have."
    )
    unavailable: AtomicList[Annotated[int, Field(ge=0)]] | None = Field(
        None,
        description="Indexes of devices that are not counted: they have a taint, or a feature"
        " that is not supported.",
    )


class InventoriedDeviceClass(WireModel):
    """A DeviceClass of the cluster (`resource.k8s.io/v1`)."""

    name: str = Field(description="The DeviceClass's name.")
    selectors: AtomicList[str] | None = Field(
        None, description="Its selectors, in CEL; a device has to match all."
    )
    extended_resource_name: str | None = Field(
        None, description="The resource that Pods may request for a device of the class."
    )


class InventoriedNodes(WireModel):
    """Nodes that are equal in everything that is listed here."""

    count: int = Field(ge=1, description="How many nodes they are.")
    names: AtomicList[str] | None = Field(None, description="Their names, of nodes with GPUs.")
    ready: bool = Field(description="The nodes' condition Ready is True.")
    unschedulable: bool = Field(False, description="They are cordoned (spec.unschedulable).")
    labels: dict[str, str] | None = Field(
        None, description="The labels by which Pods choose nodes, and those of GPUs."
    )
    taints: AtomicList[InventoriedTaint] | None = Field(
        None, description="Taints that keep Pods away."
    )
    allocatable: Quantities = Field(description="status.allocatable of each of the nodes.")
    requested: Quantities = Field(
        description="What all Pods on each of the nodes request, those of ManifestWorks included."
    )
    devices: AtomicList[NodeDeviceSets] | None = Field(
        None, description="Devices of dynamic resource allocation on each of the nodes."
    )
    works: AtomicList[NodeWorkPods] | None = Field(
        None, description="What ManifestWorks' Pods on each of the nodes request."
    )


class WorkPods(WireModel):
    """The Pods of one ManifestWork in the cluster. Completed Pods are not counted."""

    name: str = Field(description="Name of the ManifestWork, in the namespace of the cluster.")
    running: int = Field(0, description="Pods in phase Running.")
    ready: int = Field(0, description="Running Pods whose condition Ready is True.")
    pending: int = Field(0, description="Pods in phase Pending.")
    requested: Quantities = Field(description="What they request, the pending ones included.")
    pending_since: Timestamp | None = Field(
        None, description="When the oldest pending Pod was created."
    )
    pending_reason: str | None = Field(
        None,
        max_length=1024,
        description="Reason of the oldest pending Pod's condition PodScheduled, such as"
        " Unschedulable, or what its container waits for, such as ImagePullBackOff.",
    )
    pending_message: str | None = Field(
        None, max_length=1024, description="What the scheduler says, cut to 1024 characters."
    )


class OtherPods(WireModel):
    """The Pods of no ManifestWork, as a sum."""

    running: int = Field(0, description="Pods that are bound to a node.")
    pending: int = Field(0, description="Pods that are bound to none.")
    requested: Quantities = Field(description="What the running ones request.")
    pending_requested: Quantities = Field(description="What the pending ones request.")


class NodeInventoryStatus(WireModel):
    """Capacity and requests of the cluster's nodes at one moment."""

    observed_time: Timestamp | None = Field(None, description="When the agent last confirmed it.")
    valid_until: Timestamp | None = Field(None, description="From then on it is not relied on.")
    nodes: AtomicList[InventoriedNodes] | None = Field(
        None, max_length=MAX_NODE_GROUPS, description="All nodes, in groups of equal ones."
    )
    device_sets: AtomicList[InventoriedDeviceSet] | None = Field(
        None, max_length=MAX_DEVICES, description="The device sets that nodes have."
    )
    device_classes: AtomicList[InventoriedDeviceClass] | None = Field(
        None,
        max_length=MAX_DEVICE_CLASSES,
        description="The DeviceClasses by which Pods ask for devices.",
    )
    works: AtomicList[WorkPods] | None = Field(
        None, max_length=MAX_WORKS, description="Pods by ManifestWork."
    )
    others: OtherPods | None = Field(None, description="Pods of no ManifestWork, as a sum.")
    node_count: int | None = Field(None, description="All nodes.")
    ready_nodes: int | None = Field(None, description="Ready nodes that are not cordoned.")
    pending_pods: int | None = Field(None, description="Pods that are Pending.")
    largest_free: dict[str, str] | None = Field(
        None, description="The most of each resource that is free on one node."
    )
    conditions: ConditionList | None = None
