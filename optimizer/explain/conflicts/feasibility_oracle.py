"""Whether relaxing some limits makes room, remembered so that few questions need a solver.

Relaxing more limits never takes room away, and workloads that differ in name alone are
interchangeable. So one answer holds for every superset (there is room) or subset (there is none),
also after swapping interchangeable workloads.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import chain

from optimizer.domain.fleet import Fleet, Workload
from optimizer.domain.solution import Assignment, Decision
from optimizer.domain.stop_callback import TimeLeft, unlimited
from optimizer.explain.conflicts.feasibility_check import check_feasibility
from optimizer.explain.conflicts.feasibility_problem import (
    feasibility_problem,
    replica_counts,
    required_without,
)
from optimizer.explain.conflicts.limit_kinds import (
    RelaxableLimit,
    RequiredReplicas,
    RunningWorkload,
    SuppliedCapacity,
)
from optimizer.explain.conflicts.relaxable_limits import relaxed
from optimizer.explain.solver_ports import BudgetExceeded, ProblemSolver
from optimizer.model.problem import NO_DEVICE
from optimizer.model.rules import violations

RelaxedKeys = Counter[Hashable]
"""The relaxed limits by key; those that keep interchangeable workloads running share one key."""

_KEYED_FIELDS = tuple(
    item.name
    for item in fields(Workload)
    if item.name
    not in {"name", "app", "labels", "workload_anti_affinity", "placement", "priority"}
    | {"move_cost", "current"}
)
"""The fields that make two workloads differ. The key adds what it needs of the names, apps and
labels; the others change what assignments are worth, not which are possible."""

_Amounts = defaultdict[tuple[str, str, str], float]
"""By cluster, kind and device."""


class FeasibilityOracle:
    """Tells whether all required replicas can run where some limits are relaxed.

    `lacking`: by capacity (its id), how much of it one more assignment lacks, where known.
    """

    def __init__(
        self,
        fleet: Fleet,
        required: RequiredReplicas,
        limits: Sequence[RelaxableLimit],
        solve: ProblemSolver,
        time_left: TimeLeft = unlimited,
    ) -> None:
        self._fleet, self._required, self._limits = fleet, required, tuple(limits)
        self._solve, self._time_left = solve, time_left
        self._workloads = {item.name: item for item in fleet.workloads}
        keys = symmetry_keys(fleet, required.counts, {self._workloads[required.workload].app})
        self._keys = {id(item): keys.get(item.keeps_running, id(item)) for item in limits}
        self._feasible, self._infeasible = list[RelaxedKeys](), list[RelaxedKeys]()
        self.lacking: dict[int, float] = {}

    def feasible(self, relaxing: Iterable[RelaxableLimit]) -> bool | None:
        """Tell whether there is room without some limits; None: not known."""
        given_up = tuple(relaxing)
        keys = self._keys_of(given_up)
        if any(known <= keys for known in self._feasible):
            return True
        if any(keys <= known for known in self._infeasible):
            return False
        return self._checked(given_up, keys)

    def learn_from(self, decision: Decision) -> None:
        """Find single limits that make room, by adding one assignment to what runs."""
        capacities = [item for item in self._limits if isinstance(item, SuppliedCapacity)]
        running = [item for item in self._limits if isinstance(item, RunningWorkload)]
        wide = feasibility_problem(relaxed(self._fleet, capacities), self._required.counts)
        if wide is None or self._required.workload not in wide.workload_index:
            return
        for limit in capacities:
            added = Assignment(self._required.workload, limit.cluster, limit.device)
            for changed in () if added in decision.assignments else _with(decision, added):
                used = self._used(changed, [*capacities, *running])
                keys = self._keys_of(used)
                if any(known <= keys for known in self._feasible) or violations(wide, changed):
                    continue
                self._feasible.append(keys)
                (first, *others) = used
                if isinstance(first, SuppliedCapacity) and not others:
                    loads, supplied = self._use(changed)
                    self.lacking[id(first)] = loads[first.resource] - supplied[first.resource]

    def _keys_of(self, relaxing: Iterable[RelaxableLimit]) -> RelaxedKeys:
        return Counter(self._keys[id(item)] for item in relaxing)

    def _checked(self, relaxing: Sequence[RelaxableLimit], keys: RelaxedKeys) -> bool | None:
        if not self._time_left():
            raise BudgetExceeded
        needed = required_without(self._required, relaxing)
        problem = feasibility_problem(relaxed(self._fleet, relaxing), needed)
        answer = False if problem is None else check_feasibility(problem, needed, self._solve)
        if isinstance(answer, Decision):
            self._feasible.append(self._keys_of(self._used(answer, relaxing)))
            return True
        if answer is False:
            self._infeasible.append(keys)
        return answer

    def _used(self, decision: Decision, relaxing: Iterable[RelaxableLimit]) -> list[RelaxableLimit]:
        """Return those of the relaxed limits that a decision breaks, as far as that is checked."""
        running, (loads, supplied) = replica_counts(decision), self._use(decision)

        def broken(item: RelaxableLimit) -> bool:
            match item:
                case RunningWorkload(workload=name):
                    return running.get(name, 0) != self._required.counts[name]
                case SuppliedCapacity(resource=at):
                    # A workload that asks for an amount of 0 still needs a device.
                    return at in loads and (loads[at] > supplied[at] or supplied[at] <= 0)
            return True

        return [item for item in relaxing if broken(item)]

    def _use(self, decision: Decision) -> tuple[_Amounts, _Amounts]:
        """Return what a decision takes and what it supplies.

        A decision of a relaxed fleet may take resources that no problem of this fleet has.
        """
        loads, supplied = _Amounts(float), _Amounts(float)
        for place in decision.assignments:
            item = self._workloads[place.workload]
            loads[place.cluster, item.kind, place.device] += item.amount
            for kind, amount in item.requests:
                loads[place.cluster, kind, NO_DEVICE] += amount
        chosen = set(decision.policies)
        for cluster in self._fleet.clusters:
            own = (i.supplies for i in cluster.candidates if (cluster.name, i.policy) in chosen)
            for supply in chain(cluster.base, *own):
                supplied[cluster.name, supply.kind, supply.device] += supply.amount
        return loads, supplied


def _with(decision: Decision, added: Assignment) -> Iterator[Decision]:
    """Yield a decision with one more assignment, and with it in place of one workload's."""
    yield Decision(decision.policies, (*decision.assignments, added))
    others = (item for item in decision.assignments if item[1:] == added[1:])
    for name in dict.fromkeys(item.workload for item in others):
        if name != added.workload:
            left = (item for item in decision.assignments if item.workload != name)
            yield Decision(decision.policies, (*left, added))


def symmetry_keys(
    fleet: Fleet, counts: Mapping[str, int], apps: Container[str]
) -> Mapping[str, Hashable]:
    """Return a key by workload; workloads of equal keys differ in nothing that a rule reads.

    `counts`: on how many clusters they run. `apps`: those whose workloads equal no other app's.
    Scores do not count, because a feasibility problem makes every assignment worth the same.
    """
    lacking = {
        app: tuple(held.lacks(app) for held in fleet.scores.values())
        for app in {item.app for item in fleet.workloads}
    }
    labelled = any(item.workload_selectors for item in fleet.workloads)
    costed = any(item.score for item in fleet.limits)

    def key(item: Workload) -> Hashable:
        by_app = costed or item.minimum_score is not None or item.app in apps
        return (
            *(getattr(item, name) for name in _KEYED_FIELDS),
            counts.get(item.name, 0),
            item.name if item.workload_anti_affinity else "",
            frozenset(item.labels.items()) if labelled else None,
            item.app if by_app else lacking[item.app],
        )

    return {item.name: key(item) for item in fleet.workloads}
