"""Solves a problem in this process: the single model if it is small, else decomposition.

Independent components, parts that no workload and no row connects, are solved one by one. The
status claims no more than the bound proves, however little time there was.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from optimizer.domain.arrays import Bools, Ints
from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Decision, NodeRows, Solution, TierPrices
from optimizer.model.current_state import incumbent_from_current_state
from optimizer.model.decision_comparison import better
from optimizer.model.objective import upper_bounds
from optimizer.model.problem import Problem
from optimizer.model.rules import COUPLING_RULES, replicas
from optimizer.solve.decomposition import solve_decomposed
from optimizer.solve.greedy import fill_remaining, greedy
from optimizer.solve.move_reduction import reduce_moves
from optimizer.solve.node_rows import RelaxedStart, solve_with_node_rows
from optimizer.solve.single_model import solve_single_model
from optimizer.solve.solver_adapters import failed_calls, failure_of_calls, is_available
from optimizer.solve.time_limit import SolveContext, SolveProgress
from optimizer.solve.tuning import SINGLE_MODEL_VARIABLES
from optimizer.solve.warm_start import mended


def solve_problem(
    problem: Problem,
    *,
    solver: SolverName,
    time_limit_seconds: float,
    gap: float = 0.0,
    seed: int = 0,
    incumbent: Decision | None = None,
    prices: Sequence[TierPrices] = (),
    node_rows: NodeRows = frozenset(),
    small: int = SINGLE_MODEL_VARIABLES,
    report: Callable[[Solution], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Solution:
    """Return the solution of a problem, tier by tier, within `gap` or the best one in time.

    `incumbent`: a decision to start from besides the current state, of this problem or a similar
    one, whose `prices` and `node_rows` the search starts from too. `small`: variables up to which a
    single model is solved. `report` is called with every improved solution. `clock` returns
    seconds. Deterministic for a problem, a solver and a seed, unless the time limit, or the share
    of a priority or component, is reached.
    """
    used: SolverName = solver if is_available(solver) else "cbc"
    whole = partial(_solve_rows, solver=used, gap=gap, seed=seed, small=small, clock=clock)
    if not problem.nodes or np.isnan(problem.values).all():
        return whole(
            problem,
            time_limit_seconds=time_limit_seconds,
            incumbent=incumbent,
            prices=prices,
            report=report,
        )
    return solve_with_node_rows(
        problem,
        whole,
        time_limit_seconds=time_limit_seconds,
        gap=gap,
        start=RelaxedStart(incumbent, prices, node_rows),
        report=report,
        clock=clock,
    )


def _solve_rows(
    problem: Problem,
    *,
    solver: SolverName,
    time_limit_seconds: float,
    gap: float,
    seed: int,
    incumbent: Decision | None,
    prices: Sequence[TierPrices],
    small: int,
    report: Callable[[Solution], None] | None,
    clock: Callable[[], float],
) -> Solution:
    """Return the solution of a problem with the rows that it has."""
    progress = SolveProgress(problem, solver, time_limit_seconds, clock, report)
    if np.isnan(problem.values).all():
        return Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, solver)
    found_prices: dict[int, TierPrices] = {}
    context = SolveContext(
        solver,
        gap,
        seed,
        progress.seconds_left,
        progress.report,
        {item.priority: item for item in prices},
        lambda found: _merge(found_prices, found),
    )
    known = incumbent_from_current_state(problem)
    if incumbent is not None:
        known = better(problem, known, mended(problem, incumbent, context.is_over))
    progress.report(lambda: known, [])
    # The rest of the time is for bringing back moved workloads, and for filling what is left.
    searching = context.with_share_of_time(0.97 if problem.size > small else 1.0)
    with failed_calls() as errors:
        decision, bounds = _solve_by_size(problem, known, searching, small)
    if decision is not None and problem.size > small and not context.is_over():
        decision = reduce_moves(problem, decision, context.is_over)
        # What filling takes before it can be stopped, in seconds.
        if context.seconds_left() > 3e-8 * problem.values.size:
            decision = fill_remaining(problem, decision, context.is_over)
    found = progress.solution(decision, bounds)
    found = replace(found, prices=tuple(found_prices.values()))
    return found if found.status == "Optimal" else replace(found, failure=failure_of_calls(errors))


def _merge(known: dict[int, TierPrices], found: TierPrices) -> None:
    """Add the prices of a component, or the later ones of the same workloads and rows."""
    before = known.get(found.priority, TierPrices(found.priority, {}, {}))
    known[found.priority] = TierPrices(
        found.priority, {**before.workloads, **found.workloads}, {**before.rows, **found.rows}
    )


def _solve_by_size(
    problem: Problem, known: Decision | None, context: SolveContext, small: int
) -> tuple[Decision | None, Sequence[float]]:
    """Solve a problem by the method for its size, component by component."""
    if problem.size <= small:
        return solve_single_model(problem, known, context)
    if not context.is_over():
        known = better(problem, known, greedy(problem, context.is_over))
        context.report_decision(known, [])
    split = [problem] if context.is_over() else independent_components(problem)
    if len(split) > 1:
        return _solve_components(problem, split, known, context, small)
    return solve_decomposed(problem, known, context)


def _solve_components(
    problem: Problem,
    split: Sequence[Problem],
    known: Decision | None,
    context: SolveContext,
    small: int,
) -> tuple[Decision, Sequence[float]]:
    """Solve independent components in turn, each in its share of the time that is left.

    Goes round again with what is left while one of them is neither proven nor close enough.
    """
    decisions = [Decision() if known is None else within_component(part, known) for part in split]
    limits = [list(upper_bounds(part)) for part in split]
    left = list(range(len(split)))
    while left:
        sizes = [split[number].size for number in left]
        for turn, number in enumerate(left):

            def tell(
                made: Callable[[], Decision | None], _: Sequence[float], number: int = number
            ) -> None:
                def every() -> Decision | None:
                    decision = made()
                    if decision is None:
                        return None
                    parts = [*decisions[:number], decision, *decisions[number + 1 :]]
                    return problem.combined(parts)

                context.report(every, [])

            share = context.with_share_of_time(sizes[turn] / sum(sizes[turn:]))
            own = replace(share, report=tell)
            found, bounds = _solve_by_size(split[number], decisions[number], own, small)
            decisions[number] = decisions[number] if found is None else found
            # A tier without a proven bound keeps its upper bound: every workload at its best.
            limits[number][: len(bounds)] = map(min, bounds, limits[number])
        left = [
            number
            for number in left
            if not context.is_solved(split[number], decisions[number], limits[number])
        ]
        if context.is_over():
            break
    return problem.combined(decisions), [sum(most) for most in zip(*limits, strict=True)]


def independent_components(problem: Problem) -> list[Problem]:
    """Return the components, each with all priorities, so that their tiers correspond.

    Clusters on which nothing can run belong to none.
    """
    usable = ~np.isnan(problem.values)
    found = list(_connected(_clusters_of(problem, usable)))
    if len(found) > 1:
        found = _linked(problem, found)
    if len(found) <= 1:
        return [problem]
    policy_cluster = np.array([policy.cluster for policy in problem.policies], np.int64)
    cut = (
        problem.restricted(
            usable & own[problem.resource_cluster][None, :],
            own[policy_cluster] if len(policy_cluster) else np.zeros(0, np.bool_),
        )
        for own in found
    )
    return [replace(part, priorities=problem.tiers) for part in cut]


def within_component(part: Problem, decision: Decision) -> Decision:
    """Return the part of a decision that is about a component."""
    return Decision(
        tuple(choice for choice in decision.policies if choice in part.policy_index),
        tuple(
            assignment
            for assignment in decision.assignments
            if part.indexes(assignment) is not None
        ),
    )


def _clusters_of(problem: Problem, usable: Bools) -> Bools:
    """Return on which clusters each workload can run, [workloads, clusters]."""
    found = np.zeros((len(problem.workloads), len(problem.clusters)), np.bool_)
    order = np.argsort(problem.resource_cluster, kind="stable")
    clusters, starts = np.unique(problem.resource_cluster[order], return_index=True)
    found[:, clusters] = np.logical_or.reduceat(usable[:, order], starts, axis=1)
    return found


def _connected(reached: Bools) -> Iterator[Bools]:
    """Yield the clusters of each component, as flags, with workloads as the edges."""
    left = reached[reached.any(axis=1)]
    while len(left):
        own = left[0]
        while True:
            touching = (left & own).any(axis=1)
            wider = left[touching].any(axis=0)
            if (wider == own).all():
                break
            own = wider
        yield own
        left = left[~touching]


def _linked(problem: Problem, found: list[Bools]) -> list[Bools]:
    """Merge sets of clusters that have entries in the same coupling row."""
    for rule in COUPLING_RULES:
        if rule is replicas:  # it is about one workload, which joins its clusters already
            continue
        for row in rule(problem):
            found = _merged(found, np.unique(problem.column_cluster[row.columns]))
    return found


def _merged(found: list[Bools], clusters: Ints) -> list[Bools]:
    hit = [own for own in found if own[clusters].any()]
    if len(hit) <= 1:
        return found
    rest = [own for own in found if not own[clusters].any()]
    whole: Bools = np.logical_or.reduce(hit)
    return [*rest, whole]
