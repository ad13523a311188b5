"""Solving a problem in this process: small ones as one model, large ones by decomposition.

The status is never better than what was proven, and the bound holds however little time there was.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Decision, Solution
from optimizer.model.current_state import incumbent_from_current_state
from optimizer.model.lexicographic import better, equal
from optimizer.model.problem import Problem, upper_bounds
from optimizer.model.rules import violations
from optimizer.solve.decomposition import solve_decomposed
from optimizer.solve.heuristics.greedy import fill_remaining, greedy
from optimizer.solve.heuristics.move_reduction import reduce_moves
from optimizer.solve.independent_components import (
    combined,
    independent_components,
    within_component,
)
from optimizer.solve.progress import SolveContext, SolveProgress
from optimizer.solve.single_model import solve_single_model
from optimizer.solve.solver_adapters import is_available

SINGLE_MODEL_VARIABLES = 300
"""Up to so many variables one model of the whole problem is quickest."""

_FILLING = 3e-8  # seconds for each task and slot that filling may take before it can be stopped


def solve_problem(
    problem: Problem,
    *,
    solver: SolverName,
    time_limit_seconds: float,
    gap: float = 0.0,
    seed: int = 0,
    incumbent: Decision | None = None,
    small: int = SINGLE_MODEL_VARIABLES,
    report: Callable[[Solution], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Solution:
    """Solve a problem, priority by priority, until it is proven within `gap`, or time is up.

    `incumbent`: a decision to start from, else what runs now. `report` is given what could be
    returned by then, ever better. Deterministic for a problem, a solver and a seed unless the time
    limit, or a priority's or part's share of it, is reached. `clock` tells seconds.
    """
    used: SolverName = solver if is_available(solver) else "cbc"
    progress = SolveProgress(problem, used, time_limit_seconds, clock, report)
    if np.isnan(problem.values).all():
        return Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, used)
    run = SolveContext(used, gap, seed, progress.left, progress.tell)
    known = incumbent if incumbent is not None else incumbent_from_current_state(problem)
    if known is not None and violations(problem, known):
        known = None
    progress.tell(lambda: known, [])
    decision, bounds = _solve_by_size(problem, known, run, small)
    if decision is not None and problem.size > small and not run.over():
        stayed = reduce_moves(problem, decision, run.over)
        decision = stayed if equal(problem, decision, stayed) else decision
        if run.left() > _FILLING * problem.values.size:
            decision = fill_remaining(problem, decision, run.over)
    return progress.solution(decision, bounds)


def _solve_by_size(
    problem: Problem, known: Decision | None, run: SolveContext, small: int
) -> tuple[Decision | None, Sequence[float]]:
    """Solve a problem the way that its size and its parts call for."""
    if problem.size <= small:
        return solve_single_model(problem, known, run)
    if not run.over():
        known = better(problem, known, greedy(problem, run.over))
        run.know(known, [])
    split = [problem] if run.over() else independent_components(problem)
    if len(split) > 1:
        return _solve_components(problem, split, known, run, small)
    return solve_decomposed(problem, known, run)


def _solve_components(
    problem: Problem,
    split: Sequence[Problem],
    known: Decision | None,
    run: SolveContext,
    small: int,
) -> tuple[Decision, Sequence[float]]:
    """Solve independent parts one by one, each in its share of the time that is left."""
    decisions = [Decision() if known is None else within_component(part, known) for part in split]
    limits = [list(upper_bounds(part)) for part in split]
    sizes = [part.size for part in split]
    for number, part in enumerate(split):

        def tell(
            made: Callable[[], Decision | None], _: Sequence[float], number: int = number
        ) -> None:
            def every() -> Decision | None:
                decision = made()
                if decision is None:
                    return None
                return combined(problem, [*decisions[:number], decision, *decisions[number + 1 :]])

            run.tell(every, [])

        share = run.sharing(sizes[number] / sum(sizes[number:]))
        found, own = _solve_by_size(part, decisions[number], replace(share, tell=tell), small)
        decisions[number] = decisions[number] if found is None else found
        # Bounds that are not known stay what every task has at its best places.
        limits[number][: len(own)] = map(min, own, limits[number])
    return combined(problem, decisions), [sum(most) for most in zip(*limits, strict=True)]
