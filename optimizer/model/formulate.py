"""Fleet to Problem: what could be used gets a number."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np

from optimizer.domain.fleet import Fleet, FleetLimit
from optimizer.model.predicates import OBSTACLES
from optimizer.model.problem import ANY, Bools, Floats, Ints, Limit, Option, Problem, Task
from optimizer.model.slot_index import Ground, label, selector


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


def _values(ground: Ground) -> Floats:
    fleet = ground.fleet
    values = np.full((len(fleet.workloads), len(ground.slots)), np.nan)
    numbered = sorted(enumerate(fleet.workloads), key=lambda item: item[1].app)
    app, own = None, np.empty(0)
    for index, workload in numbered:
        if workload.kind not in ground.kind:
            continue
        if workload.app != app:
            app, own = workload.app, ground.value(workload.app)
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
    matching = _matching(fleet)
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
            near=tuple(matching[text] for text in item.near),
            apart=_union([matching[text] for text in item.apart]),
            current=tuple(number[name] for name in item.current if name in number),
            move_cost=item.move_cost,
        )
        for item in fleet.workloads
    )


def _matching(fleet: Fleet) -> Mapping[str, tuple[str, ...]]:
    """Return the workloads that each selector of workloads matches; tasks share the tuples."""
    texts = {text for item in fleet.workloads for text in (*item.near, *item.apart)}
    parsed = {text: selector(text) for text in sorted(texts)}
    return {
        text: tuple(item.name for item in fleet.workloads if wanted.matches(item.labels))
        for text, wanted in parsed.items()
    }


def _union(names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return names[0] if len(names) == 1 else tuple(dict.fromkeys(chain.from_iterable(names)))


def _labels(fleet: Fleet) -> dict[str, tuple[str, ...]]:
    keys = sorted({item.key for workload in fleet.workloads for item in workload.spread})
    return {key: tuple(label(item, key) for item in fleet.clusters) for key in keys}


def _limits(ground: Ground) -> Iterator[Limit]:
    fleet, clusters = ground.fleet, _option_clusters(ground)
    costs: dict[str, Floats] = {}
    for limit in fleet.limits:
        tasks = [dict(workload.uses).get(limit.uses, 0.0) for workload in fleet.workloads]
        options = [
            dict(candidate.uses).get(limit.uses, 0.0)
            for cluster in fleet.clusters
            for candidate in cluster.candidates
        ]
        if limit.score and limit.score not in costs:
            costs[limit.score] = _costs(ground, limit.score)
        places = costs.get(limit.score)
        for name, within in _scopes(ground, limit):
            counted = np.where(within[clusters], np.array(options), 0.0)
            yield Limit(name, limit.most, within[ground.cluster], np.array(tasks), counted, places)


def _costs(ground: Ground, score: str) -> Floats:
    """Return what limits count of a score: [workloads, slots], 0 where it is missing or less."""
    costs = np.zeros((len(ground.fleet.workloads), len(ground.slots)))
    for row, workload in enumerate(ground.fleet.workloads):
        np.fmax(ground.scores(score, workload.app), 0.0, out=costs[row])
    return costs


def _scopes(ground: Ground, limit: FleetLimit) -> Iterator[tuple[str, Bools]]:
    """Yield each limit's name and the clusters that it counts."""
    clusters = ground.fleet.clusters
    wanted = selector(limit.selector)
    within = np.array([wanted.matches(cluster.labels) for cluster in clusters], dtype=np.bool_)
    if not limit.per:
        yield limit.name, within
        return
    values = np.array([label(cluster, limit.per) for cluster in clusters], dtype=object)
    for value in dict.fromkeys(values[within].tolist()):
        yield f"{limit.name} where {limit.per} is {value or 'not set'}", within & (values == value)


def _option_clusters(ground: Ground) -> Ints:
    counts = [len(cluster.candidates) for cluster in ground.fleet.clusters]
    return np.repeat(np.arange(len(counts)), counts)


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
