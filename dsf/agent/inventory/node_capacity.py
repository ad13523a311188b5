"""What a node has, and by what Pods choose it or are kept from it."""

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from dsf.agent.inventory.amounts import MAX_RESOURCES, Amounts, OneOfEach, pairs, read_amount
from dsf.api.conditions import is_true
from dsf.kube.port import Object

PUBLISHED_LABELS = frozenset(
    {
        "kubernetes.io/arch",
        "kubernetes.io/os",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "node.kubernetes.io/instance-type",
    }
)
"""The labels of nodes that are published, besides those of GPUs and those that a flag names."""

GPU_LABELS = ("nvidia.com/gpu.", "nvidia.com/mig.")
"""Prefixes of the labels of GPU feature discovery and of the MIG manager."""

GPU_OPERATOR_LABELS = "nvidia.com/gpu.deploy."
"""Prefix of labels that only say which parts of the GPU operator a node runs."""

MAX_LABELS = 64
"""Published labels of a node, and taints; with more, a node counts as one that has nothing."""

Labels = tuple[tuple[str, str], ...]
Taints = tuple[tuple[str, str, str], ...]


class NodeCapacity(NamedTuple):
    """A node; equal nodes have equal values. `taints` are (key, value, effect).

    `problems` say which of its numbers can't be believed; those count as 0.
    """

    ready: bool
    unschedulable: bool
    labels: Labels
    taints: Taints
    allocatable: Amounts
    problems: tuple[str, ...] = ()


class NodeReader:
    """Reads nodes, with the labels that are always published and those of `more`."""

    def __init__(self, more: tuple[str, ...] = ()) -> None:
        self._published = PUBLISHED_LABELS | set(more)
        self._amounts = OneOfEach[Amounts]()
        self._labels = OneOfEach[Labels]()

    def __call__(self, node: Object) -> NodeCapacity:
        """Return what the inventory keeps of a node."""
        spec, status = node.get("spec") or {}, node.get("status") or {}
        labels = self._labels_of(node["metadata"].get("labels") or {})
        taints = sorted(
            (sys.intern(str(one.get("key"))), str(one.get("value") or ""), str(one.get("effect")))
            for one in spec.get("taints") or ()
            if one.get("effect") in {"NoSchedule", "NoExecute"}
        )
        allocatable, problems = _allocatable(status.get("allocatable") or {})
        if len(labels) > MAX_LABELS or len(taints) > MAX_LABELS:
            many = f"{len(labels)} published labels and {len(taints)} taints, at most {MAX_LABELS}"
            problems, allocatable, labels, taints = [f"{many} are listed"], {}, (), []
        return NodeCapacity(
            is_true(node, "Ready"),
            bool(spec.get("unschedulable")),
            self._labels(labels),
            tuple(taints),
            self._amounts(pairs(allocatable)),
            tuple(problems),
        )

    def _labels_of(self, labels: Mapping[str, Any]) -> Labels:
        return tuple(
            sorted(
                (sys.intern(name), sys.intern(str(value)))
                for name, value in labels.items()
                if name in self._published
                or (name.startswith(GPU_LABELS) and not name.startswith(GPU_OPERATOR_LABELS))
            )
        )


def _allocatable(quantities: Mapping[str, Any]) -> tuple[dict[str, int], list[str]]:
    """Return what is allocatable, and what is wrong: that counts as 0."""
    if len(quantities) > MAX_RESOURCES:
        return {}, [f"status.allocatable has {len(quantities)} resources, at most {MAX_RESOURCES}"]
    read = {name: read_amount(each, down=True) for name, each in quantities.items()}
    problems = [
        f"status.allocatable[{name}] is {str(quantities[name])[:64]!r}"
        for name, amount in read.items()
        if amount is None
    ]
    return {sys.intern(name): amount for name, amount in read.items() if amount}, problems
