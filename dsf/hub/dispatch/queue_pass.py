"""Which clusters the Workloads of a queue get, one turn after the other; pure.

In a turn are the Workloads of one priority that have no cluster yet. In order, the oldest one
chooses first, and what it takes is not there for the others. Where this does not give everyone its
best cluster, one plan is made for all of them, and decides if it is worth more.

The plan is a generalised assignment problem: Workloads that request the same and are worth the same
everywhere are one kind, and one integer says how many of a kind go to a cluster. Their worth is
maximised, subject to how many there are of each kind and to what is free on each cluster.

Source: S. Martello and P. Toth, Knapsack Problems, 1990, chapter 7.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from dsf.hub.dispatch.candidates import Candidate, QueuedWorkload, WorkerFleet
from dsf.hub.dispatch.worker_clusters import QUOTA, quota_of, total
from dsf.hub.dispatch.workloads import AssignedWorkload, WaitingWorkload
from dsf.runtime.reconcile.reflector import Key


class Contender(NamedTuple):
    """A Workload of a plan: what it requests, and its worth on each cluster where it fits."""

    requests: Mapping[str, float]
    worths: Mapping[str, float]


Row = Mapping[int, float]
"""Coefficients by column; their sum is at most 1."""

Solve = Callable[
    [Sequence[float], Sequence[int], Sequence[Row]], tuple[Sequence[float], float] | None
]
"""Maximises an objective over integers from 0 to their upper bounds, subject to rows.

Returns them and a bound of the objective; None without a solution.
"""


def assigned(
    contenders: Mapping[Key, Contender], free: Callable[[str, str], float], solve: Solve
) -> tuple[dict[Key, str], float] | None:
    """Return the cluster of each Workload that gets one, and a bound on the worth of all.

    None if the solver finds nothing. `free` returns how much of a resource is left on a cluster.
    The first Workloads of a kind get its better clusters.
    """
    kinds = defaultdict[object, list[Key]](list)
    for at, each in contenders.items():
        kinds[frozenset(each.requests.items()), frozenset(each.worths.items())].append(at)
    columns = list[tuple[list[Key], str, float]]()
    rows = defaultdict[object, dict[int, float]](dict)
    for kind, keys in enumerate(kinds.values()):
        requests, worths = contenders[keys[0]]
        for cluster, worth in sorted(worths.items(), key=lambda item: -item[1]):
            rows[kind][len(columns)] = 1 / len(keys)
            for resource, amount in requests.items():
                if amount and (left := free(cluster, resource)) < math.inf:
                    rows[cluster, resource][len(columns)] = amount / left
            columns.append((keys, cluster, worth))
    objective, upper = [each[2] for each in columns], [len(each[0]) for each in columns]
    found = solve(objective, upper, [*rows.values()])
    if found is None:
        return None
    chosen = dict[Key, str]()
    for (keys, cluster, _), value in zip(columns, found[0], strict=True):
        chosen |= dict.fromkeys([keys.pop(0) for _ in range(round(value))], cluster)
    return chosen, found[1]


MOST_NOMINATED = 20
"""Clusters that Kueue's API allows in status.nominatedClusterNames."""


@dataclass(frozen=True, slots=True)
class NominationSettings:
    """How many clusters are nominated at once, and after how many seconds the next ones."""

    at_once: int = 1
    next_after_seconds: float = 300.0


class Choice(NamedTuple):
    """The clusters that a Workload has or gets, the first one first, and those that follow.

    `plan`: what is said of the plan for its turn; empty if none was needed.
    """

    queued: QueuedWorkload
    clusters: Sequence[Candidate]
    following: Sequence[Candidate]
    plan: str = ""


_Contenders = Mapping[Key, Contender]
_Taken = dict[str, dict[str, float]]


