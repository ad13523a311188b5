"""What makes a workload worth placing where there is room for it: a higher score or priority."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Decision, Solution
from optimizer.explain.conflicts.feasibility_problem import replica_counts
from optimizer.explain.conflicts.fleet_changes import LimitChange, with_workload
from optimizer.explain.conflicts.limit_kinds import RequiredReplicas
from optimizer.explain.margins.forced_problems import (
    ForcedSolution,
    forcing_workload,
    objective_loss,
    solve_forced,
)
from optimizer.explain.margins.symmetric_exchange import SymmetricExchange
from optimizer.explain.repairs.limit_changes import GIVEN_UP
from optimizer.explain.solver_ports import BudgetExceeded, FindNearOptimal, ProblemSolver
from optimizer.model.formulate import formulate
from optimizer.model.problem import Problem, objective
from optimizer.model.rules import violations

_MORE = 1e-2
"""Objective units added to a raise, so that the workload is better than what it replaces."""


@dataclass(frozen=True, slots=True)
class TriedRepair:
    """Changes, the problem after them, and its solution; verified: it places the workload."""

    changes: tuple[LimitChange, ...]
    problem: Problem
    solution: Solution
    verified: bool


def places_required(solution: Solution, required: RequiredReplicas) -> bool:
    """Tell whether a solution has all replicas of the workload to place."""
    name = required.workload
    return replica_counts(solution.decision).get(name, 0) >= required.counts[name]


def solved_to_optimality(problem: Problem, solve: ProblemSolver) -> Solution:
    """Return the best solution; raise BudgetExceeded where the time was over before the proof."""
    solution = solve(problem)
    if solution.status not in ("Optimal", "Infeasible"):
        raise BudgetExceeded
    return solution


def forced_to_run(
    problem: Problem,
    solution: Solution,
    required: RequiredReplicas,
    solve: ProblemSolver,
    find_near: FindNearOptimal,
) -> ForcedSolution:
    """Return the best decision in which the workload has all its required replicas."""
    if solution.status not in ("Optimal", "Infeasible"):
        return ForcedSolution(possible=None)
    name, times = required.workload, required.counts[required.workload]
    if times == 1 and solution.status == "Optimal":
        known = _near_optimal(problem, solution.decision, name, find_near)
        if known is not None:
            loss = objective_loss(problem, solution.decision, known)
            return ForcedSolution(True, known, loss)
    forced = forcing_workload(problem, name, range(len(problem.clusters)), times=times)
    return solve_forced(problem, solution.decision, forced, solve, times=times, workload=name)


def raise_that_pays(
    fleet: Fleet,
    before: TriedRepair,
    forced: ForcedSolution,
    required: RequiredReplicas,
    solve: ProblemSolver,
) -> TriedRepair | None:
    """Return the first raise whose best solution places the workload; None: no raise does."""
    for extra, problem in _raises(fleet, before.problem, forced, required.workload):
        again = solved_to_optimality(problem, solve)
        if places_required(again, required):
            return TriedRepair((*before.changes, extra), problem, again, verified=True)
    return None


def _near_optimal(
    problem: Problem, best: Decision, name: str, find_near: FindNearOptimal
) -> Decision | None:
    """Return the best decision that has a workload; None where that needs a whole solve."""
    symmetry = SymmetricExchange(problem)
    known = symmetry.with_workload(best, name)
    if known is not None:
        return known
    found = find_near(problem, objective(problem, best)).with_workload(name)
    if found.status != "Optimal":
        return None
    decision = found.decision
    if not any(item.workload == name for item in decision.assignments):
        decision = symmetry.with_workload(decision, name) or Decision()
    return decision if decision.assignments and not violations(problem, decision) else None


def _raises(
    fleet: Fleet, problem: Problem, forced: ForcedSolution, name: str
) -> Iterator[tuple[LimitChange, Problem]]:
    """Yield a higher score, a higher priority, and both, each with the problem that has it."""
    if forced.lost is None:
        return
    number = problem.workload_index[name]
    own = problem.workloads[number].priority
    higher = [loss for priority, loss in forced.lost.by_priority.items() if priority > own]
    if max(higher, default=0.0) <= 0:
        loss = max(0.0, forced.lost.by_priority.get(own, forced.lost.total))
        yield LimitChange(_score_raise(name, loss), _same, loss), _worth_more(problem, name, loss)
    top = max(item.priority for item in problem.workloads) + 1
    raised = formulate(with_workload(fleet, name, priority=top))
    message = f"raise the priority of workload {name} to {top}"
    yield LimitChange(message, _same, GIVEN_UP), raised
    taken = problem.indexes_of(forced.decision.assignments)
    lack = max(0.0, -min(float(problem.values[at]) for at in taken if at[0] == number))
    both = f"{message}, and {_score_raise(name, lack)}"
    yield LimitChange(both, _same, GIVEN_UP + lack), _worth_more(raised, name, lack)


def _same(fleet: Fleet) -> Fleet:
    return fleet


def _score_raise(name: str, more: float) -> str:
    return f"raise {name}'s score by more than {more:g} on every cluster"


def _worth_more(problem: Problem, name: str, more: float) -> Problem:
    values = problem.values.copy()
    values[problem.workload_index[name]] += more + _MORE
    return replace(problem, values=values)
