"""Solvers to pass in: the product's, and a second one that checks it."""

from collections.abc import Iterable
from functools import partial

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Decision, Solution
from optimizer.explain.case import ProblemSolver
from optimizer.explain.conflicts.feasibility import (
    all_placed,
    feasibility_problem,
    required_without,
)
from optimizer.explain.conflicts.limits import RelaxableLimit, RequiredReplicas
from optimizer.explain.conflicts.relaxable_limits import relaxed
from optimizer.explain.explanation_process import linear_solver
from optimizer.model.objective import upper_bound
from optimizer.model.problem import Problem
from optimizer.solve.strategy import solve_problem
from tests.optimizer.brute_force import MOST_VARIABLES, best

RESOLVE: ProblemSolver = partial(solve_problem, solver="highs", time_limit_seconds=60)
CBC: ProblemSolver = partial(solve_problem, solver="cbc", time_limit_seconds=60)
LINEAR = linear_solver("highs", lambda: 60.0)


def checked(problem: Problem) -> Solution:
    """Solve by trying everything where the problem is small, else by CBC."""
    if len(problem.weights()) > MOST_VARIABLES - 2:
        return CBC(problem)
    found = best(problem)
    value = sum(found.values)
    return Solution("Optimal", found.decisions[0], value, value, 0.0, "cbc")


def spent(problem: Problem) -> Solution:
    """What a solver says whose budget is spent."""
    return Solution("NotSolved", Decision(), 0.0, upper_bound(problem), 0.0, "highs")


def possible(
    fleet: Fleet, wanted: RequiredReplicas, without: Iterable[RelaxableLimit], solve: ProblemSolver
) -> bool | None:
    """Tell whether all that is wanted can run without some limits, by solving; None: not known."""
    given_up = list(without)
    needed = required_without(wanted, given_up)
    problem = feasibility_problem(relaxed(fleet, given_up), needed)
    if problem is None:
        return False
    return all_placed(solve(problem), sum(needed.values()))