class QueuePass:
    """One decision about all Workloads, by what is free on the clusters and of their quotas."""

    def __init__(self, fleet: WorkerFleet, settings: NominationSettings, now: datetime) -> None:
        self._fleet = fleet
        self._settings = settings
        self._now = now
        self._rooms = {
            name: room for name, room in fleet.rooms.items() if room.times.relied_on(now)
        }
        self._taken: _Taken = {}

    def take(
        self, cluster: str, workload: WaitingWorkload | AssignedWorkload, *, of_nodes: bool = True
    ) -> None:
        """Count what a Workload requests as used on a managed cluster: of its quotas, or of all."""
        amounts = self._taken.setdefault(cluster, {})
        asked = total(workload.pod_sets) if of_nodes else {}
        for resource, amount in {**asked, **self._of_quotas(workload)}.items():
            amounts[resource] = amounts.get(resource, 0.0) + amount

    def _of_quotas(self, workload: WaitingWorkload | AssignedWorkload) -> dict[str, float]:
        """Return what a Workload requests of the quotas of its queue; empty if none is known."""
        asked = total(workload.pod_sets) if self._fleet.quotas else {}
        return {quota_of(workload.queue, name): amount for name, amount in asked.items()}

    def decided(self, turn: Sequence[QueuedWorkload], solve: Solve | None) -> list[Choice]:
        """Return the clusters of Workloads: in order, or by a plan if that is worth more."""
        contenders = self._contenders(turn)
        choices, taken = self._by({}, turn)
        worth, figures = _outcome(choices, contenders)
        best = sum(max(each.worths.values()) for each in contenders.values())
        what = f"{len(contenders)} Workloads of priority {turn[0].workload.priority}"
        told = f"In order, because there is no plan for {what}: HiGHS is not installed."
        if math.isclose(worth, best):
            told = ""
        elif solve and (found := assigned(contenders, self._free, solve)):
            told = f"One plan for {what}: {figures}, as in order"
            by_plan, taken_by_plan = self._by(found[0], turn)
            worth_by_plan, figures_by_plan = _outcome(by_plan, contenders)
            if worth_by_plan > worth:
                told = f"One plan for {what}: {figures_by_plan}; in order: {figures}"
                choices, taken, worth = by_plan, taken_by_plan, worth_by_plan
            gap = max(0.0, min(best, found[1]) - worth) / max(worth, 1e-9)
            told += f"; gap {gap:.1%}."
        elif solve:
            told = f"In order, because HiGHS found no plan for {what}."
        self._taken = taken
        return [
            each._replace(plan=told) if each.queued.at in contenders else each for each in choices
        ]

    def _by(
        self, plan: Mapping[Key, str], turn: Sequence[QueuedWorkload]
    ) -> tuple[list[Choice], _Taken]:
        """Return the clusters of Workloads, those of a plan first, and what is taken then."""
        before, self._taken = self._taken, deepcopy(self._taken)
        ordered = sorted(turn, key=lambda each: each.at not in plan)
        choices = [self._choice(each, plan.get(each.at, "")) for each in ordered]
        after, self._taken = self._taken, before
        return choices, after

    def _choice(self, queued: QueuedWorkload, planned: str) -> Choice:
        workload, candidates = queued.workload, self._with_room(queued)
        ranked = sorted(
            (item for name, item in candidates.items() if name not in queued.kept),
            key=lambda item: (item.name != planned or not item.room, *item.rank),
        )
        wait = timedelta(seconds=self._settings.next_after_seconds)
        over = workload.since is not None and self._now >= workload.since + wait
        due = over and workload.is_told and queued.kept == workload.nominated
        most = min(self._settings.at_once, MOST_NOMINATED - len(queued.kept))
        added = most if due or not queued.kept else 0
        clusters = [*(candidates[name] for name in queued.kept), *ranked[:added]]
        if clusters:
            self.take(clusters[0].managed, workload)
        return Choice(queued, clusters, ranked[added:])

    def _with_room(self, queued: QueuedWorkload) -> dict[str, Candidate]:
        """Return the candidates, and which have room now; one without an inventory has."""
        found = dict[str, Candidate]()
        for name, item in queued.candidates.items():
            room, taken = self._rooms.get(item.managed), self._taken.get(item.managed, {})
            fits = room is None or room.fits(queued.workload.pod_sets, taken)
            of_quotas = self._of_quotas(queued.workload).items()
            allowed = all(self._free(name, quota) >= amount for quota, amount in of_quotas)
            found[name] = item._replace(room=fits and allowed)
        return found

    def _contenders(self, turn: Sequence[QueuedWorkload]) -> _Contenders:
        """Return the new Workloads that have room on a cluster with a score, and their worths.

        With L one less than the least score, having room is worth best score - L, and on top comes
        score - L. A cluster without a score counts as one with L.
        """
        roomy = {
            each.at: (each, items)
            for each in turn
            if not each.kept
            for items in ([item for item in self._with_room(each).values() if item.room],)
            if any(item.number > -math.inf for item in items)
        }
        numbers = [item.number for _, items in roomy.values() for item in items]
        least = min((number for number in numbers if number > -math.inf), default=0.0) - 1
        span = max(numbers, default=0.0) - least
        return {
            at: Contender(
                {**total(each.workload.pod_sets), **self._of_quotas(each.workload)},
                {item.name: span + max(item.number, least) - least for item in items},
            )
            for at, (each, items) in roomy.items()
        }

    def _free(self, worker: str, resource: str) -> float:
        cluster = self._fleet.managed_cluster(worker) or worker
        room, taken = self._rooms.get(cluster), self._taken.get(cluster, {}).get(resource, 0.0)
        quota = self._fleet.quotas.get(cluster, {}).get(resource, math.inf)
        is_quota = QUOTA in resource
        return (quota if is_quota else room.free(resource) if room else math.inf) - taken


def _outcome(choices: Sequence[Choice], contenders: _Contenders) -> tuple[float, str]:
    """Return the worth of where Workloads have room, and its figures in words."""
    placed = [
        (contenders[each.queued.at].worths[first.name], first.number)
        for each in choices
        for first in each.clusters[:1]
        if first.room and each.queued.at in contenders
    ]
    scores = sum(number for _, number in placed if number > -math.inf)
    return sum(worth for worth, _ in placed), f"{len(placed)} have room, sum of scores {scores:g}"
