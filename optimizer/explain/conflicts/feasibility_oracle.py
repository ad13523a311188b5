"""Whether relaxing some limits makes room, remembered so that few questions need a solver.

Relaxing more limits never removes a feasible decision, and workloads that differ only in name are
interchangeable. So one result holds for every superset (feasible) or subset (infeasible), also
after swapping interchangeable workloads.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Assignment, Decision, TimeLeft, unlimited
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
from optimizer.model.allocation import Allocation
from optimizer.model.formulate import formulate
from optimizer.model.predicates import ResourceIndex
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.model.symmetry import relaxation_keys

RelaxedKeys = Counter[Hashable]
"""The relaxed limits by key; those that keep interchangeable workloads running share one key."""


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
        (app,) = (item.app for item in fleet.workloads if item.name == required.workload)
        keys = relaxation_keys(fleet, required.counts, {app})
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
                    self.lacking[id(first)] = self._shortages(changed)[first.resource]

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
        running, short = replica_counts(decision), self._shortages(decision)

        def broken(item: RelaxableLimit) -> bool:
            match item:
                case RunningWorkload(workload=name):
                    return running.get(name, 0) != self._required.counts[name]
                case SuppliedCapacity():
                    return item.resource in short
            return True

        return [item for item in relaxing if broken(item)]

    def _shortages(self, decision: Decision) -> dict[tuple[str, str, str], float]:
        """Return, for each resource that a decision exceeds, the amount that is lacking.

        0 for one that does not exist: a workload that asks for an amount of 0 still needs a device.
        """
        state = Allocation(self._capacity, decision)
        taken = np.array([bool(own) for own in state.workloads_on])
        short = np.flatnonzero((state.residual < 0) | (taken & ~state.exists)).tolist()
        names, resources = self._capacity.clusters, self._capacity.resources
        return {
            (names[resources[at].cluster], *resources[at][1:]): 0.0 - float(state.residual[at])
            for at in short
        }

    @cached_property
    def _capacity(self) -> Problem:
        """The problem without any of the limits, but with the fleet's own capacities."""
        wide, own = formulate(relaxed(self._fleet, self._limits)), ResourceIndex(self._fleet)
        base = dict(zip(own.resources, own.base.tolist(), strict=True))
        return replace(wide, base=np.array([base.get(item, 0.0) for item in wide.resources]))


def _with(decision: Decision, added: Assignment) -> Iterator[Decision]:
    """Yield a decision with one more assignment, and with it in place of one workload's."""
    yield Decision(decision.policies, (*decision.assignments, added))
    others = (item for item in decision.assignments if item[1:] == added[1:])
    for name in dict.fromkeys(item.workload for item in others):
        if name != added.workload:
            left = (item for item in decision.assignments if item.workload != name)
            yield Decision(decision.policies, (*left, added))
