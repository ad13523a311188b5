"""The numbered resources of a fleet, and predicates: why a workload is not eligible for one.

A predicate is a named function of one workload and one resource, as the filters of the Kubernetes
scheduler read one Pod and one node; what couples several is a rule (`optimizer.model.rules`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dsf.kube.selectors import valid_selector
from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.domain.fleet import Fleet, Supply, Workload
from optimizer.model.nodes.device_fit import claimed_device
from optimizer.model.nodes.divided_nodes import nodes_of
from optimizer.model.nodes.node_fit import NodeCondition, missing_node
from optimizer.model.nodes.pod_demands import pod_demands
from optimizer.model.parameters import (
    NO_DEVICE,
    ClusterResource,
    Nodes,
    PodDemand,
    ProblemPolicy,
    largest_supplies,
)

FoundOnNodes = dict[tuple[str, str, tuple[PodDemand, ...]], tuple[Nodes, NodeCondition | None]]
"""By cluster, policy (empty: any) and Pods: the nodes, and what the Pods miss on them."""


@dataclass(frozen=True, eq=False)
class ResourceIndex:
    """A fleet's resources, their largest capacities and scores; arrays are [resources].

    `found`: what Pods miss on nodes, which fleets with the same nodes may share.
    """

    fleet: Fleet
    found: FoundOnNodes = field(default_factory=dict)

    @cached_property
    def resources(self) -> tuple[ClusterResource, ...]:
        """The resources of requested kinds that a cluster or a candidate policy supplies."""
        asked = {workload.kind for workload in self.fleet.workloads}
        asked |= {kind for workload in self.fleet.workloads for kind, _ in workload.requests}
        found = (
            ClusterResource(index, supply.kind, supply.device)
            for index, cluster in enumerate(self.fleet.clusters)
            for supply in cluster.supplies
            if supply.kind in asked
        )
        return tuple(dict.fromkeys(found))

    @cached_property
    def number(self) -> Mapping[ClusterResource, int]:
        """The number of each resource."""
        return {resource: index for index, resource in enumerate(self.resources)}

    @cached_property
    def cluster(self) -> Ints:
        """The cluster of each resource."""
        return np.array([resource.cluster for resource in self.resources], dtype=np.int64)

    @cached_property
    def kind(self) -> Mapping[str, Bools]:
        """By kind: whether each resource is of that kind."""
        kinds = np.array([resource.kind for resource in self.resources], dtype=object)
        return {kind: kinds == kind for kind in dict.fromkeys(kinds.tolist())}

    @cached_property
    def base(self) -> Floats:
        """The amount of each resource without any policy."""
        held = np.zeros(len(self.resources))
        for index, cluster in enumerate(self.fleet.clusters):
            for resource, amount in self.numbered(index, cluster.base):
                held[resource] += amount
        return held

    @cached_property
    def most(self) -> Floats:
        """The largest amount of each resource: its base and the largest supply of each pool."""
        held = self.base.copy()
        for resource, amount in largest_supplies(self.policies):
            held[resource] += amount
        return held

    @cached_property
    def policies(self) -> tuple[ProblemPolicy, ...]:
        """Every candidate policy with what it supplies."""
        return tuple(
            ProblemPolicy(
                cluster=index,
                pool=item.pool,
                name=item.policy,
                supplies=tuple(self.numbered(index, item.supplies)),
                current=item.current,
                value=0.0 if item.current else 0.0 - item.cost,
                nodes=self.nodes[index][1].get(item.policy),
            )
            for index, cluster in enumerate(self.fleet.clusters)
            for item in cluster.candidates
        )

    @cached_property
    def nodes(self) -> tuple[tuple[Nodes | None, Mapping[str, Nodes]], ...]:
        """The nodes of each cluster, and what they have while each of its policies is enforced."""
        return tuple(nodes_of(cluster, self.fleet) for cluster in self.fleet.clusters)

    @cached_property
    def pods(self) -> Mapping[str, tuple[PodDemand, ...]]:
        """The Pods of each workload."""
        return pod_demands(self.fleet)

    def missing_nodes(self, pods: tuple[PodDemand, ...]) -> Sequence[NodeCondition | None]:
        """Return of each resource what such Pods are not sure to find on its cluster, even alone.

        None: they are.
        """
        if pods not in self._missing_nodes:
            found = [self._missing_node(pods, resource) for resource in self.resources]
            self._missing_nodes[pods] = found
        return self._missing_nodes[pods]

    @cached_property
    def _missing_nodes(self) -> dict[tuple[PodDemand, ...], list[NodeCondition | None]]:
        return {}

    def _missing_node(
        self, pods: tuple[PodDemand, ...], resource: ClusterResource
    ) -> NodeCondition | None:
        nodes, under = self.nodes[resource.cluster]
        cluster, device = self.fleet.clusters[resource.cluster], resource[1:]
        if nodes is None or (missing := self._missing_on(nodes, pods, cluster.name)):
            return None if nodes is None else missing
        if device in (supply[:2] for supply in cluster.base):
            return None
        ways = [
            self._missing_on(under[item.policy], pods, cluster.name, item.policy)
            if item.policy in under
            else None
            for item in cluster.candidates
            if device in (supply[:2] for supply in item.supplies)
        ]
        lacking = [way for way in ways if way]
        if len(lacking) < len(ways):
            return None
        return max(lacking, key=lambda item: item.possible, default=None)

    def _missing_on(
        self, nodes: Nodes, pods: tuple[PodDemand, ...], cluster: str, policy: str = ""
    ) -> NodeCondition | None:
        known = self.found.get((cluster, policy, pods))
        if known is None or known[0] != nodes:
            known = self.found[cluster, policy, pods] = nodes, missing_node(nodes, pods)
        return known[1]

    def numbered(self, cluster: int, supplies: Iterable[Supply]) -> Iterator[tuple[int, float]]:
        """Yield (resource, amount) of the supplies whose kind a workload requests."""
        for supply in supplies:
            resource = self.number.get(ClusterResource(cluster, supply.kind, supply.device))
            if resource is not None:
                yield resource, supply.amount

    @cached_property
    def none(self) -> Bools:
        """False for every resource."""
        return np.zeros(len(self.resources), dtype=np.bool_)

    @cached_property
    def drained(self) -> Bools:
        """Tell which resources are on clusters that are drained."""
        return self.on(bool(cluster.drained) for cluster in self.fleet.clusters)

    def named(self, names: Iterable[str]) -> Bools:
        """Tell which resources are on these clusters."""
        wanted = frozenset(names)
        return self.on(cluster.name in wanted for cluster in self.fleet.clusters)

    def unclaimed(self, workload: Workload) -> Bools:
        """Tell which resources are none that a workload claims on their cluster."""
        names = [claimed_device(cluster, workload) for cluster in self.fleet.clusters]
        return np.array(
            [names[item.cluster] not in (None, item.device) for item in self.resources],
            dtype=np.bool_,
        )

    def devices(self, names: Collection[str]) -> Bools:
        """Tell which resources are one of these devices."""
        return np.array([item.device in names for item in self.resources], dtype=np.bool_)

    def meeting(self, text: str) -> Bools:
        """Tell which resources are on clusters whose labels match a selector."""
        if text not in self._meeting:
            wanted = valid_selector(text)
            self._meeting[text] = self.on(wanted.matches(c.labels) for c in self.fleet.clusters)
        return self._meeting[text]

    @cached_property
    def _meeting(self) -> dict[str, Bools]:
        return {}

    def on(self, allowed: Iterable[bool]) -> Bools:
        """Tell which resources are on the clusters that are `allowed` [clusters]."""
        return np.fromiter(allowed, dtype=np.bool_)[self.cluster]

    def scores(self, name: str, app: str) -> Floats:
        """Return a named score of an app on every resource, NaN where there is none."""
        return self.fleet.scores[name].of_app(app)[self._places[name]]

    @cached_property
    def _places(self) -> Mapping[str, Ints]:
        """By score: the column of each resource in its matrix."""
        return {name: self._numbers(found.places) for name, found in self.fleet.scores.items()}

    def _numbers(self, places: Mapping[tuple[str, str], int]) -> Ints:
        """Return the column of each resource in a score matrix, -1 where it has no score."""
        names = [cluster.name for cluster in self.fleet.clusters]
        found = (
            places.get((names[resource.cluster], resource.device), -1)
            for resource in self.resources
        )
        return np.fromiter(found, dtype=np.int64)

    def value(self, app: str) -> Floats:
        """Return the value of an app on every resource: the weighted sum of its scores."""
        total = np.zeros(len(self.resources))
        for item in self.fleet.objectives:
            total += item.values(self.scores(item.score, app))
        return total


class Predicate(NamedTuple):
    """Which resources are ruled out for a workload, and what a message says of their devices."""

    rules_out: Callable[[ResourceIndex, Workload, Floats], Bools]
    says: str


def not_selectable(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """OCM can't select the cluster for the workload: its taints, its cluster set or its state."""
    return indexed.named(workload.unselectable) if workload.unselectable else indexed.none


