"""What is known of which limits, given up together, make room: few questions need a solver.

Giving up more never takes room away, and workloads that differ in name alone can stand for each
other. So an answer for some limits is one for all that are at least, or at most, as many and alike.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence

from optimizer.domain.fleet import Fleet, Workload
from optimizer.domain.solution import Assignment, Decision
from optimizer.domain.time_left import TimeLeft, unlimited
from optimizer.explain.conflicts.feasibility_check import check_feasibility
from optimizer.explain.conflicts.feasibility_problem import (
    feasibility_problem,
    replica_counts,
    required_without,
)
from optimizer.explain.conflicts.relaxable_limits import RelaxableLimit, RequiredReplicas, relaxed
from optimizer.explain.solver_ports import BudgetExceeded, ProblemSolver
from optimizer.model.rules import violations

RelaxedKeys = Counter[Hashable]
"""Limits given up; those that keep workloads running which are alike have one key."""

_Amounts = defaultdict[tuple[str, str, str], float]
"""By cluster, kind and device."""


class FeasibilityOracle:
    """Tells whether all that is wanted can run where some limits are given up.

    `lacking`: by limit of supply (its id), what one place more lacks beside what runs now.
    """

    def __init__(
        self,
        fleet: Fleet,
        wanted: RequiredReplicas,
        named: Sequence[RelaxableLimit],
        resolve: ProblemSolver,
        time_left: TimeLeft = unlimited,
    ) -> None:
        self._fleet, self._wanted, self._named = fleet, wanted, tuple(named)
        self._resolve, self._time_left = resolve, time_left
        self._workloads = {item.name: item for item in fleet.workloads}
        keys = symmetry_keys(fleet, wanted.counts, {self._workloads[wanted.workload].app})
        self._keys = {id(item): keys.get(item.keeps_running, id(item)) for item in named}
        self._room, self._none = list[RelaxedKeys](), list[RelaxedKeys]()
        self.lacking: dict[int, float] = {}

    def possible(self, without: Iterable[RelaxableLimit]) -> bool | None:
        """Tell whether there is room without some limits; None: not known."""
        given_up = tuple(without)
        given = self._given(given_up)
        if any(known <= given for known in self._room):
            return True
        if any(given <= known for known in self._none):
            return False
        return self._solved(given_up, given)

    def _given(self, given_up: Iterable[RelaxableLimit]) -> RelaxedKeys:
        return Counter(self._keys[id(item)] for item in given_up)

    def _solved(self, given_up: Sequence[RelaxableLimit], given: RelaxedKeys) -> bool | None:
        if not self._time_left():
            raise BudgetExceeded
        needed = required_without(self._wanted, given_up)
        problem = feasibility_problem(relaxed(self._fleet, given_up), needed)
        answer = False if problem is None else check_feasibility(problem, needed, self._resolve)
        if isinstance(answer, Decision):
            self._room.append(self._given(self._used(answer, given_up)))
            return True
        if answer is False:
            self._none.append(given)
        return answer

    def learn(self, decision: Decision) -> None:
        """Learn from what runs: which single limit makes room for one place more, beside it."""
        supplies = [item for item in self._named if item.rule == "capacity"]
        running = [item for item in self._named if item.rule == "runs"]
        wide = feasibility_problem(relaxed(self._fleet, supplies), self._wanted.counts)
        if wide is None:
            return
        for place in _possible(wide.workload_index, self._wanted, supplies):
            for changed in () if place in decision.assignments else self._tries(decision, place):
                used = self._used(changed, [*supplies, *running])
                given = self._given(used)
                if any(known <= given for known in self._room) or violations(wide, changed):
                    continue
                self._room.append(given)
                if len(used) == 1 and used[0].rule == "capacity":
                    self.lacking[id(used[0])] = self._lack(used[0], changed)

    def _tries(self, decision: Decision, place: Assignment) -> Iterator[Decision]:
        """Yield the decision with a place more: beside what runs, and instead of one other."""
        yield Decision(decision.policies, (*decision.assignments, place))
        others = (item for item in decision.assignments if item[1:] == place[1:])
        for name in dict.fromkeys(item.workload for item in others):
            if name != place.workload:
                left = (item for item in decision.assignments if item.workload != name)
                yield Decision(decision.policies, (*left, place))

    def _used(self, decision: Decision, given_up: Iterable[RelaxableLimit]) -> list[RelaxableLimit]:
        """Return which limits must be given up for a decision, of those without which it is."""
        running, loads = replica_counts(decision), self._loads(decision)
        supplied = self._supplied(decision)

        def needed(item: RelaxableLimit) -> bool:
            if item.rule == "runs":
                return running.get(item.keeps_running, 0) != self._wanted.counts[item.keeps_running]
            if item.rule == "capacity":
                cluster, kind, device = item.subject
                at = cluster, kind, device
                # What asks for nothing of a device needs one all the same.
                return at in loads and (loads[at] > supplied[at] or supplied[at] <= 0)
            return True

        return [item for item in given_up if needed(item)]

    def _lack(self, barrier: RelaxableLimit, decision: Decision) -> float:
        cluster, kind, device = barrier.subject
        key = cluster, kind, device
        return self._loads(decision)[key] - self._supplied(decision)[key]

    def _loads(self, decision: Decision) -> _Amounts:
        found: _Amounts = defaultdict(float)
        for place in decision.assignments:
            item = self._workloads[place.workload]
            found[place.cluster, item.kind, place.device] += item.amount
            for kind, amount in item.extras:
                found[place.cluster, kind, ""] += amount
        return found

    def _supplied(self, decision: Decision) -> _Amounts:
        found: _Amounts = defaultdict(float)
        chosen = set(decision.policies)
        for cluster in self._fleet.clusters:
            supplies = list(cluster.base)
            for item in cluster.candidates:
                if (cluster.name, item.policy) in chosen:
                    supplies += item.supplies
            for supply in supplies:
                found[cluster.name, supply.kind, supply.device] += supply.amount
        return found


def _possible(
    known: Mapping[str, int], wanted: RequiredReplicas, supplies: Iterable[RelaxableLimit]
) -> Iterator[Assignment]:
    """Yield places to try for a workload: one for each limit of supply."""
    if wanted.workload in known:
        for item in supplies:
            yield Assignment(wanted.workload, item.subject[0], item.subject[2])


def symmetry_keys(
    fleet: Fleet, counts: Mapping[str, int], apps: Container[str]
) -> Mapping[str, Hashable]:
    """Return a key by workload; those of equal keys differ in nothing that a rule speaks of.

    `counts`: on how many clusters they run. `apps`: those that no other app is like.
    """
    lacking = {
        app: tuple(held.lacks(app) for held in fleet.scores.values())
        for app in {item.app for item in fleet.workloads}
    }
    labelled = any(item.near or item.apart for item in fleet.workloads)
    costed = any(item.score for item in fleet.limits)

    def key(item: Workload) -> Hashable:
        by_app = costed or item.minimum is not None or item.app in apps
        return (
            *(item.kind, item.amount, item.extras, item.replicas, item.spread, item.uses),
            *(item.clusters, item.excluded, item.affinity, item.anti_affinity, item.near),
            counts.get(item.name, 0),
            item.name if item.apart else "",
            item.minimum,
            frozenset(item.labels.items()) if labelled else None,
            item.app if by_app else lacking[item.app],
        )

    return {item.name: key(item) for item in fleet.workloads}
