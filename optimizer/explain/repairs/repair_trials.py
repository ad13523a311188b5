"""The cheapest repair, verified by solving the changed fleet with nothing forced."""

from collections.abc import Iterable, Sequence

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Solution
from optimizer.explain.conflicts.feasibility_problem import replica_counts
from optimizer.explain.conflicts.fleet_changes import applied
from optimizer.explain.conflicts.limit_kinds import RequiredReplicas
from optimizer.explain.margins.forced_problems import ForcedSolution
from optimizer.explain.margins.symmetric_exchange import SymmetricExchange
from optimizer.explain.repairs.correction_sets import LimitChanges, rank
from optimizer.explain.repairs.gpu_additions import as_gpus
from optimizer.explain.repairs.score_raises import (
    TriedRepair,
    forced_to_run,
    places_required,
    raise_that_pays,
    solved_to_optimality,
)
from optimizer.explain.solver_ports import FindNearOptimal, ProblemSolver
from optimizer.explain.tuning import RAISED_REPAIRS, TRIED_REPAIRS
from optimizer.explain.wire_values import assignment_value
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem
from optimizer.wire.explanation import Repair, RepairChange


class RepairTrials:
    """Fleets after changes, each solved once for all workloads that ask."""

    def __init__(self, fleet: Fleet, solve: ProblemSolver, find_near: FindNearOptimal) -> None:
        self._fleet, self._solve, self._find_near = fleet, solve, find_near
        self._known = dict[tuple[str, ...], tuple[Fleet, Problem, Solution]]()
        self._forced = dict[tuple[str, ...], list[tuple[str, ForcedSolution]]]()

    def cheapest(
        self, required: RequiredReplicas, ordered: Sequence[LimitChanges]
    ) -> TriedRepair | None:
        """Return the cheapest repair that places a workload; None where there is none.

        The best solution after a repair may use what was added for another workload. Then the
        repair includes a raise of the workload's score or priority.
        """
        fewest = [changes for changes in ordered if len(changes) == len(ordered[0])]
        for changes in fewest[:TRIED_REPAIRS]:
            tried = self._tried(required, changes)
            if tried.verified:
                return self._with_gpus(required, tried)
        made = [self._raised(required, changes) for changes in ordered[:RAISED_REPAIRS]]
        return min(made, key=lambda item: (not item.verified, rank(item.changes)), default=None)

    def _tried(self, required: RequiredReplicas, changes: LimitChanges) -> TriedRepair:
        _, problem, solution = self._changed(changes)
        return TriedRepair(changes, problem, solution, places_required(solution, required))

    def _with_gpus(self, required: RequiredReplicas, tried: TriedRepair) -> TriedRepair:
        """Return the repair in whole GPUs where they are described and place the workload too."""
        changes = as_gpus(self._fleet, tried.changes)
        if _messages(changes) == _messages(tried.changes):
            return tried
        again = self._tried(required, changes)
        return again if again.verified else tried

    def _raised(self, required: RequiredReplicas, changes: LimitChanges) -> TriedRepair:
        """Return the repair with what makes the workload pay where it only fits."""
        fleet, problem, solution = self._changed(changes)
        tried = self._tried(required, changes)
        if tried.verified or required.workload not in problem.workload_index:
            return tried
        known = self._forced.setdefault(_messages(changes), [])
        forced = _of_equal(problem, required, known)
        if forced is None:
            forced = forced_to_run(problem, solution, required, self._solve, self._find_near)
            if required.counts[required.workload] == 1 and forced.lost is not None:
                known.append((required.workload, forced))
        return raise_that_pays(fleet, tried, forced, required, self._solve) or tried

    def _changed(self, changes: LimitChanges) -> tuple[Fleet, Problem, Solution]:
        key = _messages(changes)
        if key not in self._known:
            fleet = applied(self._fleet, changes)
            problem = formulate(fleet)
            self._known[key] = fleet, problem, solved_to_optimality(problem, self._solve)
        return self._known[key]


def repair_value(required: RequiredReplicas, tried: TriedRepair) -> Repair:
    """Return a repair as the wire shows it."""
    decision = tried.solution.decision
    now = replica_counts(decision)
    return Repair(
        changes=tuple(
            RepairChange(message=item.message, size=round(item.size, 6)) for item in tried.changes
        ),
        verified=tried.verified,
        places=tuple(
            assignment_value(item)
            for item in decision.assignments
            if item.workload == required.workload
        ),
        losing=tuple(
            name
            for name, count in required.counts.items()
            if name != required.workload and now.get(name, 0) < count
        ),
    )


def _messages(changes: LimitChanges) -> tuple[str, ...]:
    return tuple(item.message for item in changes)


def _of_equal(
    problem: Problem, required: RequiredReplicas, forced: Iterable[tuple[str, ForcedSolution]]
) -> ForcedSolution | None:
    """Return the best decision with a workload, derived from that of an interchangeable one."""
    symmetry = SymmetricExchange(problem)
    for name, found in forced:
        if (
            symmetry.interchangeable(name, required.workload)
            and required.counts[required.workload] == 1
        ):
            decision = symmetry.with_workload(found.decision, required.workload)
            if decision is not None:
                return found._replace(decision=decision)
    return None
