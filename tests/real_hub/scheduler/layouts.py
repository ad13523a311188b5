"""Random layouts: nodes, the Pods of others on them, and workloads whose Pods may or may not fit.

Amounts are whole numbers: cpu in thousandths, memory in MiB, devices and Pods in pieces.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..harness.gpu_nodes import (
    DRIVER,
    GPU,
    H100,
    L40S,
    MIG_PROFILES,
    claim_template,
    gpu_node,
    mig_claim_template,
    mig_resource,
    pod,
    resource_slices,
)

if TYPE_CHECKING:
    from ..harness.api import Object
    from ..harness.gpu_nodes import GpuModel

Amounts = Mapping[str, int]
NAMESPACE = "default"
PRODUCT = "nvidia.com/gpu.product"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
RESERVED = {"key": "reserved", "value": "training", "effect": "NoSchedule"}
"""The taint of nodes that are reserved; Pods tolerate it or don't."""
AVOIDED = {"key": "avoided", "effect": "PreferNoSchedule"}
"""A taint that keeps no Pod away."""
MIG_LAYOUTS: tuple[Mapping[str, int], ...] = (
    {"1g.10gb": 7},
    {"2g.20gb": 3, "1g.10gb": 1},
    {"3g.40gb": 2},
    {"4g.40gb": 1, "3g.40gb": 1},
)
SORTS = ("gpu", "mig", "cpu", "dra")
"""Nodes with whole GPUs, with MIG devices, without GPUs, and with GPUs of a DRA driver."""
WHOLE = "gpu"
"""The claim of a whole GPU; others name a MIG profile."""


@dataclass(frozen=True)
class LayoutNode:
    """A node; ``shared`` are GPUs that a DRA driver partitions on demand, ``whole`` those it does
    not. The device plugin serves all others, which ``amounts`` counts."""

    name: str
    amounts: Amounts
    model: GpuModel = H100
    gpus: int = 0
    mig: Mapping[str, int] | None = None
    whole: int = 0
    shared: int = 0
    ready: bool = True
    cordoned: bool = False
    reserved: bool = False
    avoided: bool = False
    zone: str = ""

    def objects(self) -> list[Object]:
        """The node as the API server has it, after its ResourceSlices."""
        node = gpu_node(
            self.name,
            self.gpus or self.whole or self.shared,
            model=self.model,
            mig=self.mig,
            cpu=f"{self.amounts['cpu']}m",
            memory=f"{self.amounts['memory']}Mi",
            pods=self.amounts["pods"],
            cordoned=self.cordoned,
            ready=self.ready,
            device_plugin=bool(self.gpus),
            labels={ZONE: self.zone} if self.zone else {},
        )
        node["spec"]["taints"] = [RESERVED] * self.reserved + [AVOIDED] * self.avoided
        count, partitionable = self.whole or self.shared, bool(self.shared)
        slices = resource_slices(self.name, count, model=self.model, partitionable=partitionable)
        return [*slices, node]

    @property
    def usable(self) -> bool:
        """Whether the scheduler may put Pods here that tolerate the node's own taint."""
        return self.ready and not self.cordoned

    @property
    def kept_taints(self) -> set[str]:
        """The keys of the taints that keep Pods away, once Kubernetes knows the node."""
        taints = {
            "reserved": self.reserved,
            "node.kubernetes.io/unschedulable": self.cordoned,
            "node.kubernetes.io/not-ready": not self.ready,
        }
        return {key for key, here in taints.items() if here}


