"""Numbers the resources of a fleet: their capacities, and the values of apps on them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dsf.kube.selectors import valid_selector
from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.domain.fleet import Fleet, Supply
from optimizer.model.parameters import ClusterResource, ProblemPolicy, largest_supplies


@dataclass(frozen=True, eq=False)
class ResourceIndex:
    """A fleet's resources, and what they could hold at best; arrays are [resources]."""

    fleet: Fleet

    @cached_property
    def resources(self) -> tuple[ClusterResource, ...]:
        """Everything that some workload asks for and some candidate or cluster supplies."""
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
        """ClusterResource numbers."""
        return {resource: index for index, resource in enumerate(self.resources)}

    @cached_property
    def cluster(self) -> Ints:
        """The cluster of each resource."""
        return np.array([resource.cluster for resource in self.resources], dtype=np.int64)

    @cached_property
    def kind(self) -> Mapping[str, Bools]:
        """For each kind the resources of it."""
        kinds = np.array([resource.kind for resource in self.resources], dtype=object)
        return {kind: kinds == kind for kind in dict.fromkeys(kinds.tolist())}

    @cached_property
    def base(self) -> Floats:
        """What a resource has without any policy."""
        held = np.zeros(len(self.resources))
        for index, cluster in enumerate(self.fleet.clusters):
            for resource, amount in self.numbered(index, cluster.base):
                held[resource] += amount
        return held

    @cached_property
    def most(self) -> Floats:
        """What a resource has at most: its base and the largest supply of each pool."""
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
            )
            for index, cluster in enumerate(self.fleet.clusters)
            for item in cluster.candidates
        )

    def numbered(self, cluster: int, supplies: Iterable[Supply]) -> Iterator[tuple[int, float]]:
        """Yield the resources and amounts of supplies that somebody asks for."""
        for supply in supplies:
            resource = self.number.get(ClusterResource(cluster, supply.kind, supply.device))
            if resource is not None:
                yield resource, supply.amount

    @cached_property
    def none(self) -> Bools:
        """No resource at all."""
        return np.zeros(len(self.resources), dtype=np.bool_)

    def named(self, names: Iterable[str]) -> Bools:
        """Return the resources of these clusters."""
        wanted = frozenset(names)
        return self.on(cluster.name in wanted for cluster in self.fleet.clusters)

    def meeting(self, text: str) -> Bools:
        """Return the resources of the clusters whose labels meet a selector."""
        if text not in self._meeting:
            wanted = valid_selector(text)
            self._meeting[text] = self.on(wanted.matches(c.labels) for c in self.fleet.clusters)
        return self._meeting[text]

    @cached_property
    def _meeting(self) -> dict[str, Bools]:
        return {}

    def on(self, allowed: Iterable[bool]) -> Bools:
        """Return the resources of the clusters for which it is true."""
        return np.fromiter(allowed, dtype=np.bool_)[self.cluster]

    def scores(self, name: str, app: str) -> Floats:
        """Return a named score of an app on every resource, NaN where there is none."""
        if name not in self._places:
            self._places[name] = self._numbers(self.fleet.scores[name].places)
        return self.fleet.scores[name].of_app(app)[self._places[name]]

    @cached_property
    def _places(self) -> dict[str, Ints]:
        return {}

    def _numbers(self, places: Mapping[tuple[str, str], int]) -> Ints:
        """Return the number of the place of each resource in the scores, -1 where there is none."""
        names = [cluster.name for cluster in self.fleet.clusters]
        found = (
            places.get((names[resource.cluster], resource.device), -1)
            for resource in self.resources
        )
        return np.fromiter(found, dtype=np.int64)

    def value(self, app: str) -> Floats:
        """Return what an app is worth on every resource: the weighted sum of its scores."""
        total = np.zeros(len(self.resources))
        for item in self.fleet.objectives:
            total += item.values(self.scores(item.score, app))
        return total
