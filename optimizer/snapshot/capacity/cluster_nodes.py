"""The nodes of a cluster as one request sees them: what its workloads hold, what others take."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from optimizer.domain.nodes import GPU_KIND, Amounts, NodeGroup, scored_as
from optimizer.snapshot.capacity.device_inventory import free_by_name
from optimizer.snapshot.capacity.node_inventories import CORDONED, SeenNodes

Devices = Mapping[tuple[str, str], float]
"""Amounts by kind and device."""


class Shares(NamedTuple):
    """Whose the amounts of each node of a group are.

    `taken`: what Pods hold that the request does not decide about. `held`: what its workloads hold.
    `supplied`: what the node has for the request. What these workloads hold there is always among
    it: kubelets and device plugins restart, and Pods that lose their node for good become pending.
    A node that is cordoned or not ready has nothing else.
    """

    nodes: SeenNodes
    taken: Amounts
    held: tuple[tuple[str, Amounts], ...]
    supplied: Amounts


@dataclass(frozen=True)
class ClusterNodes:
    """The nodes of one cluster.

    `decided`: the workloads of the ManifestWorks that a plan of the request decides about, by name
    of the work. `targets`: the workloads of the request; the plan removes the others of these.
    """

    seen: tuple[SeenNodes, ...]
    decided: Mapping[str, str]
    targets: Collection[str]

    @cached_property
    def shares(self) -> tuple[Shares, ...]:
        """Whose the amounts of all nodes are."""
        return tuple(map(self._shares, self.seen))

    def _shares(self, nodes: SeenNodes) -> Shares:
        ours = [(self.decided[name], own) for name, own in nodes.works if name in self.decided]
        held = tuple((name, amounts) for name, amounts in ours if name in self.targets)
        mine = _sum(amounts for _, amounts in ours)
        taken = {
            name: max(0.0, amount - mine.get(name, 0.0)) for name, amount in nodes.requested.items()
        }
        supplied = dict(_sum(amounts for _, amounts in held))
        if nodes.ready and not nodes.cordoned:
            for name, amount in nodes.allocatable.items():
                left = min(amount, amount - taken.get(name, 0.0))
                supplied[name] = max(left, supplied.get(name, 0.0))
        return Shares(nodes, taken, held, supplied)

    def groups(self) -> tuple[NodeGroup, ...]:
        """Return the ready nodes; those that are cordoned have the taint that Kubernetes adds."""
        return tuple(
            NodeGroup(
                nodes.count,
                nodes.allocatable,
                taken,
                held,
                nodes.names,
                nodes.labels,
                (*nodes.taints, CORDONED) if _lacks_taint(nodes) else nodes.taints,
                nodes.devices.devices,
            )
            for nodes, taken, held, _ in self.shares
            if nodes.ready
        )

    def supplies(self) -> Devices:
        """Return what all nodes have for the request; of DRA, any of the devices but not all."""
        found = defaultdict[tuple[str, str], float](float)
        found.update(_devices((item.nodes, item.supplied) for item in self.shares))
        for nodes in self.seen:
            for state in nodes.devices.devices if nodes.ready and not nodes.cordoned else ():
                for kind, name, number in free_by_name(state):
                    found[kind, name] += nodes.count * number
            for work, state, index in nodes.devices.works:
                if self.decided.get(work) in self.targets:
                    held = scored_as(state.devices.driver, state.devices.devices[index])
                    found[held] += nodes.count * state.count
        return found

    def advertised(self) -> Devices:
        """Return what all nodes have, whoever uses it, and whether or not they are ready."""
        found = dict(_devices((nodes, nodes.allocatable) for nodes in self.seen))
        for nodes in self.seen:
            for state in nodes.devices.devices:
                for kind, name, number in free_by_name(replace(state, taken=frozenset())):
                    found[kind, name] = found.get((kind, name), 0.0) + nodes.count * number
        return found

    def unavailable(self) -> Devices:
        """Return what nodes have that are not ready or are cordoned."""
        return _devices(
            (nodes, nodes.allocatable) for nodes in self.seen if nodes.cordoned or not nodes.ready
        )

    def without_strangers(self) -> "ClusterNodes":
        """Return the nodes without the Pods of no ManifestWork."""
        of_works = (_sum(amounts for _, amounts in nodes.works) for nodes in self.seen)
        seen = map(lambda nodes, own: replace(nodes, requested=own), self.seen, of_works)
        return replace(self, seen=tuple(seen))

    def strangers(self) -> Devices:
        """Return what Pods of no ManifestWork request on ready nodes."""
        return _devices(
            (
                nodes,
                {name: amount - works.get(name, 0.0) for name, amount in nodes.requested.items()},
            )
            for nodes in self.seen
            if nodes.ready
            for works in [_sum(amounts for _, amounts in nodes.works)]
        )


def gpus_of_others(item: Shares) -> float:
    """Return how many GPUs or MIG devices each node can't give to the request."""
    return sum(
        max(0.0, amount - item.supplied.get(name, 0.0))
        for name, amount in item.nodes.allocatable.items()
        if item.nodes.kind_and_device(name)[0] == GPU_KIND
    )


def _lacks_taint(nodes: SeenNodes) -> bool:
    return nodes.cordoned and all(taint.key != CORDONED.key for taint in nodes.taints)


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    found: Amounts = {}
    for each in amounts:
        found = (
            {**found, **{name: found.get(name, 0.0) + amount for name, amount in each.items()}}
            if found
            else each
        )
    return found


def _devices(amounts: Iterable[tuple[SeenNodes, Amounts]]) -> Devices:
    """Return the sums over nodes by what resources are there, which most nodes have in common."""
    sums = defaultdict[str, defaultdict[str, float]](lambda: defaultdict(float))
    alike = dict[str, SeenNodes]()
    for nodes, each in amounts:
        alike.setdefault(nodes.profile, nodes)
        own = sums[nodes.profile]
        for resource, amount in each.items():
            if amount > 0:
                own[resource] += nodes.count * amount
    found = defaultdict[tuple[str, str], float](float)
    for profile, own in sums.items():
        for resource, amount in own.items():
            found[alike[profile].kind_and_device(resource)] += amount
    return found