@dataclass(frozen=True)
class PodSet:
    """Equal Pods: the workload's, or another's if they have a ``node``.

    ``first`` is what a container requests that ends before the main one starts, and ``beside`` what
    one requests that runs all the time; ``whole`` is what the Pod requests in place of all of them.
    ``zones`` is an operator and values.
    """

    name: str
    count: int
    amounts: Amounts
    first: Amounts | None = None
    beside: Amounts | None = None
    whole: Amounts | None = None
    claim: str = ""
    product: str = ""
    zones: tuple[str, tuple[str, ...]] | None = None
    tolerates: bool = False
    node: str = ""
    finished: bool = False

    @property
    def effective(self) -> dict[str, int]:
        """What the scheduler counts for one Pod; a Pod counts as one of ``pods``."""
        if self.finished:
            return {}
        first, beside = self.first or {}, self.beside or {}
        total = {
            key: max(self.amounts.get(key, 0), first.get(key, 0)) + beside.get(key, 0)
            for key in {*self.amounts, *first, *beside}
        }
        return {**total, **(self.whole or {}), "pods": 1}

    def objects(self) -> list[Object]:
        """The Pods, without the template of their claim."""
        return [self._pod(f"{self.name}-{number}") for number in range(self.count)]

    def _pod(self, name: str) -> Object:
        # Only the scheduler allocates devices, so a Pod with a claim has to ask for its node.
        node = "" if self.claim else self.node
        claim = claim_name(self.claim)
        found = pod(name, NAMESPACE, quantities(self.amounts), claim=claim, node=node)
        spec = found["spec"]
        selected = {HOST: "" if node else self.node, PRODUCT: self.product}
        spec["nodeSelector"] = {key: value for key, value in selected.items() if value}
        if self.zones:
            operator, values = self.zones
            term = {"matchExpressions": [{"key": ZONE, "operator": operator, "values": values}]}
            required = {"nodeSelectorTerms": [term]}
            affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
            spec["affinity"] = {"nodeAffinity": affinity}
        if self.whole:
            spec["resources"] = {"requests": quantities(self.whole)}
        for word, amounts, more in (
            ("beside", self.beside, {"restartPolicy": "Always"}),
            ("first", self.first, {}),
        ):
            if amounts:
                resources = {"requests": quantities(amounts)}
                container = {"name": word, "image": "app", "resources": resources, **more}
                spec.setdefault("initContainers", []).append(container)
        if self.tolerates:
            spec["tolerations"] = [{"key": "reserved", "operator": "Exists"}]
        if self.finished:
            spec["restartPolicy"] = "Never"
        return found


