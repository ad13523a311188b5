"""The least changes of a set of limits, and the repair that is verified with nothing forced.

A sizing problem has all that is needed in its optimum, at the least price of changes. A repair that
only makes room includes what makes the workload worth placing: a higher score or priority.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice

import numpy as np

from dsf.api.untrusted_text import UntrustedName
from optimizer.domain.fleet import Fleet, Objective
from optimizer.domain.solution import Solution
from optimizer.explain.case import BudgetExceeded, ProblemSolver
from optimizer.explain.conflicts.feasibility import (
    WORTH,
    FeasibilityOracle,
    all_placed,
    replica_counts,
    required_without,
    without_costs,
)
from optimizer.explain.conflicts.fleet_changes import LimitChange, applied, with_workload
from optimizer.explain.conflicts.limits import GIVEN_UP, RelaxableLimit, RequiredReplicas, Sizing
from optimizer.explain.conflicts.supply_limits import as_gpus, policies_leaving_gpus
from optimizer.explain.forced_problems import ForcedSolution, solve_with_workload
from optimizer.explain.tuning import TRIED_REPAIRS
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.model.wire_values import assignment_value
from optimizer.wire.explanation import Repair, RepairChange

LimitChanges = tuple[LimitChange, ...]

_PRICES = 0.4 * WORTH
"""All prices together: less than a half of what one assignment is worth, which is how far the
objective may be from the worth of all (`feasibility.all_placed`)."""

_KEPT = 1e-3
"""What keeping a workload that may stop is worth: less than any step of supply costs."""

_MORE = 1e-2
"""Objective units added to a raise, so that the workload is better than what it replaces."""


def rank(changes: LimitChanges) -> tuple[int, float]:
    """Return what repairs are ordered by: the number of changes, then their total size."""
    return len(changes), sum(item.size for item in changes)


def least_changes(
    oracle: FeasibilityOracle, limits: Sequence[RelaxableLimit]
) -> LimitChanges | None:
    """Return the least changes of these limits that make room; None where there are none.

    The sum of their relative sizes is least. Raises BudgetExceeded.
    """
    oracle.check_time()
    needed, price = required_without(oracle.required, limits), _PRICES / len(limits)
    wide = formulate(
        reduce(
            lambda fleet, limit: limit.priced(fleet, price),
            sorted(limits, key=lambda limit: limit.sized),  # added devices keep lacking scores
            without_costs(oracle.fleet, needed),
        )
    )
    if not set(needed) <= set(wide.workload_index):
        return None
    solution = oracle.solve(_sizing_problem(wide, oracle.required, limits, needed))
    placed = all_placed(solution, sum(needed.values()))
    if placed is None:
        raise BudgetExceeded
    if not placed:
        return None
    sizing = Sizing(oracle.fleet, oracle.required, wide, solution.decision)
    made = (limit.change(sizing) for limit in limits)
    return tuple(item for item in made if item is not None)


def _sizing_problem(
    wide: Problem,
    required: RequiredReplicas,
    limits: Sequence[RelaxableLimit],
    needed: Mapping[str, int],
) -> Problem:
    """Return the problem whose optimum has all that is needed at the least price."""
    each = dict.fromkeys(required.counts, _KEPT) | dict.fromkeys(needed, WORTH)
    worth = np.array([each.get(item.name, 0.0) for item in wide.workloads])
    values = np.where(np.isnan(wide.values), np.nan, worth[:, np.newaxis])
    prices = sum(item.use(wide) for item in limits) * _PRICES / len(limits)
    return replace(wide, values=values - prices)


@dataclass(frozen=True, slots=True)
class TriedRepair:
    """Changes, and the fleet after them with its problem and its best solution."""

    changes: LimitChanges
    fleet: Fleet
    problem: Problem
    solution: Solution

    def places(self, required: RequiredReplicas) -> bool:
        """Tell whether the solution has all replicas of the workload to place."""
        name = required.workload
        return replica_counts(self.solution.decision).get(name, 0) >= required.counts[name]

    def losing(self, required: RequiredReplicas) -> tuple[str, ...]:
        """Return the other workloads that have fewer replicas than before."""
        now = replica_counts(self.solution.decision)
        return tuple(
            other
            for other, count in required.counts.items()
            if other != required.workload and now.get(other, 0) < count
        )

    def value(self, required: RequiredReplicas) -> Repair:
        """Return the repair as the wire shows it."""
        name, decision = required.workload, self.solution.decision
        return Repair(
            changes=tuple(
                RepairChange(message=item.message, size=round(item.size, 6))
                for item in self.changes
            ),
            verified=self.places(required),
            places=tuple(
                assignment_value(item) for item in decision.assignments if item.workload == name
            ),
            losing=self.losing(required),
        )


class RepairTrials:
    """Fleets after changes, each solved once for all workloads that ask."""

    def __init__(self, fleet: Fleet, solve: ProblemSolver) -> None:
        self._fleet, self._solve = fleet, solve
        self._known = dict[tuple[str, ...], TriedRepair]()

    def cheapest(
        self, required: RequiredReplicas, ordered: Sequence[LimitChanges]
    ) -> TriedRepair | None:
        """Return the cheapest repair that places a workload; None where there is none.

        It is a policy where that leaves enough GPUs of nodes whole, else in whole GPUs where they
        are described and place the workload too. The best solution after a repair may use what was
        added for another workload. Then the repair includes a raise
        of the workload's score or priority.
        """
        leaving = policies_leaving_gpus(self._fleet, required.workload)
        for changes in islice(leaving, TRIED_REPAIRS) if ordered else ():
            kept = self._tried(changes)
            if kept.places(required) and not kept.losing(required):
                return kept
        fewest = [changes for changes in ordered if len(changes) == len(ordered[0])]
        for changes in fewest[:TRIED_REPAIRS]:
            tried = self._tried(changes)
            if tried.places(required):
                whole = self._tried(as_gpus(self._fleet, changes))
                return whole if whole.places(required) else tried
        return self._raised(required, self._tried(ordered[0])) if ordered else None

    def raised(
        self, required: RequiredReplicas, before: TriedRepair, forced: ForcedSolution
    ) -> TriedRepair | None:
        """Return the first raise whose best solution places the workload; None: no raise does."""
        for extra, problem in _raises(before, forced, required.workload):
            solution = self._solved(problem)
            found = TriedRepair((*before.changes, extra), before.fleet, problem, solution)
            if found.places(required):
                return found
        return None

    def _raised(self, required: RequiredReplicas, tried: TriedRepair) -> TriedRepair:
        """Return a repair with what makes the workload pay where it only fits."""
        name, problem = required.workload, tried.problem
        if name not in problem.workload_index:
            return tried
        times = required.counts[name]
        forced = solve_with_workload(problem, tried.solution, name, times, self._solve)
        return self.raised(required, tried, forced) or tried

    def _tried(self, changes: LimitChanges) -> TriedRepair:
        key = tuple(item.message for item in changes)
        if key not in self._known:
            fleet = applied(self._fleet, changes)
            problem = formulate(fleet)
            self._known[key] = TriedRepair(changes, fleet, problem, self._solved(problem))
        return self._known[key]

    def _solved(self, problem: Problem) -> Solution:
        """Return the best solution; raise BudgetExceeded where the time ended before the proof."""
        solution = self._solve(problem)
        if solution.status not in ("Optimal", "Infeasible"):
            raise BudgetExceeded
        return solution


def _raises(
    before: TriedRepair, forced: ForcedSolution, name: str
) -> Iterator[tuple[LimitChange, Problem]]:
    """Yield a higher score, a higher priority, and both, each with the problem that has it."""
    if forced.lost is None:
        return
    problem, number = before.problem, before.problem.workload_index[name]
    own = problem.workloads[number].priority
    higher = [loss for priority, loss in forced.lost.by_priority.items() if priority > own]
    if max(higher, default=0.0) <= 0:
        loss = max(0.0, forced.lost.by_priority.get(own, forced.lost.total))
        said = _better_score(before.fleet, name, loss)
        yield LimitChange(said, _same, loss), _worth_more(problem, name, loss)
    top = max(item.priority for item in problem.workloads) + 1
    raised = formulate(with_workload(before.fleet, name, priority=top))
    message = f"raise the priority of workload {name} to {top}"
    yield LimitChange(message, _same, GIVEN_UP), raised
    taken = problem.indexes_of(forced.decision.assignments)
    lack = max(0.0, -min(float(problem.values[at]) for at in taken if at[0] == number))
    both = f"{message}, and {_better_score(before.fleet, name, lack)}"
    yield LimitChange(both, _same, GIVEN_UP + lack), _worth_more(raised, name, lack)


def _same(fleet: Fleet) -> Fleet:
    return fleet


def _better_score(fleet: Fleet, name: str, more: float) -> str:
    """Return how the first score that counts has to change so that each place is worth more."""
    score = next((item for item in fleet.objectives if item.weight), Objective("", 1.0))
    low, high = score.minimum, score.maximum
    width = 100.0 if low is None or high is None else high - low
    which = f" {UntrustedName(score.score)}" if len(fleet.objectives) > 1 else ""
    points, verb = more * width / 100 / score.weight, "lower" if score.invert else "raise"
    return f"{verb} {name}'s score{which} by more than {points:g} on every cluster"


def _worth_more(problem: Problem, name: str, more: float) -> Problem:
    values = problem.values.copy()
    values[problem.workload_index[name]] += more + _MORE
    return replace(problem, values=values)
