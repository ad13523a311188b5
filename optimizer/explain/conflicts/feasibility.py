"""Whether all that is needed can run: by counting, greedily, and only then by solving.

The problem regards no values. Every required assignment is worth the same and everything else
nothing, so any solver can decide: all can run if and only if the optimum has all required
assignments.

Counting proves that there is no room where some dual feasible function of the sizes says so: the
sizes themselves, or how often a smaller size fits into them (S. P. Fekete, J. Schepers, New classes
of fast lower bounds for bin packing problems, Mathematical Programming 91, 2001).

Relaxing more limits never removes a feasible decision, and workloads that differ only in name are
interchangeable. So one result holds for every superset (feasible) or subset (infeasible), also
after swapping interchangeable workloads.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import floor, prod

import numpy as np

from optimizer.domain.arrays import Floats, members_by_key
from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Assignment, Decision, Solution, TimeLeft, unlimited
from optimizer.explain.case import BudgetExceeded, ProblemSolver
from optimizer.explain.conflicts.fleet_changes import LimitChange
from optimizer.explain.conflicts.limits import (
    RelaxableLimit,
    RequiredReplicas,
    RunningWorkload,
    WorkloadConstraint,
)
from optimizer.explain.conflicts.relaxable_limits import relaxed
from optimizer.explain.conflicts.supply_limits import NodeBoundary, SuppliedCapacity
from optimizer.explain.tuning import COUNTED_COMBINATIONS, COUNTED_SIZES
from optimizer.model.allocation import Allocation
from optimizer.model.formulate import formulate
from optimizer.model.predicates import FoundOnNodes, ResourceIndex
from optimizer.model.problem import Problem
from optimizer.model.rules import violations
from optimizer.model.symmetry import relaxation_keys
from optimizer.solve.greedy import fill_remaining

WORTH = 1000.0
"""Value of a required assignment; prices of a sizing problem add up to less than half of it."""


def replica_counts(decision: Decision) -> Mapping[str, int]:
    """Return on how many clusters each workload runs; 0 of what has no place."""
    return Counter(item.workload for item in decision.assignments)


def required_without(
    required: RequiredReplicas, relaxing: Iterable[RelaxableLimit]
) -> dict[str, int]:
    """Return how many replicas of each workload must run where some limits are relaxed."""
    free = {limit.workload for limit in relaxing if isinstance(limit, RunningWorkload)}
    return {name: count for name, count in required.counts.items() if name not in free}


def feasibility_problem(
    fleet: Fleet, needed: Mapping[str, int], found: FoundOnNodes | None = None
) -> Problem | None:
    """Return the problem that asks whether all that is needed can run.

    None: a workload has no candidate assignment at all, so it can't.
    """
    problem = formulate(without_costs(fleet, needed), found)
    if not set(needed) <= set(problem.workload_index):
        return None
    worth = np.array([WORTH if item.name in needed else 0.0 for item in problem.workloads])
    usable = ~np.isnan(problem.values)
    return replace(problem, values=np.where(usable, worth[:, np.newaxis], np.nan))


def all_placed(solution: Solution, count: int) -> bool | None:
    """Tell whether a solution has all `count` required assignments, or proves that none can.

    None: the solution is not good enough and its bound is not tight enough to decide.
    """
    least = (count - 0.5) * WORTH
    if solution.objective_value > least:
        return True
    if solution.bound is not None and solution.bound < least:
        return False
    return None


def without_costs(fleet: Fleet, needed: Mapping[str, int]) -> Fleet:
    """Return the fleet with the replicas that are needed, no priorities, and no costs."""
    return replace(
        fleet,
        workloads=tuple(
            replace(item, replicas=needed.get(item.name, item.replicas), priority=0, move_cost=0.0)
            for item in fleet.workloads
        ),
        clusters=tuple(
            replace(item, candidates=tuple(replace(own, cost=0.0) for own in item.candidates))
            for item in fleet.clusters
        ),
    )


_TOLERANCE = 1e-6
"""Relative: amounts that differ by less count as equal."""


def check_feasibility(
    problem: Problem, needed: Mapping[str, int], solve: ProblemSolver
) -> Decision | bool | None:
    """Return a decision that has all that is needed, False where none has, None if not known."""
    if exceeds_capacity(problem, needed):
        return False
    packed = fill_remaining(problem, Decision(), lambda: False)
    counts = replica_counts(packed)
    if all(counts[name] >= count for name, count in needed.items()):
        return packed
    solution = solve(problem)
    answer = all_placed(solution, sum(needed.values()))
    return solution.decision if answer else answer


def exceeds_capacity(problem: Problem, needed: Mapping[str, int]) -> bool:
    """Tell whether more of some kind is needed than all clusters together can supply."""
    asked = ((problem.workloads[problem.workload_index[name]], needed[name]) for name in needed)
    sizes = members_by_key(
        (kind, (amount, count))
        for workload, count in asked
        for kind, amount in ((workload.kind, workload.amount), *workload.requests)
    )
    return any(_exceeds(problem, kind, asked) for kind, asked in sizes.items())


def _exceeds(problem: Problem, kind: str, asked: list[tuple[float, int]]) -> bool:
    clusters = list(_supplies(problem, kind))
    distinct = sorted({amount for amount, _ in asked if amount > 0}, reverse=True)
    for size in distinct[:COUNTED_SIZES]:
        count = sum(times * floor(amount / size) for amount, times in asked)
        fitting = (
            max(float(np.floor(amounts / size + _TOLERANCE).sum()) for amounts in some)
            for some in clusters
        )
        if count > sum(fitting):
            return True
    total = sum(amount * times for amount, times in asked)
    most = sum(max(float(amounts.sum()) for amounts in some) for some in clusters)
    return total > most * (1 + _TOLERANCE) + _TOLERANCE


def _supplies(problem: Problem, kind: str) -> Iterator[list[Floats]]:
    """Yield for each cluster the amounts of its resources of a kind under each policy combination.

    Above `COUNTED_COMBINATIONS` it is one array, with the supplies of all policies added up.
    """
    numbers = members_by_key(
        (item.cluster, number) for number, item in enumerate(problem.resources) if item.kind == kind
    )
    pools: dict[int, dict[str, list[Floats]]] = {cluster: {} for cluster in numbers}
    for policy in problem.policies:
        supplied = dict(policy.supplies)
        amounts = np.array([supplied.get(at, 0.0) for at in numbers.get(policy.cluster, [])])
        if amounts.any():
            pools[policy.cluster].setdefault(policy.pool, []).append(amounts)
    for cluster, own in numbers.items():
        base, choices = problem.base[own], list(pools[cluster].values())
        if prod(1 + len(some) for some in choices) <= COUNTED_COMBINATIONS:
            yield [
                base + sum(found) for found in product(*([0.0 * base, *some] for some in choices))
            ]
        else:
            yield [base + sum(np.sum(some, axis=0) for some in choices)]


RelaxedKeys = Counter[int]
"""The relaxed limits by key; those that keep interchangeable workloads running share one key."""


@dataclass(slots=True)
class KnownAnswers:
    """What is known of a workload, which holds for every workload that is interchangeable with it.

    `lacking`: by key of a capacity, how much of it one more assignment lacks.
    """

    numbers: dict[Hashable, int] = field(default_factory=dict)
    feasible: list[RelaxedKeys] = field(default_factory=list)
    infeasible: list[RelaxedKeys] = field(default_factory=list)
    lacking: dict[int, float] = field(default_factory=dict)
    nodes: FoundOnNodes = field(default_factory=dict)
    changes: dict[frozenset[int], tuple[LimitChange, ...] | None] = field(default_factory=dict)


class FeasibilityOracle:
    """Tells whether all required replicas can run where some limits are relaxed.

    `limits`: every limit that has a name. `known` is shared by interchangeable workloads.
    """

    def __init__(
        self,
        fleet: Fleet,
        required: RequiredReplicas,
        limits: Sequence[RelaxableLimit],
        solve: ProblemSolver,
        time_left: TimeLeft = unlimited,
        known: KnownAnswers | None = None,
    ) -> None:
        self.fleet, self.required, self.limits = fleet, required, tuple(limits)
        self.solve, self._time_left = solve, time_left
        self.known = known or KnownAnswers()

    def check_time(self) -> None:
        """Raise BudgetExceeded where no time is left."""
        if not self._time_left():
            raise BudgetExceeded

    def feasible_with(self, held: Sequence[RelaxableLimit]) -> bool | None:
        """Tell whether there is room while only some limits hold; None: not known."""
        kept = set(map(id, held))
        return self.feasible(item for item in self.limits if id(item) not in kept)

    def feasible(self, relaxing: Iterable[RelaxableLimit]) -> bool | None:
        """Tell whether there is room without some limits; None: not known."""
        given_up = tuple(relaxing)
        keys = self.keys_of(given_up)
        if any(known <= keys for known in self.known.feasible):
            return True
        if any(keys <= known for known in self.known.infeasible):
            return False
        return self._checked(given_up, keys)

    def learn_from(self, decision: Decision) -> None:
        """Find small sets of limits that make room, by adding one assignment to what runs.

        They are capacities, workloads that run, and the nodes of a cluster.
        """
        if self.known.feasible:  # an interchangeable workload has learnt it
            return
        capacities = [item for item in self.limits if isinstance(item, SuppliedCapacity)]
        running = [item for item in self.limits if isinstance(item, RunningWorkload)]
        nodes = [item for item in self.limits if isinstance(item, NodeBoundary)]
        for beside in ([], nodes) if nodes else ([],):
            wide = relaxed(self.fleet, (*capacities, *beside))
            problem = feasibility_problem(wide, self.required.counts, self.known.nodes)
            if problem is None:
                continue
            for limit in capacities:
                there = [item for item in beside if item.cluster == limit.cluster]
                added = Assignment(self.required.workload, limit.cluster, limit.device)
                for changed in () if added in decision.assignments else _with(decision, added):
                    self._learn(problem, changed, [*capacities, *there, *running])

    def _learn(self, wide: Problem, changed: Decision, limits: Iterable[RelaxableLimit]) -> None:
        """Note which of the limits a decision needs relaxed, if nothing else rules it out."""
        used = self._used(changed, limits)
        keys = self.keys_of(used)
        if any(known <= keys for known in self.known.feasible) or violations(wide, changed):
            return
        self.known.feasible.append(keys)
        if not any(isinstance(item, RunningWorkload) for item in used):
            short = self._shortages(changed)
            for item in used:
                lack = short[item.resource] if isinstance(item, SuppliedCapacity) else 0.0
                self.known.lacking[self._keys[id(item)]] = lack

    def supply_sets(self, size: int) -> list[tuple[RelaxableLimit, ...]]:
        """Return sets of so many limits of supply that are known to make room."""
        own = [item for item in self.limits if isinstance(item, SuppliedCapacity | NodeBoundary)]
        by_key = {self._keys[id(item)]: item for item in own}
        return [
            tuple(by_key[key] for key in keys)
            for keys in self.known.feasible
            if keys.total() == size and by_key.keys() >= keys.keys()
        ]

    def keys_of(self, limits: Iterable[RelaxableLimit]) -> RelaxedKeys:
        """Return the keys of limits, by which interchangeable workloads have the same."""
        return Counter(self._keys[id(item)] for item in limits)

    @cached_property
    def _keys(self) -> Mapping[int, int]:
        name, numbers = self.required.workload, self.known.numbers
        (app,) = (i.app for i in self.fleet.workloads if i.name == name)
        running = relaxation_keys(self.fleet, self.required.counts, {app})
        constrained = {i.workload for i in self.limits if isinstance(i, WorkloadConstraint)}
        keys: dict[int, Hashable] = {
            id(item): running[item.workload]
            if isinstance(item, RunningWorkload) and item.workload not in constrained
            else item.identity(name)
            for item in self.limits
        }
        return {item: numbers.setdefault(key, len(numbers)) for item, key in keys.items()}

    def _checked(self, relaxing: Sequence[RelaxableLimit], keys: RelaxedKeys) -> bool | None:
        self.check_time()
        needed = required_without(self.required, relaxing)
        problem = feasibility_problem(relaxed(self.fleet, relaxing), needed, self.known.nodes)
        answer = False if problem is None else check_feasibility(problem, needed, self.solve)
        if isinstance(answer, Decision):
            self.known.feasible.append(self.keys_of(self._used(answer, relaxing)))
            return True
        if answer is False:
            self.known.infeasible.append(keys)
        return answer

    def _used(self, decision: Decision, relaxing: Iterable[RelaxableLimit]) -> list[RelaxableLimit]:
        """Return those of the relaxed limits that a decision breaks, as far as that is checked."""
        running, short = replica_counts(decision), self._shortages(decision)

        def broken(item: RelaxableLimit) -> bool:
            match item:
                case RunningWorkload(workload=name):
                    return running.get(name, 0) != self.required.counts[name]
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
        wide, own = formulate(relaxed(self.fleet, self.limits)), ResourceIndex(self.fleet)
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