def unseen(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The cluster's inventory is too old to place on it what does not run there."""
    return indexed.named(workload.unseen) if workload.unseen else indexed.none


def other_device(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The workload may run on other devices alone, or its Pods claim one there."""
    if any(pod.claims for pod in workload.pods):
        return indexed.unclaimed(workload)
    return ~indexed.devices(workload.devices) if workload.devices else indexed.none


def pinned(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The workload may run on clusters that are named for it alone, and not on this one."""
    return ~indexed.named(workload.clusters) if workload.clusters else indexed.none


def excluded_clusters(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The cluster is excluded by the workload."""
    return indexed.named(workload.excluded_clusters) if workload.excluded_clusters else indexed.none


def drained(indexed: ResourceIndex, _: Workload, __: Floats) -> Bools:
    """The cluster is drained."""
    return indexed.drained


def affinity(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The cluster's labels don't meet the workload's affinity."""
    return ~indexed.meeting(workload.affinity) if workload.affinity else indexed.none


def anti_affinity(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The cluster's labels meet the workload's anti-affinity."""
    return indexed.meeting(workload.anti_affinity) if workload.anti_affinity else indexed.none


def too_small(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """No policy, with what the cluster has anyway, supplies enough of the device."""
    return indexed.most < workload.amount


def extras_too_small(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The cluster can't have enough of a further kind that the workload asks for."""
    if not workload.requests:
        return indexed.none
    lacking = np.zeros(len(indexed.fleet.clusters), dtype=np.bool_)
    for kind, amount in workload.requests:
        for index in range(len(lacking)):
            resource = indexed.number.get(ClusterResource(index, kind, NO_DEVICE))
            lacking[index] |= resource is None or indexed.most[resource] < amount
    return lacking[indexed.cluster]


def no_node_fits(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The workload's Pods can't fit on the cluster's nodes, with all of the request removed."""
    return _missing_nodes(indexed, workload, possible=False)


def fragmented(indexed: ResourceIndex, workload: Workload, _: Floats) -> Bools:
    """The workload's Pods are not sure to fit on the cluster's nodes in any order, even alone."""
    return _missing_nodes(indexed, workload, possible=True)


def _missing_nodes(indexed: ResourceIndex, workload: Workload, *, possible: bool) -> Bools:
    if not workload.pods:
        return indexed.none
    every = indexed.missing_nodes(indexed.pods[workload.name])
    missing = [item is not None and item.possible is possible for item in every]
    return np.array(missing, np.bool_) & ~indexed.named(workload.current)


def unscored(_: ResourceIndex, __: Workload, values: Floats) -> Bools:
    """No usable score says what the assignment is worth."""
    return np.isnan(values)


def below_minimum(indexed: ResourceIndex, workload: Workload, values: Floats) -> Bools:
    """The assignment is worth less than the workload accepts."""
    return indexed.none if workload.minimum_score is None else values < workload.minimum_score


def uncosted(indexed: ResourceIndex, workload: Workload, values: Floats) -> Bools:
    """No usable score says what the assignment takes of a fleet-wide limit."""
    missing = np.zeros(len(values), dtype=np.bool_)
    for limit in indexed.fleet.limits:
        if limit.score:
            missing |= np.isnan(indexed.scores(limit.score, workload.app)) & indexed.meeting(
                limit.selector
            )
    return missing


PREDICATES: Mapping[str, Predicate] = {
    "NotPinned": Predicate(pinned, "are on clusters that it does not name"),
    "NotSelectable": Predicate(
        not_selectable, "are on clusters that OCM can't select for it (see the issues)"
    ),
    "NotSeen": Predicate(unseen, "are on clusters whose inventory is too old (see the issues)"),
    "OtherDevice": Predicate(other_device, "are devices that it can't use"),
    "Excluded": Predicate(excluded_clusters, "are on clusters that it excludes"),
    "Drained": Predicate(drained, "are on clusters that are drained"),
    "Affinity": Predicate(affinity, "are on clusters that don't match its affinity"),
    "AntiAffinity": Predicate(anti_affinity, "are on clusters that its anti-affinity forbids"),
    "NoSupply": Predicate(too_small, "never have enough for it"),
    "NoExtraSupply": Predicate(
        extras_too_small,
        "are on clusters that never have enough of the further kinds that it requests",
    ),
    "NoNodeFits": Predicate(no_node_fits, "are on clusters whose nodes can't start its Pods"),
    "Fragmented": Predicate(
        fragmented, "are on clusters whose nodes start its Pods, if at all, only packed well"
    ),
    "NoUsableScore": Predicate(unscored, "have no usable score for it (see the issues)"),
    "BelowMinimumScore": Predicate(below_minimum, "are worth less than its minimum score"),
    "NoUsableCost": Predicate(
        uncosted, "have no usable score that a limit counts (see the issues)"
    ),
}
"""Reasons why a workload can never run on a resource of its kind, each with what tells it.

Of several, the last is told: where a workload is pinned, what keeps it from those clusters.
"""


def ineligible(indexed: ResourceIndex, workload: Workload) -> Mapping[str, Bools]:
    """Return, by reason, on which resources of the workload's kind it can never run."""
    values = indexed.value(workload.app)
    ours = indexed.kind.get(workload.kind, indexed.none)
    return {
        name: predicate.rules_out(indexed, workload, values) & ours
        for name, predicate in PREDICATES.items()
    }
