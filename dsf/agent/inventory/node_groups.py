"""Groups of equal nodes; where they are too many, of similar ones, as the worst of them.

Free of a group, whichever ManifestWorks' Pods are counted as free, is never more than it is on any
of its nodes: a group has the least allocatable, the most requested and the least that each
ManifestWork holds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from dsf.agent.inventory.amounts import ONE, Amounts, is_device, pairs, quantities
from dsf.agent.inventory.devices import DeviceSets
from dsf.agent.inventory.node_capacity import Labels, NodeCapacity, Taints
from dsf.agent.inventory.pod_sums import NodeSums
from dsf.agent.inventory.pod_use import EVERYTHING
from dsf.api.crd.node_inventory import MAX_NODE_GROUPS, MAX_NODE_NAMES
from dsf.kube.port import Object

MAX_BYTES = 512 << 10
"""JSON of all groups without names: with all else an inventory fits into etcd's 1.5 MiB."""

MAX_NAME_BYTES = 128 << 10


class NodeState(NamedTuple):
    """All that the inventory says of a node: nodes with equal states are one group."""

    ready: bool
    unschedulable: bool
    labels: Labels
    taints: Taints
    allocatable: Amounts
    requested: Amounts
    works: tuple[tuple[str, Amounts], ...] = ()
    devices: tuple[DeviceSets, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether new Pods can start there at all."""
        return self.ready and not self.unschedulable

    @property
    def free(self) -> dict[str, int]:
        """What is allocatable and not requested."""
        taken = dict(self.requested)
        return {name: most - taken.get(name, 0) for name, most in self.allocatable}

    @property
    def has_gpus(self) -> bool:
        """Whether it is one of the nodes that policies name."""
        named = (*(name for name, _ in self.labels), *(name for name, _ in self.allocatable))
        return any(name.startswith("nvidia.com/") for name in named)


NOTHING = NodeSums()


def node_state(node: NodeCapacity, sums: NodeSums) -> NodeState:
    """Return the state of a node; a resource that some Pod requests unreadably is all taken.

    It stays so without the Pods of any ManifestWork, which therefore hold none of it.
    """
    allocatable = dict(node.allocatable)
    requested = {name: sums.requested.get(name, 0) for name in allocatable}
    everything = EVERYTHING in sums.unreadable
    unreadable = allocatable.keys() & (allocatable if everything else sums.unreadable).keys()
    for name in unreadable:
        requested[name] = max(requested[name], allocatable[name])
    readable = allocatable.keys() - unreadable
    works = tuple(
        (work, each)
        for work, held in sorted(sums.works.items())
        if (each := pairs({name: held.get(name, 0) for name in readable}))
    )
    return NodeState(
        node.ready,
        node.unschedulable,
        node.labels,
        node.taints,
        node.allocatable,
        pairs(requested),
        works,
    )


@dataclass(slots=True)
class AlikeNodes:
    """A state, and the names of the nodes that have it or a better one."""

    state: NodeState
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GroupedNodes:
    """Groups as the inventory lists them. `merged` nodes are listed as worse than they are.

    `left_out` nodes are not listed, `unnamed` ones have GPUs but are listed without their names.
    """

    groups: tuple[AlikeNodes, ...]
    documents: list[Object]
    merged: int = 0
    left_out: int = 0
    unnamed: int = 0


Similarity = Callable[[NodeState], Any]


def _similar(significant: int, shares: int, device_shares: int | None = None) -> Similarity:
    """Return what similar nodes have in common.

    Allocatable has the same `significant` bits, and the same number of `shares` of it is requested,
    of devices the same number of `device_shares` (0: they are equal). None: only equal nodes with
    devices are similar.
    """

    def key(state: NodeState) -> Any:
        devices = state.devices or any(is_device(name) for name, _ in state.allocatable)
        if devices and device_shares is None:
            return state
        taken, rough = dict(state.requested), []
        for name, most in state.allocatable:
            each = device_shares if is_device(name) else shares
            if not each:
                rough.append((name, most, taken.get(name, 0)))
                continue
            drop = max(0, most.bit_length() - significant)
            used = -(-min(taken.get(name, 0), most) * each // most)
            rough.append((name, most >> drop << drop, used))
        return state[:4], tuple(rough), () if device_shares else state.devices

    return key


SIMILARITIES = (
    _similar(8, 64),
    _similar(6, 24),
    _similar(5, 12),
    _similar(4, 8),
    _similar(4, 5),
    _similar(3, 3),
    _similar(6, 24, 0),
    _similar(4, 8, 0),
    _similar(3, 3, 0),
    _similar(1, 1, 0),
    _similar(1, 1, 4),
    _similar(1, 1, 1),
)
"""From the finest on; the first that makes few enough groups is used."""


def worst(states: Sequence[NodeState]) -> NodeState:
    """Return a state that is no better than any of these, which have the same labels and taints."""
    first = states[0]
    if all(state == first for state in states):
        return first
    allocatable = _merged(min, [state.allocatable for state in states])
    requested = _merged(max, [state.requested for state in states])
    works = [dict(state.works) for state in states]
    held = {work: _merged(min, [each.get(work, ()) for each in works]) for work in works[0]}
    return first._replace(
        allocatable=pairs(allocatable),
        requested=pairs({name: requested.get(name, 0) for name in allocatable}),
        works=tuple((work, each) for work, least in held.items() if (each := pairs(least))),
        devices=first.devices if all(item.devices == first.devices for item in states) else (),
    )


def _merged(choose: Callable[[Iterable[int]], int], amounts: Iterable[Amounts]) -> dict[str, int]:
    """Return the least or the most of each resource; what one lacks is 0 there."""
    each = list(map(dict, amounts))
    names = set[str]().union(*each)
    return {name: choose(one.get(name, 0) for one in each) for name in names}


def group_nodes(
    states: Mapping[str, NodeState], most: int = MAX_NODE_GROUPS, most_bytes: int = MAX_BYTES
) -> GroupedNodes:
    """Return at most so many groups of the nodes, of at most so many bytes without names."""
    by_state = dict[NodeState, list[str]]()
    for name, state in states.items():
        by_state.setdefault(state, []).append(name)
    groups = [AlikeNodes(state, names) for state, names in by_state.items()]
    exact, merged = groups, 0
    for similarity in SIMILARITIES:
        if len(groups) <= most and sum(_sizes(groups)) <= most_bytes:
            break
        groups = _merged_groups(exact, similarity)
        merged = sum(
            len(group.names) for group in groups if by_state.get(group.state) != group.names
        )
    groups.sort(key=_importance)
    listed, size = list[AlikeNodes](), 0
    for group, more in zip(groups, _sizes(groups), strict=True):
        size += more
        if len(listed) == most or size > most_bytes:
            break
        listed.append(group)
    documents, unnamed = _documents(listed)
    left_out = len(states) - sum(len(group.names) for group in listed)
    return GroupedNodes(tuple(listed), documents, merged, left_out, unnamed)


def _merged_groups(groups: Sequence[AlikeNodes], similarity: Similarity) -> list[AlikeNodes]:
    similar = dict[Any, list[AlikeNodes]]()
    for group in groups:
        similar.setdefault(similarity(group.state), []).append(group)
    return [
        AlikeNodes(
            worst([group.state for group in alike]),
            [name for group in alike for name in group.names],
        )
        for alike in similar.values()
    ]


def _importance(group: AlikeNodes) -> Any:
    """Return the key that sorts usable nodes with devices first, and equal groups always alike."""
    devices = sum(free for name, free in group.state.free.items() if is_device(name))
    devices += sum(item.count * ONE for item in group.state.devices)
    return not group.state.usable, -devices, -len(group.names), group.state


def _sizes(groups: Sequence[AlikeNodes]) -> list[int]:
    return [len(msgspec.json.encode(document(group.state, 1))) + 8 for group in groups]


def _documents(groups: Sequence[AlikeNodes]) -> tuple[list[Object], int]:
    documents, names_left, bytes_left, unnamed = list[Object](), MAX_NODE_NAMES, MAX_NAME_BYTES, 0
    for group in groups:
        one = document(group.state, len(group.names))
        if group.state.has_gpus:
            size = sum(len(name) + 3 for name in group.names)
            if len(group.names) <= names_left and size <= bytes_left:
                names_left, bytes_left = names_left - len(group.names), bytes_left - size
                one["names"] = sorted(group.names)
            else:
                unnamed += len(group.names)
        documents.append(one)
    return documents, unnamed


def document(state: NodeState, count: int) -> Object:
    """Return a group as the inventory has it (`InventoriedNodes`), without names."""
    taints = [dict(zip(("key", "value", "effect"), taint, strict=True)) for taint in state.taints]
    works = [{"name": work, "requested": quantities(held)} for work, held in state.works]
    return {
        "count": count,
        "ready": state.ready,
        "unschedulable": state.unschedulable,
        **({"labels": dict(state.labels)} if state.labels else {}),
        **({"taints": taints} if taints else {}),
        "allocatable": quantities(state.allocatable),
        "requested": quantities(state.requested),
        **({"devices": [item.document() for item in state.devices]} if state.devices else {}),
        **({"works": works} if works else {}),
    }
