"""Large problems: tier by tier, the search over blocks, then a solver on what it leaves unfixed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from optimizer.domain.arrays import Bools
from optimizer.domain.solution import Decision
from optimizer.model.decision_comparison import better
from optimizer.model.objective import tier_values
from optimizer.model.problem import Problem
from optimizer.solve import single_model
from optimizer.solve.blocks.block_problem import Prices
from optimizer.solve.blocks.columns import ColumnSelection
from optimizer.solve.blocks.linking_constraints import fix_priorities
from optimizer.solve.blocks.reduction import Reduction, reduce_to_blocks, tier_weights
from optimizer.solve.pricing.lagrangian_dual import lagrangian_bound, priority_floor_prices
from optimizer.solve.pricing.lagrangian_relaxation import price_blocks
from optimizer.solve.pricing.restricted_master import is_feasible
from optimizer.solve.search.block_search import (
    SearchResult,
    improve_start,
    search_blocks,
    search_further,
)
from optimizer.solve.search.column_enumeration import unfixed_variables
from optimizer.solve.time_limit import SolveContext
from optimizer.solve.warm_start import named, numbered

_MOST_DOUBLINGS = 10
"""Doublings of the effort at most, so that the limits of solvers stay whole numbers of 32 bits."""

RESTRICTED_CORE_VARIABLES = 20_000
"""Variables left by reduced-cost fixing, up to which a solver gets the compact model."""

_FLOOR_ROW_VARIABLES = 2_000_000
"""Variables up to which the value of a higher priority becomes a linking row."""

_WRITING_SECONDS = 1e-4
"""Seconds for each variable that writing a model may take; with less time it is not begun."""

Unfixed = tuple[Bools, Bools]
"""Places [workloads, resources] and options [options]."""


@dataclass(frozen=True, slots=True)
class _TierResult:
    """A tier solved: the best decision, its bound, and the variables that it may still use."""

    decision: Decision | None
    bound: float
    unfixed: Unfixed | None = None


def solve_decomposed(
    problem: Problem, known: Decision | None, context: SolveContext
) -> tuple[Decision | None, list[float]]:
    """Return a decision no worse than `known`, and a bound of each tier."""
    solved = [_TierResult(None, np.inf) for _ in problem.tiers]
    for turn in count():
        once = replace(context, seed=context.seed + turn)
        once = once if turn == 0 else replace(once, start_prices={})
        known = _solve_tiers(problem, known, once, solved)
        bounds = [tier.bound for tier in solved]
        if context.is_solved(problem, known, bounds) or context.is_over():
            break
        if len(solved) > 1 and problem.size <= RESTRICTED_CORE_VARIABLES:
            exact, closer = single_model.solve_single_model(problem, known, context)
            known = better(problem, known, exact)
            for tier, bound in enumerate(closer):
                solved[tier] = replace(solved[tier], bound=min(bound, solved[tier].bound))
    return known, bounds


def _solve_tiers(
    problem: Problem, known: Decision | None, context: SolveContext, solved: list[_TierResult]
) -> Decision | None:
    """Solve each tier that is not within the gap yet, in its share of the time that is left."""
    unfixed: Unfixed | None = None
    for tier, before in enumerate(solved):
        if not context.is_close(_value(problem, tier, known), before.bound):
            share = 0.5 if tier + 1 < len(solved) else 1.0
            found = _solve_tier(problem, tier, known, unfixed, context.with_share_of_time(share))
            known = better(problem, known, found.decision)
            solved[tier] = replace(found, bound=min(found.bound, before.bound))
        unfixed = _intersection(unfixed, solved[tier].unfixed)
        if not context.is_over():
            context.report_decision(known, [found.bound for found in solved[: tier + 1]])
    return known


def _solve_tier(
    problem: Problem,
    tier: int,
    known: Decision | None,
    unfixed: Unfixed | None,
    context: SolveContext,
) -> _TierResult:
    """Return a good decision for a tier that keeps the values of the higher ones."""
    if single_model.is_zero_tier(problem, tier):
        return _TierResult(known, 0.0)
    if tier > 0 and (known is None or context.is_over()):
        return _TierResult(known, np.inf)
    reduction = (
        None
        if context.is_over()
        else reduce_to_blocks(problem, *tier_weights(problem, tier), stop=context.is_over)
    )
    if context.is_over():
        return _TierResult(known, np.inf)
    if reduction is None:
        return _TierResult(*single_model.solve_tier(problem, tier, known, context))
    if tier == 0 or known is None:
        return _search_tier(problem, tier, reduction, known, context)
    return _solve_later_tier(problem, tier, known, unfixed, context)


def _solve_later_tier(
    problem: Problem, tier: int, known: Decision, unfixed: Unfixed | None, context: SolveContext
) -> _TierResult:
    """Search the tier with the higher ones fixed, then with floors on their values.

    The second search may reassign the workloads of higher tiers at equal value, and its bound holds
    for every decision that does: each floor is a linking row with a price.
    """
    weights, last = tier_weights(problem, tier)
    rest = fix_priorities(problem, known, tier)
    remaining = reduce_to_blocks(problem, weights, last, rest, stop=context.is_over)
    if remaining is not None:
        result = search_blocks(
            remaining.blocks, context.with_share_of_time(0.2), _start_of(remaining, problem, known)
        )
        more = remaining.decision(problem, result.incumbent)
        known = better(problem, known, problem.combined([rest.decision(), more])) or known
        context.report_decision(known, [])
    values = tier_values(problem, known)[:tier]
    if context.is_over():
        return _TierResult(known, np.inf)
    if problem.size > _FLOOR_ROW_VARIABLES:
        return _TierResult(known, _joint_bound(problem, tier, values, context))
    reduction = reduce_to_blocks(
        problem, weights, last, floors=values, unfixed=unfixed, stop=context.is_over
    )
    if reduction is None:
        return _TierResult(known, np.inf)
    prices = priority_floor_prices(reduction.blocks, tier, context.with_share_of_time(0.3))
    return _search_tier(problem, tier, reduction, known, context, prices)


def _joint_bound(
    problem: Problem, tier: int, values: Sequence[float], context: SolveContext
) -> float:
    """Return a bound of all tiers up to one together, less the values of the higher ones."""
    every, last = (problem.workload_tier <= tier).astype(np.float64), tier_weights(problem, tier)[1]
    together = reduce_to_blocks(problem, every, last, stop=context.is_over)
    return np.inf if together is None else lagrangian_bound(together.blocks, context) - sum(values)


def _search_tier(
    problem: Problem,
    tier: int,
    reduction: Reduction,
    known: Decision | None,
    context: SolveContext,
    prices: Prices | None = None,
) -> _TierResult:
    """Search the blocks of a tier; give the solver what a better decision could still use.

    Both go on in turn, with ever more effort, until the gap is closed or the time is up.
    """

    def report_incumbent(incumbent: ColumnSelection, bound: float) -> None:
        own = [bound] if tier == 0 else []
        context.report(lambda: reduction.decision(problem, incumbent), own)

    first = _start_of(reduction, problem, known)
    # The prices of priority floors depend on the values of higher tiers, which may have changed.
    similar = context.start_prices.get(problem.tiers[tier]) if tier == 0 else None
    if similar is not None:
        prices = numbered(reduction, problem, similar)
        first = improve_start(reduction.blocks, context, first, prices, report_incumbent)
    result = search_blocks(
        reduction.blocks, context, first, start_prices=prices, on_incumbent=report_incumbent
    )
    context.note_prices(named(reduction, problem, tier, result.dual.prices))
    decision = better(problem, known, reduction.decision(problem, result.incumbent))
    bound = result.bound
    for effort in _efforts():
        value = _value(problem, tier, decision)
        if context.is_close(value, bound) or context.is_over():
            break
        unfixed = _unfixed_in_problem(reduction, result, value, problem)
        decision, bound = _solve_restricted_core(
            problem, tier, unfixed, bound, decision, context, effort
        )
        if context.is_close(_value(problem, tier, decision), bound) or context.is_over():
            break
        start = _with_decision(reduction, replace(result, bound=bound), problem, decision)
        result = search_further(reduction.blocks, start, context, effort, report_incumbent)
        decision = better(problem, decision, reduction.decision(problem, result.incumbent))
        bound = min(bound, result.bound)
    last, value = tier == len(problem.tiers) - 1, _value(problem, tier, decision)
    if last or context.is_over():
        return _TierResult(decision, bound)
    unfixed = _unfixed_in_problem(reduction, result, value, problem)
    return _TierResult(decision, bound, _with_other_tiers(problem, tier, reduction, unfixed))


def _efforts() -> Iterator[int]:
    """Yield 1, 2, 4 and so on, then the largest again and again."""
    yield from (1 << min(turn, _MOST_DOUBLINGS) for turn in count())


def _value(problem: Problem, tier: int, decision: Decision | None) -> float:
    return 0.0 if decision is None else tier_values(problem, decision)[tier]


def _with_decision(
    reduction: Reduction, result: SearchResult, problem: Problem, decision: Decision | None
) -> SearchResult:
    """Return the result with a decision as its incumbent, where blocks contain it as it is."""
    start, blocks = _start_of(reduction, problem, decision), reduction.blocks
    if start is None or not is_feasible(blocks, start.columns, start.multiplicities):
        return result
    if start.value(blocks) <= result.incumbent.value(blocks):
        return result
    return replace(result, incumbent=start)


def _start_of(
    reduction: Reduction, problem: Problem, known: Decision | None
) -> ColumnSelection | None:
    return None if known is None else reduction.columns(problem, known)


def _unfixed_in_problem(
    reduction: Reduction, result: SearchResult, value: float, problem: Problem
) -> Unfixed:
    """Return the assignments and policies of the blocks that decisions of this value may use."""
    blocks, dual = reduction.blocks, result.dual
    pricing = price_blocks(blocks, dual.items, dual.prices)
    slack = max(0.0, dual.bound - value)
    return reduction.spread(*unfixed_variables(blocks, dual.prices, pricing, slack), problem)


def _with_other_tiers(problem: Problem, tier: int, reduction: Reduction, found: Unfixed) -> Unfixed:
    """Return the same for the whole problem: other tiers are not restricted."""
    assignments, policies = found
    known = {
        policy for own in reduction.sites for site in own for mode in site.modes for policy in mode
    }
    others = ~np.isin(np.arange(len(policies)), list(known))
    return assignments | (problem.workload_tier > tier)[:, None], policies | others


def _intersection(one: Unfixed | None, other: Unfixed | None) -> Unfixed | None:
    if one is None or other is None:
        return one or other
    return one[0] & other[0], one[1] & other[1]


def _solve_restricted_core(
    problem: Problem,
    tier: int,
    unfixed: Unfixed,
    bound: float,
    decision: Decision | None,
    context: SolveContext,
    effort: int,
) -> tuple[Decision | None, float]:
    """Solve the compact model over the unfixed variables (the restricted core), if it is small.

    Ends after 1,000 nodes of branch and bound, `effort` times as many.
    """
    values = [0.0] * (tier + 1) if decision is None else tier_values(problem, decision)
    assignments, policies = unfixed
    size = int(np.count_nonzero(assignments)) + int(np.count_nonzero(policies))
    if size > RESTRICTED_CORE_VARIABLES or context.seconds_left() < _WRITING_SECONDS * size:
        return decision, bound
    core = replace(problem.restricted(assignments, policies), priorities=problem.tiers)
    outcome = single_model.solve_compact_model(
        core,
        [*single_model.all_rows(core), *single_model.value_floors(core, values[:tier])],
        core.weights(tier),
        solver=context.solver,
        seconds=context.seconds_left(),
        start=decision,
        gap=context.gap,
        nodes=effort * 1_000,
    )
    best = better(problem, decision, outcome.decision)
    if outcome.status == "Optimal" and best is not None:
        return best, tier_values(problem, best)[tier]
    found = [] if outcome.bound is None else [max(outcome.bound, values[tier])]
    return best, min([bound, *found])
