"""A fleet numbered: its slots, what they could hold, what apps are worth on them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dsf.kube.selectors import LabelSelector, label_selector
from optimizer.domain.fleet import Cluster, Fleet, Supply
from optimizer.model.problem import Bools, Floats, Ints, Slot

NAME_KEY = "metadata.name"
"""Stands for a cluster's name where a label key is asked for."""


@dataclass(frozen=True, eq=False)
class Ground:
    """A fleet's slots, and what they could hold at best; arrays are [slots]."""

    fleet: Fleet

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Everything that some workload asks for and some candidate or cluster supplies."""
        asked = {workload.kind for workload in self.fleet.workloads}
        asked |= {kind for workload in self.fleet.workloads for kind, _ in workload.extras}
        found = (
            Slot(index, supply.kind, supply.device)
            for index, cluster in enumerate(self.fleet.clusters)
            for supply in cluster.supplies
            if supply.kind in asked
        )
        return tuple(dict.fromkeys(found))

    @cached_property
    def number(self) -> Mapping[Slot, int]:
        """Slot numbers."""
        return {slot: index for index, slot in enumerate(self.slots)}

    @cached_property
    def cluster(self) -> Ints:
        """The cluster of each slot."""
        return np.array([slot.cluster for slot in self.slots], dtype=np.int64)

    @cached_property
    def kind(self) -> Mapping[str, Bools]:
        """For each kind the slots of it."""
        kinds = np.array([slot.kind for slot in self.slots], dtype=object)
        return {kind: kinds == kind for kind in dict.fromkeys(kinds.tolist())}

    @cached_property
    def base(self) -> Floats:
        """What a slot has without any policy."""
        held = np.zeros(len(self.slots))
        for index, cluster in enumerate(self.fleet.clusters):
            for slot, amount in self.numbered(index, cluster.base):
                held[slot] += amount
        return held

    @cached_property
    def most(self) -> Floats:
        """What a slot has at most: its base and the largest supply of each pool."""
        held = self.base.copy()
        for index, cluster in enumerate(self.fleet.clusters):
            best: dict[tuple[str, int], float] = {}
            for candidate in cluster.candidates:
                for slot, amount in self.numbered(index, candidate.supplies):
                    key = candidate.pool, slot
                    best[key] = max(best.get(key, 0.0), amount)
            for (_, slot), amount in best.items():
                held[slot] += amount
        return held

    def numbered(self, cluster: int, supplies: Iterable[Supply]) -> Iterator[tuple[int, float]]:
        """Yield the slots and amounts of supplies that somebody asks for."""
        for supply in supplies:
            slot = self.number.get(Slot(cluster, supply.kind, supply.device))
            if slot is not None:
                yield slot, supply.amount

    @cached_property
    def none(self) -> Bools:
        """No slot at all."""
        return np.zeros(len(self.slots), dtype=np.bool_)

    def named(self, names: Iterable[str]) -> Bools:
        """Return the slots of these clusters."""
        wanted = frozenset(names)
        return self.on(cluster.name in wanted for cluster in self.fleet.clusters)

    def meeting(self, text: str) -> Bools:
        """Return the slots of the clusters whose labels meet a selector."""
        if text not in self._meeting:
            wanted = selector(text)
            self._meeting[text] = self.on(wanted.matches(c.labels) for c in self.fleet.clusters)
        return self._meeting[text]

    @cached_property
    def _meeting(self) -> dict[str, Bools]:
        return {}

    def on(self, allowed: Iterable[bool]) -> Bools:
        """Return the slots of the clusters for which it is true."""
        return np.fromiter(allowed, dtype=np.bool_)[self.cluster]

    def scores(self, name: str, app: str) -> Floats:
        """Return a named score of an app on every slot, NaN where there is none."""
        if name not in self._places:
            self._places[name] = self._numbers(self.fleet.scores[name].places)
        return self.fleet.scores[name].of_app(app)[self._places[name]]

    @cached_property
    def _places(self) -> dict[str, Ints]:
        return {}

    def _numbers(self, places: Mapping[tuple[str, str], int]) -> Ints:
        """Return the number of each slot's place, -1 where there is none."""
        names = [cluster.name for cluster in self.fleet.clusters]
        found = (places.get((names[slot.cluster], slot.device), -1) for slot in self.slots)
        return np.fromiter(found, dtype=np.int64)

    def value(self, app: str) -> Floats:
        """Return what an app is worth on every slot: the weighted sum of its scores."""
        total = np.zeros(len(self.slots))
        for item in self.fleet.objectives:
            total += item.values(self.scores(item.score, app))
        return total


def label(cluster: Cluster, key: str) -> str:
    """Return the value of a cluster's label; NAME_KEY is the cluster's name."""
    return cluster.name if key == NAME_KEY else cluster.labels.get(key, "")


def selector(text: str) -> LabelSelector:
    """Return the selector that a text spells; ValueError where it spells none."""
    parsed = label_selector(text)
    if not isinstance(parsed, LabelSelector):
        raise ValueError(parsed.message)  # noqa: TRY004 - the text is wrong, not its type
    return parsed
