"""The cheapest change that places a workload, verified by solving the changed fleet.

Every set of limits whose change makes room meets every conflict, so the sets are grown from
conflicts, fewest members first (Reiter, Artificial Intelligence 32, 1987).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Decision, Solution
from optimizer.domain.time_left import TimeLeft, unlimited
from optimizer.explain.conflicts.feasibility_oracle import FeasibilityOracle
from optimizer.explain.conflicts.feasibility_problem import replica_counts
from optimizer.explain.conflicts.irreducible_subsystem import infeasible_subsystem
from optimizer.explain.conflicts.relaxable_limits import (
    RelaxableLimit,
    RequiredReplicas,
    with_workload,
)
from optimizer.explain.conflicts.repair_sizes import GIVEN_UP, LimitChange, applied, least_changes
from optimizer.explain.margins.forced_problems import (
    ForcedSolution,
    forcing_workload,
    objective_loss,
    solve_forced,
)
from optimizer.explain.margins.symmetric_exchange import SymmetricExchange
from optimizer.explain.solver_ports import BudgetExceeded, FindNearOptimal, ProblemSolver
from optimizer.explain.wire_values import assignment_value
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem, objective
from optimizer.model.rules import violations
from optimizer.wire.explanation import Repair, RepairChange

MOST_LIMITS = 5
_MOST_SETS = 40
_MOST_SIZED = 12
_MOST_SETTLED = 3
_MOST_PAID = 1
_MORE = 1e-2

LimitSet = tuple[RelaxableLimit, ...]
LimitChanges = tuple[LimitChange, ...]


@dataclass(frozen=True)
class RepairSearch:
    """A fleet, what is wanted of it, and every limit that has a name."""

    fleet: Fleet
    wanted: RequiredReplicas
    named: LimitSet
    resolve: ProblemSolver
    time_left: TimeLeft = unlimited

    def feasible_with(self, held: Sequence[RelaxableLimit]) -> bool | None:
        """Tell whether all that is wanted can run while these limits hold and no others."""
        kept = set(map(id, held))
        return self.answers.possible(item for item in self.named if id(item) not in kept)

    @cached_property
    def answers(self) -> FeasibilityOracle:
        """What was asked so far."""
        return FeasibilityOracle(self.fleet, self.wanted, self.named, self.resolve, self.time_left)

    def lacking(self, relaxing: LimitSet) -> float:
        """Return what is lacking of supplies, as far as it is known: what to look at first."""
        return sum(self.answers.lacking.get(id(item), inf) for item in relaxing)


@dataclass(frozen=True, slots=True)
class TriedRepair:
    """Changes, the problem after them, and its solution; verified: it places the workload."""

    changes: tuple[LimitChange, ...]
    problem: Problem
    solution: Solution
    verified: bool


def minimal_correction_sets(search: RepairSearch, first: LimitSet) -> list[LimitSet]:
    """Return the smallest sets of limits found that make room when given up, given one conflict."""
    conflicts, level = list[LimitSet]([first]), list[LimitSet]([()])
    for _ in range(MOST_LIMITS):
        found, left = list[LimitSet](), list[LimitSet]()
        grown = sorted(_grown(search, level, conflicts), key=search.lacking)
        for relaxing in grown[:_MOST_SETS]:
            answer = search.answers.possible(relaxing)
            if answer is not None:
                (found if answer else left).append(relaxing)
        if found:
            return found[:_MOST_SIZED]
        level = left
    return []


def sized_repairs(search: RepairSearch, ways: Iterable[LimitSet]) -> list[LimitChanges]:
    """Return the least changes that make room for each set of limits, the cheapest first."""
    found = [
        changes
        for relaxing in _while(search.time_left, ways)
        if (
            changes := least_changes(
                search.fleet, search.wanted, relaxing, search.resolve, search.lacking(relaxing)
            )
        )
    ]
    return sorted(found, key=_rank)


def _grown(
    search: RepairSearch, level: Sequence[LimitSet], conflicts: list[LimitSet]
) -> list[LimitSet]:
    """Return each set with one more member that can be changed, of a conflict that it leaves."""
    sets: dict[frozenset[int], LimitSet] = {}
    for relaxing in level:
        met = next((item for item in conflicts if not set(item) & set(relaxing)), None)
        if met is None:
            left = [item for item in search.named if item not in relaxing]
            met = infeasible_subsystem(left, search.feasible_with).members
            conflicts.append(met)
        for item in met:
            if item.changeable:
                sets.setdefault(frozenset(map(id, (*relaxing, item))), (*relaxing, item))
    return list(sets.values())


def _while(time_left: TimeLeft, ways: Iterable[LimitSet]) -> Iterator[LimitSet]:
    for item in ways:
        if not time_left():
            raise BudgetExceeded
        yield item


def _rank(changes: LimitChanges) -> tuple[int, float]:
    return len(changes), sum(item.size for item in changes)


class RepairTrials:
    """Fleets after changes, each solved once, whoever asks."""

    def __init__(self, fleet: Fleet, resolve: ProblemSolver, nearby: FindNearOptimal) -> None:
        self._fleet, self._resolve, self._nearby = fleet, resolve, nearby
        self._known = dict[tuple[str, ...], tuple[Fleet, Problem, Solution]]()
        self._forced = dict[tuple[str, ...], list[tuple[str, ForcedSolution]]]()

    def cheapest(
        self, wanted: RequiredReplicas, ordered: Sequence[LimitChanges]
    ) -> TriedRepair | None:
        """Return the cheapest of some changes that places a workload; None where there is none.

        A solution is free to use what was added for what is worth more: then the cheapest change
        is one that makes the workload pay, too.
        """
        fewest = [changes for changes in ordered if len(changes) == len(ordered[0])]
        for changes in fewest[:_MOST_SETTLED]:
            _, problem, solution = self._changed(changes)
            if _placed(solution, wanted):
                return TriedRepair(changes, problem, solution, verified=True)
        made = [self._paying(wanted, changes) for changes in ordered[:_MOST_PAID]]
        return min(made, key=lambda item: (not item.verified, _rank(item.changes)), default=None)

    def _paying(self, wanted: RequiredReplicas, changes: LimitChanges) -> TriedRepair:
        """Return what would make a workload pay that fits after some changes."""
        fleet, problem, solution = self._changed(changes)
        now = TriedRepair(changes, problem, solution, _placed(solution, wanted))
        if now.verified or wanted.workload not in problem.workload_index:
            return now
        forced = self._forced.setdefault(_key(changes), [])
        found = _of_equal(problem, wanted, forced)
        if found is None:
            found = forced_to_run(problem, solution, wanted, self._resolve, self._nearby)
            if wanted.counts[wanted.workload] == 1 and found.lost is not None:
                forced.append((wanted.workload, found))
        return repair_that_pays(fleet, now, found, wanted, self._resolve) or now

    def _changed(self, changes: LimitChanges) -> tuple[Fleet, Problem, Solution]:
        key = _key(changes)
        if key not in self._known:
            fleet = applied(self._fleet, changes)
            problem = formulate(fleet)
            self._known[key] = fleet, problem, _solved(problem, self._resolve)
        return self._known[key]


def _key(changes: LimitChanges) -> tuple[str, ...]:
    return tuple(item.says for item in changes)


def _of_equal(
    problem: Problem, wanted: RequiredReplicas, forced: Iterable[tuple[str, ForcedSolution]]
) -> ForcedSolution | None:
    """Return what forcing a workload gives, where it is known of an equal; None elsewhere."""
    equals = SymmetricExchange(problem)
    for name, found in forced:
        if equals.are(name, wanted.workload) and wanted.counts[wanted.workload] == 1:
            decision = equals.with_workload(found.decision, wanted.workload)
            if decision is not None:
                return found._replace(decision=decision)
    return None


def forced_to_run(
    problem: Problem,
    solution: Solution,
    wanted: RequiredReplicas,
    resolve: ProblemSolver,
    nearby: FindNearOptimal,
) -> ForcedSolution:
    """Return the best decision in which a workload runs as often as it is wanted to."""
    if solution.status not in ("Optimal", "Infeasible"):
        return ForcedSolution(possible=None)
    name, times = wanted.workload, wanted.counts[wanted.workload]
    if times == 1 and solution.status == "Optimal":
        known = _at_hand(problem, solution.decision, name, nearby)
        if known is not None:
            return ForcedSolution(True, known, objective_loss(problem, solution.decision, known))
    forced = forcing_workload(problem, name, range(len(problem.clusters)), times=times)
    return solve_forced(problem, solution.decision, forced, resolve, times=times, workload=name)


def _at_hand(
    problem: Problem, best: Decision, name: str, nearby: FindNearOptimal
) -> Decision | None:
    """Return the best decision that has a workload where few decisions have to be looked at."""
    equals = SymmetricExchange(problem)
    known = equals.with_workload(best, name)
    if known is not None:
        return known
    found = nearby(problem, objective(problem, best)).with_workload(name)
    if found.status != "Optimal":
        return None
    decision = found.decision
    if not any(place.workload == name for place in decision.assignments):
        decision = equals.with_workload(decision, name) or Decision()
    return decision if decision.assignments and not violations(problem, decision) else None


def repair_that_pays(
    fleet: Fleet,
    before: TriedRepair,
    found: ForcedSolution,
    wanted: RequiredReplicas,
    resolve: ProblemSolver,
) -> TriedRepair | None:
    """Return what makes a workload pay that fits, given the best decision that has it."""
    for extra, problem in _paying(fleet, before.problem, found, wanted):
        again = _solved(problem, resolve)
        if _placed(again, wanted):
            return TriedRepair((*before.changes, extra), problem, again, verified=True)
    return None


def _paying(
    fleet: Fleet, problem: Problem, found: ForcedSolution, wanted: RequiredReplicas
) -> Iterator[tuple[LimitChange, Problem]]:
    """Yield what could make a workload pay that fits: a higher value, or a higher priority."""
    if found.lost is None:
        return
    name = wanted.workload
    own = problem.workloads[problem.workload_index[name]].priority
    higher = [loss for priority, loss in found.lost.by_priority.items() if priority > own]
    if max(higher, default=0.0) <= 0:
        loss = max(0.0, found.lost.by_priority.get(own, found.lost.total))
        yield LimitChange(_worth(name, loss), _same, loss), _worth_more(problem, name, loss)
    top = max(task.priority for task in problem.workloads) + 1
    raised = formulate(with_workload(fleet, name, priority=top))
    says = f"raise the priority of workload {name} to {top}"
    yield LimitChange(says, _same, GIVEN_UP), raised
    lack = max(0.0, -min(_values(problem, found.decision, name)))
    both = f"{says}, and {_worth(name, lack)}"
    yield LimitChange(both, _same, GIVEN_UP + lack), _worth_more(raised, name, lack)


def _same(fleet: Fleet) -> Fleet:
    return fleet


def _worth(name: str, more: float) -> str:
    return f"raise {name}'s score by more than {more:g} on every cluster"


def _values(problem: Problem, decision: Decision, name: str) -> Iterator[float]:
    for place in decision.assignments:
        found = problem.indexes(place)
        if place.workload == name and found is not None:
            yield float(problem.values[found])


def _worth_more(problem: Problem, name: str, more: float) -> Problem:
    values = problem.values.copy()
    values[problem.workload_index[name]] += more + _MORE
    return replace(problem, values=values)


def _solved(problem: Problem, resolve: ProblemSolver) -> Solution:
    """Return the best solution; raises Spent where the time was over before it was proven."""
    solution = resolve(problem)
    if solution.status not in ("Optimal", "Infeasible"):
        raise BudgetExceeded
    return solution


def _placed(solution: Solution, wanted: RequiredReplicas) -> bool:
    return (
        replica_counts(solution.decision).get(wanted.workload, 0) >= wanted.counts[wanted.workload]
    )


def repair_value(wanted: RequiredReplicas, found: TriedRepair) -> Repair:
    """Return what was found as it is shown."""
    now, places = replica_counts(found.solution.decision), found.solution.decision.assignments
    return Repair(
        changes=tuple(
            RepairChange(message=item.says, size=round(item.size, 6)) for item in found.changes
        ),
        verified=found.verified,
        places=tuple(
            assignment_value(place) for place in places if place.workload == wanted.workload
        ),
        losing=tuple(
            name
            for name, count in wanted.counts.items()
            if name != wanted.workload and now.get(name, 0) < count
        ),
    )
