"""Solvers to pass in: the product's, and a second one that checks it."""

import time
from collections.abc import Iterable
from functools import partial

from optimizer.domain.fleet import Fleet
from optimizer.domain.solution import Decision, Solution
from optimizer.explain.conflicts.relaxable_limits import Barrier, Wanted, relaxed
from optimizer.explain.conflicts.requirement import reached, required, requirement
from optimizer.explain.linear import linear
from optimizer.explain.ports import Resolve
from optimizer.model.problem import Problem, upper_bound
from optimizer.solve.in_process import solve_here
from optimizer.solve.search.near_optimal import Core
from tests.optimizer.brute_force import MOST_VARIABLES, best

RESOLVE: Resolve = partial(solve_here, solver="highs", time_limit_seconds=60)
CBC: Resolve = partial(solve_here, solver="cbc", time_limit_seconds=60)
LINEAR = linear("highs", until=time.monotonic() + 3600)


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


def close(problem: Problem, value: float) -> Core:
    """The decisions close to an optimum that is worth so much."""
    return Core(problem, value, solver="highs", left=lambda: 60.0)


def possible(
    fleet: Fleet, wanted: Wanted, without: Iterable[Barrier], resolve: Resolve
) -> bool | None:
    """Tell whether all that is wanted can run without some limits, by solving; None: not known."""
    given_up = list(without)
    needed = required(wanted, given_up)
    problem = requirement(relaxed(fleet, given_up), needed)
    if problem is None:
        return False
    return reached(resolve(problem), sum(needed.values()))
