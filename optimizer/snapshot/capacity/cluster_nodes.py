"""The nodes of a cluster as one request sees them: what its workloads hold, what others take."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from optimizer.domain.nodes import GPU_KIND, Amounts, NodeGroup
from optimizer.snapshot.capacity.node_inventories import CORDONED, SeenNodes

Devices = Mapping[tuple[str, str], float]
"""Amounts by kind and device."""


@dataclass(frozen=True, slots=True)
class ClusterNodes:
    """The nodes of one cluster.

    `decided`: the workloads of the ManifestWorks that a plan of the request decides about, by name
    of the work. `targets`: the workloads of the request; the plan removes the others of these.
    """

    seen: tuple[SeenNodes, ...]
    decided: Mapping[str, str]
    targets: Collection[str]

    def groups(self) -> tuple[NodeGroup, ...]:
        """Return the ready nodes; those that are cordoned have the taint that Kubernetes adds."""
        return tuple(
            NodeGroup(
                item.count,
                item.allocatable,
                self.taken(item),
                self._held(item),
                item.names,
                item.labels,
                (*item.taints, *((CORDONED,) if _lacks_taint(item) else ())),
            )
            for item in self.seen
            if item.ready
        )

    def taken(self, item: SeenNodes) -> Amounts:
        """Return what Pods hold on each node that the request does not decide about."""
        ours = _sum(amounts for name, amounts in item.works if name in self.decided)
        return {name: max(0.0, amount - ours[name]) for name, amount in item.requested.items()}

    def supplied(self, item: SeenNodes) -> Amounts:
        """Return what each node has for the request.

        One that is cordoned has only what the request's workloads hold there, and one that is not
        ready has nothing.
        """
        if not item.ready:
            return {}
        taken, held = self.taken(item), _sum(amounts for _, amounts in self._held(item))
        return {
            name: min(amount, held[name])
            if item.cordoned
            else max(0.0, amount - taken.get(name, 0.0))
            for name, amount in item.allocatable.items()
        }

    def supplies(self) -> Devices:
        """Return what all nodes have for the request."""
        return _devices((item, self.supplied(item)) for item in self.seen)

    def advertised(self) -> Devices:
        """Return what all ready nodes advertise, whoever uses it."""
        return _devices((item, item.allocatable) for item in self.seen if item.ready)

    def strangers(self) -> Devices:
        """Return what Pods of no ManifestWork request on ready nodes."""
        return _devices(
            (item, {name: amount - works[name] for name, amount in item.requested.items()})
            for item in self.seen
            if item.ready
            for works in [_sum(amounts for _, amounts in item.works)]
        )

    def gpus_of_others(self, item: SeenNodes) -> float:
        """Return how many GPUs or MIG devices each node can't give to the request."""
        supplied = self.supplied(item)
        return sum(
            amount - supplied.get(name, 0.0)
            for name, amount in item.allocatable.items()
            if item.kind_and_device(name)[0] == GPU_KIND
        )

    def _held(self, item: SeenNodes) -> tuple[tuple[str, Amounts], ...]:
        mine = ((self.decided.get(name, ""), amounts) for name, amounts in item.works)
        return tuple((name, amounts) for name, amounts in mine if name in self.targets)


def _lacks_taint(item: SeenNodes) -> bool:
    return item.cordoned and all(taint.key != CORDONED.key for taint in item.taints)


def _sum(amounts: Iterable[Amounts]) -> defaultdict[str, float]:
    found = defaultdict[str, float](float)
    for each in amounts:
        for name, amount in each.items():
            found[name] += amount
    return found


def _devices(amounts: Iterable[tuple[SeenNodes, Amounts]]) -> Devices:
    found = defaultdict[tuple[str, str], float](float)
    for item, each in amounts:
        for resource, amount in each.items():
            found[item.kind_and_device(resource)] += item.count * max(0.0, amount)
    return found
