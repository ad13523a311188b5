"""The fleet as hysteresis lets a plan see it: averaged scores, and a margin on each move.

A margin is a move cost, which the whole optimizer knows: search, bounds and explanations respect
it, and every plan is worth more than staying by the margins of its moves. A budget is a limit of
the fleet on assignments where a workload does not run yet.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dsf.api.untrusted_text import listed
from optimizer.domain.arrays import Bools, Floats, members_by_key
from optimizer.domain.fleet import Cluster, Fleet, FleetLimit, Objective, Workload
from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.keep.move_budgets import MovesLeft
from optimizer.keep.score_memory import ScoreMemory
from optimizer.wire.keeping import Hysteresis, MoveReason

TIE = 0.01
"""Points by which a gain has to exceed a margin: equal plans stay as they are."""

_ENOUGH_DIFFERENCES = 6
"""Differences of averages from which the variation of one place is known by itself."""

_CACHED_APPS = 64


def restrained(
    fleet: Fleet, memory: ScoreMemory, hysteresis: Hysteresis, missing: float | None = None
) -> tuple[Fleet, bool]:
    """Return the fleet with averaged scores, what runs kept where scores are missing, and margins.

    And whether something stays because scores are not averaged over a whole window yet.

    `memory`: after it has observed the scores of this fleet. A score that is missing or expired now
    is missing for every workload but those that run there: for them the last average counts, and
    without one nothing but a lost cluster moves them. A place that was not observed for a whole
    window attracts nothing that runs. `missing`: the value of an objective's other missing scores;
    the scores of `fleet` must have been read without it, else it would count as a score.
    """
    there = frozenset(item.name for item in fleet.clusters)
    staying = {
        item.name: tuple(
            name for name in item.running if name in there and name not in item.unselectable
        )
        for item in fleet.workloads
    }
    filled = _with_last_scores(fleet, memory, staying)
    if missing is not None:
        valued = {item.score for item in fleet.objectives}
        filled = replace(filled, scores=dict(_with_value(filled.scores, valued, missing)))
    values = _Values(filled.scores, memory, fleet, hysteresis)
    found = [_with_margin(item, staying[item.name], filled, values) for item in fleet.workloads]
    workloads = tuple(workload for workload, _ in found)
    waits = any(waits for _, waits in found)
    return replace(fleet, scores=filled.scores, workloads=workloads), waits


def avoiding(fleet: Fleet, left: Mapping[str, Collection[str]]) -> Fleet:
    """Return the fleet in which workloads avoid clusters that they left, unless they are back."""
    workloads = list[Workload]()
    for item in fleet.workloads:
        away = sorted(set(left.get(item.name, ())).difference(item.current))
        none_ready = ((name, 0.0) for name in away)
        workloads.append(replace(item, pending=(*item.pending, *none_ready)) if away else item)
    return replace(fleet, workloads=tuple(workloads))


def with_policy_margins(fleet: Fleet) -> Fleet:
    """Return the fleet in which a change of policy costs the margins of all that runs there.

    `fleet`: with all candidates. A cluster that enforces none changes nothing for anybody.
    """
    margins: dict[str, float] = {}
    for item in fleet.workloads:
        for name in item.running:
            margins[name] = margins.get(name, 0.0) + item.move_cost
    return replace(
        fleet,
        clusters=tuple(_with_costs(item, margins.get(item.name, 0.0)) for item in fleet.clusters),
    )


def with_move_limits(
    fleet: Fleet, left: Iterable[MovesLeft], reasons: Mapping[str, MoveReason]
) -> Fleet:
    """Return the fleet in which plans have no more moves than budgets leave.

    `reasons`: why a workload that runs would leave, by its name.
    """
    limits = (
        FleetLimit(
            f"moves per {item.budget.per.lower()} ({listed(item.reasons)})",
            float(item.moves),
            moving=frozenset(name for name, why in reasons.items() if why in item.reasons),
        )
        for item in left
    )
    return replace(fleet, limits=(*fleet.limits, *(item for item in limits if item.moving)))


def pinned(fleet: Fleet, names: Collection[str]) -> Fleet:
    """Return the fleet in which these workloads stay where they run, and keep their policies."""
    most = 2.0 * _largest(fleet) + 1.0
    workloads = (
        _pinned(item, most) if item.name in names and item.current else item
        for item in fleet.workloads
    )
    return replace(fleet, workloads=tuple(workloads))


def _pinned(workload: Workload, cost: float) -> Workload:
    """Return a workload that leaves none of its clusters; replicas that it lacks may start."""
    lacks = workload.replicas > len(workload.current)
    only = workload.clusters if lacks else _where_it_runs(workload)
    return replace(workload, clusters=only, move_cost=max(workload.move_cost, cost))


def _where_it_runs(workload: Workload) -> tuple[str, ...]:
    """Return the clusters where a workload runs, of those that it names, as all that it names."""
    allowed = workload.clusters or workload.current
    return tuple(name for name in workload.current if name in allowed) or workload.clusters


def _largest(fleet: Fleet) -> float:
    """Return a value that no place exceeds, with either sign."""
    return sum(
        float(np.nanmax(np.abs(item.values(np.asarray(found.table, np.float64))), initial=0.0))
        for item in fleet.objectives
        if (found := fleet.scores.get(item.score)) is not None
    )


def _with_costs(cluster: Cluster, margin: float) -> Cluster:
    current = bool(cluster.enforced) or any(item.current for item in cluster.candidates)
    if not margin or not current:
        return cluster
    candidates = (
        item if item.current else replace(item, cost=max(item.cost, margin))
        for item in cluster.candidates
    )
    return replace(cluster, candidates=tuple(candidates))


@dataclass(frozen=True, slots=True)
class _Filled:
    """Averaged scores, and the clusters of each app whose scores are missing and were filled in.

    `unknown`: those of them of which no average is known.
    """

    scores: Mapping[str, ScoreMatrix]
    filled: Mapping[str, frozenset[str]]
    unknown: Mapping[str, frozenset[str]]


def _with_last_scores(
    fleet: Fleet, memory: ScoreMemory, staying: Mapping[str, Collection[str]]
) -> _Filled:
    running = {(item.app, cluster) for item in fleet.workloads for cluster in staying[item.name]}
    filled, unknown = set[tuple[str, str]](), set[tuple[str, str]]()
    scores: dict[str, ScoreMatrix] = {}
    for key, matrix in fleet.scores.items():
        level = memory.scores[key].level
        missing = np.isnan(matrix.table)
        table = np.where(missing, np.nan, level)
        columns = members_by_key((place[0], at) for place, at in matrix.places.items())
        for app, cluster in sorted(running):
            row, own = matrix.apps.get(app), columns.get(cluster, [])
            if row is None or not missing[row, own].any():
                continue
            last = np.where(missing[row, own], level[row, own], table[row, own])
            if np.isnan(last).all():
                known = table[row][~np.isnan(table[row])]
                last = np.full(len(own), np.median(known) if len(known) else 0.0)
                unknown.add((app, cluster))
            if not np.array_equal(last, table[row, own], equal_nan=True):
                filled.add((app, cluster))
            table[row, own] = last
        scores[key] = replace(matrix, table=table)
    return _Filled(scores, _by_app(filled), _by_app(unknown))


def _with_value(
    scores: Mapping[str, ScoreMatrix], keys: Collection[str], missing: float
) -> Iterator[tuple[str, ScoreMatrix]]:
    """Yield the scores, with a value where one of these keys has none."""
    for key, matrix in scores.items():
        table = np.where(np.isnan(matrix.table), missing, matrix.table)
        yield key, replace(matrix, table=table) if key in keys else matrix


def _by_app(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    return {app: frozenset(found) for app, found in members_by_key(pairs).items()}


class _Values:
    """What places are worth to apps by their averages, how much that varies, and who is new."""

    def __init__(
        self,
        scores: Mapping[str, ScoreMatrix],
        memory: ScoreMemory,
        fleet: Fleet,
        hysteresis: Hysteresis,
    ) -> None:
        objectives = fleet.objectives
        self.hysteresis = hysteresis
        self._differences = memory.differences
        self.scale = sum(item.weight for item in objectives)
        self._read = [
            (item, scores[item.score], known.variation, memory.settled(known))
            for item in objectives
            if item.score in scores
            for known in [memory.scores[item.score]]
        ]
        self.columns = members_by_key(
            (place[0], at)
            for _, matrix, *_ in self._read[:1]
            for place, at in matrix.places.items()
        )
        self._devices = [device for _, matrix, *_ in self._read[:1] for _, device in matrix.places]
        self._supplied = {item.name: frozenset(_supplied(item)) for item in fleet.clusters}
        self.of_app: Callable[[str], tuple[Floats, Floats, Bools]] = lru_cache(_CACHED_APPS)(
            self._of_app
        )

    def supplied_on(self, cluster: str, kind: str) -> list[int]:
        """Return the places of a cluster that it supplies of a kind now; all if it has none."""
        every = self.columns.get(cluster, [])
        known = self._supplied.get(cluster, frozenset())
        return [at for at in every if (kind, self._devices[at]) in known] or every

    def _of_app(self, app: str) -> tuple[Floats, Floats, Bools]:
        """Return value, variation, and whether each place is new [places]."""
        places = len(self._read[0][1].places) if self._read else 0
        value, variance, new = np.zeros(places), np.zeros(places), np.zeros(places, np.bool_)
        for objective, matrix, variation, settled in self._read:
            row = matrix.apps.get(app)
            if row is None:
                return np.full(places, np.nan), variance, new
            value = value + objective.values(np.asarray(matrix.table[row], np.float64))
            variance += (_slope(objective) * self._varied(variation[row])) ** 2
            new |= ~settled[row]
        return value, np.sqrt(variance), new

    def _varied(self, own: Floats) -> Floats:
        """Return variations [places]; at least their median while few differences were taken."""
        if self._differences >= _ENOUGH_DIFFERENCES:
            return own
        return np.maximum(own, np.median(own))


def _supplied(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield the kinds and devices that a cluster supplies now."""
    policies = (*cluster.enforced, *(item for item in cluster.candidates if item.current))
    for supply in (*cluster.base, *(one for item in policies for one in item.supplies)):
        yield supply.kind, supply.device