def quantities(amounts: Amounts) -> dict[str, str]:
    """Amounts as Kubernetes' quantities, in different notations."""
    spelled = {}
    for key, value in amounts.items():
        if key == "cpu":
            spelled[key] = str(value // 1000) if value % 1000 == 0 else f"{value}m"
        elif key == "memory":
            spelled[key] = f"{value // 1024}Gi" if value % 1024 == 0 else str(value << 20)
        else:
            spelled[key] = str(value)
    return spelled


def claim_name(claim: str) -> str:
    """The name of the template of a claim."""
    return claim.replace(".", "-")


def claim_templates() -> list[Object]:
    """The templates of all claims that Pods of layouts have."""
    parts = [mig_claim_template(claim_name(each), NAMESPACE, each) for each in MIG_PROFILES]
    return [claim_template(WHOLE, NAMESPACE, device_class=DRIVER), *parts]


@dataclass(frozen=True)
class Layout:
    """Nodes, the Pods of others on them, and workloads."""

    seed: int
    nodes: tuple[LayoutNode, ...]
    others: tuple[PodSet, ...]
    workloads: tuple[PodSet, ...]


def random_layout(seed: int) -> Layout:
    """Return the layout of a seed: one to five nodes of one or two sorts, one to three workloads.

    Workloads ask for about what is free, so that some fit and some do not.
    """
    draw = random.Random(seed)  # noqa: S311 - no secret
    sorts = draw.sample(SORTS, k=draw.choice([1, 1, 2]))
    # KWOK may still write to a deleted node, so no two layouts share a name.
    names = (f"node-{seed}-{n}" for n in range(draw.randint(1, 5)))
    nodes = tuple(_node(draw, name, draw.choice(sorts)) for name in names)
    drawn = [
        other
        for number in range(draw.choice([0, 1, 2, 3]))
        for other in _other(draw, f"other-{number}", nodes)
    ]
    # Two claims fit on a GPU, whichever devices they get; a third one could wait for ever.
    claimed = [other.node for other in drawn if other.claim]
    others = tuple(i for i in drawn if not i.claim or claimed.count(i.node) <= 2)
    usable = [node for node in nodes if node.usable] or nodes
    workloads = tuple(
        _workload(draw, f"work-{number}", draw.choice(usable))
        for number in range(draw.randint(1, 3))
    )
    return Layout(seed, nodes, others, workloads)


def _node(draw: random.Random, name: str, sort: str) -> LayoutNode:
    amounts = {
        "cpu": draw.choice([4000, 8000, 16000]),
        "memory": draw.choice([8192, 16384, 32768]),
        "pods": draw.choice([3, 110, 110, 110]),
    }
    node = LayoutNode(name, amounts, zone=draw.choice(["", "a", "b"]))
    if sort == "gpu":
        gpus, model = draw.choice([1, 2, 4, 8]), draw.choice([H100, H100, L40S])
        node = replace(node, gpus=gpus, model=model, amounts={**amounts, GPU: gpus})
    if sort == "mig":
        gpus, mig = draw.choice([1, 2]), draw.choice(MIG_LAYOUTS)
        devices = {profile: gpus * count for profile, count in mig.items()}
        named = {mig_resource(profile): count for profile, count in devices.items()}
        node = replace(node, gpus=gpus, mig=devices, amounts={**amounts, **named})
    if sort == "dra":
        whole, shared = draw.choice([(1, 0), (2, 0), (0, 1), (0, 1), (0, 2)])
        node = replace(node, whole=whole, shared=shared)
    state = draw.choice([*[""] * 8, "not ready", "cordoned", "reserved", "avoided"])
    return replace(
        node,
        ready=state != "not ready",
        cordoned=state == "cordoned",
        reserved=state == "reserved",
        avoided=state == "avoided",
    )


def _other(draw: random.Random, name: str, nodes: tuple[LayoutNode, ...]) -> list[PodSet]:
    """Pods of others on one node: some have ended, and some were bound to a node that is full."""
    node = draw.choice([node for node in nodes if node.ready] or nodes)
    if not node.ready:
        return []
    amounts = {
        "cpu": draw.choice([500, 1000, 2500]),
        "memory": draw.choice([512, 1024, 4096]),
        **{
            key: draw.randint(1, max(1, count // 2))
            for key, count in node.amounts.items()
            if "/" in key and draw.random() < 0.7
        },
    }
    other = PodSet(name, 1, amounts, node=node.name, finished=draw.random() < 0.2)
    if node.shared and node.usable and draw.random() < 0.7:
        small = {"cpu": 100, "memory": 128}
        claim = draw.choice(["1g.10gb", "2g.20gb", "3g.40gb"])
        other = PodSet(name, 1, small, claim=claim, tolerates=True, node=node.name)
    return [other]


def _workload(draw: random.Random, name: str, node: LayoutNode) -> PodSet:
    """Pods that one node could run, if nothing else ran there."""
    amounts = {
        "cpu": draw.choice([250, 1000, 2000, 3500]),
        "memory": draw.choice([300, 1024, 6144]),
    }
    devices = [key for key in node.amounts if "/" in key]
    claim = ""
    if devices:
        key = draw.choice(devices)
        most = node.amounts[key]
        amounts[key] = draw.choice([size for size in (1, 1, 2, 2, 3, 4) if size <= most])
    elif node.shared:
        claim = draw.choice([WHOLE, *MIG_PROFILES])
    elif node.whole:
        claim = WHOLE
    containers = draw.random()
    first = {"cpu": draw.choice([1000, 4000])} if containers < 0.2 else None
    beside = {"cpu": 100, "memory": 128} if 0.1 < containers < 0.3 else None
    zones = draw.choice([("In", ("a",)), ("NotIn", ("a", "b")), ("NotIn", ("b",)), ("Exists", ())])
    found = PodSet(
        name,
        draw.choice([1, 1, 2] if claim else [1, 1, 2, 2, 3]),
        amounts,
        first,
        beside,
        claim=claim,
        product=node.model.product if draw.random() < 0.2 and not claim and devices else "",
        zones=zones if draw.random() < 0.2 else None,
        tolerates=node.reserved or draw.random() < 0.2,
    )
    if draw.random() < 0.1:
        more = {"cpu": 500, "memory": 256}
        found = replace(found, whole={key: found.effective[key] + more[key] for key in more})
    return found
