"""The numbered resources of a fleet: their capacities, and the values of apps on them."""

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
    """A fleet's resources, their largest capacities and scores; arrays are [resources]."""

    fleet: Fleet

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
            )
            for index, cluster in enumerate(self.fleet.clusters)
            for item in cluster.candidates
        )

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

    def named(self, names: Iterable[str]) -> Bools:
        """Tell which resources are on these clusters."""
        wanted = frozenset(names)
        return self.on(cluster.name in wanted for cluster in self.fleet.clusters)

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