def _slope(objective: Objective) -> float:
    """Return by how much a value changes at most when its score changes by a point."""
    if objective.minimum is None or objective.maximum is None:
        return objective.weight
    return 100.0 * objective.weight / (objective.maximum - objective.minimum)


def _with_margin(
    workload: Workload, staying: tuple[str, ...], filled: _Filled, values: _Values
) -> tuple[Workload, bool]:
    """Return a workload that stays unless a move gains its margin, and whether it waits."""
    stale = filled.filled.get(workload.app, frozenset()).difference(staying)
    excluded = (*workload.excluded_clusters, *sorted(stale.difference(workload.excluded_clusters)))
    if not staying:
        return replace(workload, excluded_clusters=excluded), False
    only = workload.clusters
    if not filled.unknown.get(workload.app, frozenset()).isdisjoint(staying):
        only = _where_it_runs(workload)
    found = list(_margins(workload, staying, values))
    least = workload.minimum_score
    if least is not None:
        least = min([least, *(here for here, margin, _ in found if here + margin >= least)])
    changed = replace(
        workload,
        clusters=only,
        excluded_clusters=excluded,
        minimum_score=least,
        move_cost=max(margin for _, margin, _ in found),
    )
    return changed, any(waits for *_, waits in found)


def _margins(
    workload: Workload, staying: tuple[str, ...], values: _Values
) -> Iterator[tuple[float, float, bool]]:
    """Yield, for each cluster that a workload stays on, its value there and its margin.

    And whether the margin is that of scores that are not averaged over a whole window.
    """
    value, variation, new = values.of_app(workload.app)
    rules = values.hysteresis
    away = ~np.isnan(value)
    for cluster in workload.current:
        away[values.columns.get(cluster, [])] = False
    for cluster in staying:
        own = [at for at in values.supplied_on(cluster, workload.kind) if not np.isnan(value[at])]
        best = max(own, key=lambda at: float(value[at]), default=None)
        here = 0.0 if best is None else float(value[best])
        base = max(
            workload.move_cost,
            rules.least_gain * values.scale,
            rules.least_gain_percent / 100 * abs(here),
        )
        if best is None or not away.any():
            yield here, base + TIE * values.scale, False
            continue
        unsure = new | new[best]
        noise = rules.variation_multiple * (variation[best] + variation)
        gain = value - here
        settled = away & ~unsure
        significant = settled & (gain > np.maximum(base, noise))
        if significant.any():
            lure = np.argmax(np.where(significant, gain - noise, -np.inf))
            margin = max(base, float(noise[lure]))
        else:
            margin = max(base, float(np.max(noise, where=settled & (gain > base), initial=0.0)))
        waits = float(np.max(gain, where=away & unsure, initial=0.0))
        yield here, max(margin, waits) + TIE * values.scale, waits > margin
