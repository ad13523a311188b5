"""Fleet to Problem: what could be used gets a number; what is in the way has a name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dsf.kube.selectors import LabelSelector, label_selector
from optimizer.fleet import Cluster, Fleet, FleetLimit, Objective, Scores, Supply, Workload
from optimizer.problem import ANY, Bools, Floats, Limit, Option, Problem, Slot, Task


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
            for supply in _supplies(cluster)
            if supply.kind in asked
        )
        return tuple(dict.fromkeys(found))

    @cached_property
    def number(self) -> Mapping[Slot, int]:
        """Slot numbers."""
        return {slot: index for index, slot in enumerate(self.slots)}

    @cached_property
    def cluster(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
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

    def scores(self, scores: Scores, app: str) -> Floats:
        """Return an app's score on every slot, NaN where there is none."""
        names = [cluster.name for cluster in self.fleet.clusters]
        keys = ((names[slot.cluster], app, slot.device) for slot in self.slots)
        return np.fromiter((scores.get(key, np.nan) for key in keys), dtype=np.float64)

    def value(self, app: str) -> Floats:
        """Return what an app is worth on every slot: the weighted sum of its scores."""
        total = np.zeros(len(self.slots))
        for item in self.fleet.objectives:
            total += _normalised(item, self.scores(self.fleet.scores[item.score], app))
        return total


Obstacle = Callable[[Ground, Workload, Floats], Bools]


