"""What the twin sees while it runs, and what follows from it at the end."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dsf.sim.controllers.registration import LEASE_GRACE_SECONDS
from optimizer.domain.arrays import Floats, members_by_key
from optimizer.twin.played import Loss, Move, Played, Sample, Stay
from optimizer.twin.scenario import Scenario, Tenure
from optimizer.twin.score_series import ScoreSeries

Replica = tuple[str, str, str]
"""A workload, and the cluster and the device on which one of its replicas runs."""


@dataclass(slots=True)
class RunHistory:
    """Where replicas ran, as they were seen one after the other."""

    stays: list[Stay] = field(default_factory=list)
    _running: dict[Replica, float] = field(default_factory=dict)

    def see(self, running: Collection[Replica], time: float) -> None:
        """Note what runs at a time."""
        for replica in sorted(self._running.keys() - running):
            self._end(replica, time)
        for replica in sorted(set(running) - self._running.keys()):
            self._running[replica] = time

    def finish(self, time: float) -> tuple[Stay, ...]:
        """Return all stays; those that go on end at this time."""
        self.see((), time)
        return tuple(sorted(self.stays, key=lambda one: (one.begins, one.workload, one.cluster)))

    def _end(self, replica: Replica, time: float) -> None:
        begins = self._running.pop(replica)
        if begins < time:
            workload, cluster, device = replica
            self.stays.append(
                Stay(workload=workload, cluster=cluster, device=device, begins=begins, ends=time)
            )


@dataclass(frozen=True, slots=True)
class Succession:
    """A stay that ended although its workload stayed, and the one that came in its place."""

    before: Stay
    after: Stay | None


class Outcome:
    """What follows from the stays of a run; `worth` is [clusters, groups, rounds] by device."""

    def __init__(
        self,
        scenario: Scenario,
        series: ScoreSeries,
        worth: Mapping[str, Floats],
        stays: Sequence[Stay],
    ) -> None:
        self._scenario = scenario
        self._series = series
        self._worth = {device: np.nan_to_num(rates) for device, rates in worth.items()}
        self._tenures = {tenure.workload: tenure for tenure in scenario.tenures()}
        self._stays = stays
        self._by_workload = members_by_key((stay.workload, stay) for stay in stays)
        self._successions = tuple(self._succeeded())

    def played(
        self, *, controller: str, seed: int, plans: int, applied: int, toleration_seconds: float
    ) -> Played:
        """Return the run, of so many plans; taints are tolerated for so long."""
        return Played(
            controller=controller,
            seed=seed,
            duration=self._scenario.duration,
            value_hours=self.hours_of(self._worth),
            unplaced_minutes=sum(map(self._shortfall, self._tenures.values())) / 60,
            totals={
                score.name: self.hours_of(self._series.true(score.name))
                for score in self._scenario.scores
                if score.total
            },
            plans=plans,
            applied=applied,
            moves=self.moves(),
            losses=tuple(self.losses(toleration_seconds)),
            stays=tuple(self._stays),
            samples=tuple(self.samples()),
        )

    def _place(self, stay: Stay) -> tuple[int, int]:
        group = self._tenures[stay.workload].group.name
        return self._series.clusters[stay.cluster], self._series.groups[group]

    def hours_of(self, rates: Mapping[str, Floats]) -> float:
        """Return the sum over all stays of a rate [clusters, groups, rounds] by device.

        It is in the rate's unit times hours. A device without a rate counts nothing.
        """
        step = self._series.interval
        until = {device: np.cumsum(every, axis=2) * step for device, every in rates.items()}

        def area(stay: Stay, time: float) -> float:
            place, at = self._place(stay), self._series.round_of(time)
            before = until[stay.device][*place, at - 1] if at else 0.0
            return float(before + rates[stay.device][*place, at] * (time - at * step))

        counted = (one for one in self._stays if one.device in rates)
        return sum(area(one, one.ends) - area(one, one.begins) for one in counted) / 3600

    def _shortfall(self, tenure: Tenure) -> float:
        """Return the seconds of all replicas of a workload that were wanted and did not run."""
        wanted, stays = _wanted(tenure), self._by_workload.get(tenure.workload, ())
        ends = min(tenure.ends, self._scenario.duration)
        times = sorted(
            {tenure.begins, ends, *(t for one in stays for t in (one.begins, one.ends) if t < ends)}
        )
        return sum(
            (late - early) * max(0, wanted - sum(one.begins <= early < one.ends for one in stays))
            for early, late in pairwise(times)
            if early >= tenure.begins
        )

    def samples(self) -> Iterator[Sample]:
        """Yield the fleet at the beginning of each round."""
        series = self._series
        times = np.arange(series.rounds) * series.interval
        value, running, missing = (np.zeros(series.rounds) for _ in range(3))
        for tenure in self._tenures.values():
            own = np.zeros(series.rounds)
            for stay in self._by_workload.get(tenure.workload, ()):
                there = slice(*np.searchsorted(times, (stay.begins, stay.ends)))
                if stay.device in self._worth:
                    value[there] += self._worth[stay.device][*self._place(stay), there]
                own[there] += 1
            exists = (times >= tenure.begins) & (times < tenure.ends)
            missing += np.where(exists, np.maximum(_wanted(tenure) - own, 0), 0)
            running += own
        for at in np.nonzero(times < self._scenario.duration)[0]:
            yield Sample(
                at=float(times[at]),
                value=round(float(value[at]), 6),
                running=int(running[at]),
                unplaced=int(missing[at]),
            )

    def moves(self) -> tuple[Move, ...]:
        """Return the moves, in the order of their times."""
        found = [
            Move(
                at=one.after.begins,
                workload=one.before.workload,
                source=one.before.cluster,
                target=one.after.cluster,
                reason="ClusterLost" if self._was_lost(one.before) else "BetterScore",
            )
            for one in self._successions
            if one.after and one.after.cluster != one.before.cluster
        ]
        return tuple(sorted(found, key=lambda move: (move.at, move.workload, move.source)))

    def losses(self, toleration_seconds: float) -> Iterator[Loss]:
        """Yield what became of the clusters that were lost while replicas ran there."""
        for failure in self._scenario.failures:
            if failure.type != "ClusterLost":
                continue
            noticed = failure.at + LEASE_GRACE_SECONDS
            lasts = failure.lasts_at(noticed)
            for cluster in sorted(self._scenario.named_clusters(failure.clusters)):
                hit = [
                    one
                    for one in self._successions
                    if one.before.cluster == cluster and one.before.ends == failure.at
                ]
                again = [one.after.begins for one in hit if one.after]
                if hit:
                    yield Loss(
                        cluster=cluster,
                        at=failure.at,
                        noticed=noticed if lasts else None,
                        due=noticed + toleration_seconds if lasts else None,
                        replicas=len(hit),
                        recovered=max(again) if len(again) == len(hit) else None,
                    )

    def _was_lost(self, stay: Stay) -> bool:
        return stay.cluster in self._scenario.failing("ClusterLost", stay.ends)

    def _succeeded(self) -> Iterator[Succession]:
        """Yield the successions; a replica that starts first succeeds the next one that stops."""
        for name, stays in self._by_workload.items():
            tenure = self._tenures[name]
            last = min(tenure.ends, self._scenario.duration)
            ended, early, running = list[Stay](), list[Stay](), 0
            for time, starts, stay in _events(stays):
                running += 1 if starts else -1
                if starts and ended:
                    yield Succession(ended.pop(0), stay)
                elif starts and running > _wanted(tenure):
                    early.append(stay)
                elif not starts and time < last:
                    if early:
                        yield Succession(stay, early.pop(0))
                    else:
                        ended.append(stay)
            yield from (Succession(stay, None) for stay in ended)


def _events(stays: Iterable[Stay]) -> list[tuple[float, bool, Stay]]:
    """Return the beginnings and ends of stays by their time, ends first."""
    found = [(one.begins, True, one) for one in stays] + [(one.ends, False, one) for one in stays]
    return sorted(found, key=lambda event: event[:2])


def _wanted(tenure: Tenure) -> int:
    return tenure.group.replicas or 1