def pinned(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """The workload may run on clusters that are named for it alone, and not on this one."""
    return ~ground.named(workload.clusters) if workload.clusters else ground.none


def excluded(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """The cluster is excluded by the workload."""
    return ground.named(workload.excluded) if workload.excluded else ground.none


def affinity(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """The cluster's labels don't meet the workload's affinity."""
    return ~ground.meeting(workload.affinity) if workload.affinity else ground.none


def anti_affinity(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """The cluster's labels meet the workload's anti-affinity."""
    return ground.meeting(workload.anti_affinity) if workload.anti_affinity else ground.none


def too_small(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """No policy, with what the cluster has anyway, supplies enough of the device."""
    return ground.most < workload.amount


def extras_too_small(ground: Ground, workload: Workload, _: Floats) -> Bools:
    """The cluster can't have enough of a further kind that the workload asks for."""
    if not workload.extras:
        return ground.none
    lacking = np.zeros(len(ground.fleet.clusters), dtype=np.bool_)
    for kind, amount in workload.extras:
        for index in range(len(lacking)):
            slot = ground.number.get(Slot(index, kind, ANY))
            lacking[index] |= slot is None or ground.most[slot] < amount
    return lacking[ground.cluster]


def unscored(_: Ground, __: Workload, values: Floats) -> Bools:
    """No usable score says what the place is worth."""
    return np.isnan(values)


def below_minimum(ground: Ground, workload: Workload, values: Floats) -> Bools:
    """The place is worth less than the workload accepts."""
    return ground.none if workload.minimum is None else values < workload.minimum


def uncosted(ground: Ground, workload: Workload, values: Floats) -> Bools:
    """No usable score says what the place takes of a fleet-wide limit."""
    missing = np.zeros(len(values), dtype=np.bool_)
    for limit in ground.fleet.limits:
        if limit.score:
            costs = ground.scores(ground.fleet.scores[limit.score], workload.app)
            missing |= np.isnan(costs) & ground.meeting(limit.selector)
    return missing


OBSTACLES: Mapping[str, Obstacle] = {
    "NotPinned": pinned,
    "Excluded": excluded,
    "Affinity": affinity,
    "AntiAffinity": anti_affinity,
    "NoSupply": too_small,
    "NoExtraSupply": extras_too_small,
    "NoUsableScore": unscored,
    "BelowMinimumScore": below_minimum,
    "NoUsableCost": uncosted,
}
"""Reasons why a workload can never run on a slot of its kind, each with what tells it."""


def obstacles(ground: Ground, workload: Workload) -> Mapping[str, Bools]:
    """Return, by reason, on which slots of the workload's kind it can never run."""
    values = ground.value(workload.app)
    ours = ground.kind.get(workload.kind, ground.none)
    return {name: found(ground, workload, values) & ours for name, found in OBSTACLES.items()}


def formulate(fleet: Fleet) -> Problem:
    """Return the problem of a fleet.

    A place needs a usable score and a supply that can be enough by itself; a policy needs a place
    that it serves. Workloads without a place are left out.
    """
    ground = Ground(fleet)
    values = _values(ground)
    whole = Problem(
        clusters=tuple(cluster.name for cluster in fleet.clusters),
        slots=ground.slots,
        options=tuple(_options(ground)),
        tasks=_tasks(fleet),
        values=values,
        base=ground.base,
        labels=_labels(fleet),
        limits=tuple(_limits(ground)),
    )
    usable = ~np.isnan(values)
    needed = _needed(whole, usable)
    serving = [any(slot in needed for slot, _ in option.supplies) for option in whole.options]
    return whole.restricted(usable, np.array(serving, dtype=np.bool_))


def staying(fleet: Fleet) -> Mapping[int, float]:
    """Return by priority what the problem's values count for staying, if all workloads stay.

    Values credit a place where a workload runs with the cost of leaving it. Less this sum, the
    value of a decision is that of its scores minus the costs of its moves.
    """
    known = {cluster.name for cluster in fleet.clusters}
    total: dict[int, float] = {}
    for item in fleet.workloads:
        saved = item.move_cost * len(known.intersection(item.current))
        total[item.priority] = total.get(item.priority, 0.0) + saved
    return total


def selector(text: str) -> LabelSelector:
    """Return the selector that a text spells; ValueError where it spells none."""
    parsed = label_selector(text)
    if not isinstance(parsed, LabelSelector):
        raise ValueError(parsed.message)  # noqa: TRY004 - the text is wrong, not its type
    return parsed


def _values(ground: Ground) -> Floats:
    fleet = ground.fleet
    values = np.full((len(fleet.workloads), len(ground.slots)), np.nan)
    by_app: dict[str, Floats] = {}
    for index, workload in enumerate(fleet.workloads):
        if workload.kind not in ground.kind:
            continue
        if workload.app not in by_app:
            by_app[workload.app] = ground.value(workload.app)
        own = by_app[workload.app]
        allowed = ground.kind[workload.kind].copy()
        for obstacle in OBSTACLES.values():
            allowed &= ~obstacle(ground, workload, own)
        values[index, allowed] = own[allowed]
        if workload.move_cost and workload.current:
            values[index] += workload.move_cost * ground.named(workload.current)
    return values


def _options(ground: Ground) -> Iterator[Option]:
    for index, cluster in enumerate(ground.fleet.clusters):
        for item in cluster.candidates:
            supplies = tuple(ground.numbered(index, item.supplies))
            value = 0.0 if item.current else 0.0 - item.cost
            yield Option(index, item.pool, item.policy, supplies, item.current, value)


def _tasks(fleet: Fleet) -> tuple[Task, ...]:
    number = {cluster.name: index for index, cluster in enumerate(fleet.clusters)}
    return tuple(
        Task(
            name=item.name,
            app=item.app,
            kind=item.kind,
            amount=item.amount,
            extras=item.extras,
            replicas=item.replicas,
            priority=item.priority,
            spread=item.spread,
            near=tuple(_matching(fleet, item, text) for text in item.near),
            apart=tuple(name for text in item.apart for name in _matching(fleet, item, text)),
            current=tuple(number[name] for name in item.current if name in number),
            move_cost=item.move_cost,
        )
        for item in fleet.workloads
    )


def _matching(fleet: Fleet, workload: Workload, text: str) -> tuple[str, ...]:
    wanted = selector(text)
    return tuple(
        other.name
        for other in fleet.workloads
        if other.name != workload.name and wanted.matches(other.labels)
    )


def _labels(fleet: Fleet) -> dict[str, tuple[str, ...]]:
    keys = sorted({item.key for workload in fleet.workloads for item in workload.spread})
    return {key: tuple(item.labels.get(key, "") for item in fleet.clusters) for key in keys}


def _limits(ground: Ground) -> Iterator[Limit]:
    for limit in ground.fleet.limits:
        places, options = _used(ground, limit)
        for name, within in _scopes(ground, limit):
            of_options = np.array([within[cluster] for cluster in _option_clusters(ground)])
            yield Limit(name, limit.most, places * within[ground.cluster], options * of_options)


def _used(ground: Ground, limit: FleetLimit) -> tuple[Floats, Floats]:
    """Return what a limit counts: [workloads, slots] and [options]."""
    fleet = ground.fleet
    uses = [dict(workload.uses).get(limit.uses, 0.0) for workload in fleet.workloads]
    places = np.repeat(np.array(uses)[:, np.newaxis], len(ground.slots), axis=1)
    if limit.score:
        for index, workload in enumerate(fleet.workloads):
            places[index] += np.nan_to_num(ground.scores(fleet.scores[limit.score], workload.app))
    options = [
        dict(candidate.uses).get(limit.uses, 0.0)
        for cluster in fleet.clusters
        for candidate in cluster.candidates
    ]
    return np.maximum(places, 0.0), np.array(options)


def _scopes(ground: Ground, limit: FleetLimit) -> Iterator[tuple[str, Bools]]:
    """Yield each limit's name and the clusters that it counts."""
    clusters = ground.fleet.clusters
    wanted = selector(limit.selector)
    within = np.array([wanted.matches(cluster.labels) for cluster in clusters], dtype=np.bool_)
    if not limit.per:
        yield limit.name, within
        return
    values = np.array([cluster.labels.get(limit.per, "") for cluster in clusters], dtype=object)
    for value in dict.fromkeys(values[within].tolist()):
        yield f"{limit.name} where {limit.per} is {value or 'not set'}", within & (values == value)


def _option_clusters(ground: Ground) -> list[int]:
    clusters = ground.fleet.clusters
    return [index for index, cluster in enumerate(clusters) for _ in cluster.candidates]


def _needed(problem: Problem, usable: Bools) -> set[int]:
    """Return the slots that some task could take something of."""
    slots = set(np.nonzero(usable.any(axis=0))[0].tolist())
    tasks = np.nonzero(usable.any(axis=1))[0].tolist()
    kinds = {kind for task in tasks for kind, _ in problem.tasks[task].extras}
    clusters = {problem.slots[slot].cluster for slot in slots}
    return slots | {
        index
        for index, slot in enumerate(problem.slots)
        if slot.kind in kinds and slot.device == ANY and slot.cluster in clusters
    }


def _supplies(cluster: Cluster) -> Iterator[Supply]:
    for candidate in cluster.candidates:
        yield from candidate.supplies
    yield from cluster.base


def _normalised(item: Objective, scores: Floats) -> Floats:
    return np.array([item.value(score) for score in scores.tolist()])
