"""Large problems: tier by tier by decomposition, and what that leaves to the solver."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.arrays import Floats
from optimizer.domain.solution import Decision
from optimizer.model.lexicographic import SAME_VALUE, better
from optimizer.model.problem import Problem, tier_values
from optimizer.solve.blocks.block_problem import Flags, Prices
from optimizer.solve.blocks.columns import ColumnSelection
from optimizer.solve.blocks.fixed_priorities import fix_priorities
from optimizer.solve.blocks.reduction import Reduction, reduce_to_blocks
from optimizer.solve.compact_model import all_rows, solve_compact_model
from optimizer.solve.pricing.lagrangian_dual import lagrangian_bound
from optimizer.solve.pricing.lagrangian_relaxation import price_blocks
from optimizer.solve.pricing.priority_floor import priority_floor_prices
from optimizer.solve.pricing.reduced_cost_fixing import unfixed_variables
from optimizer.solve.progress import SolveContext
from optimizer.solve.search.block_search import SearchResult, search_blocks
from optimizer.solve.single_model import is_zero_tier, solve_single_model, solve_tier, value_floor

_CORE = 20_000  # variables of the model that is left to the solver after fixing
_WRITING = 1e-4  # seconds for each variable that writing a model may take
_SETTLED = 0.2  # of its time at most goes into what earlier priorities leave where they are
_PRICING = 0.3  # of what is left then at most goes into prices to start from
_KEPT = 2_000_000  # variables up to which what earlier priorities have becomes rows
_SHARE = 0.5  # of the time left is for a priority that others follow

Unfixed = tuple[Flags, Flags]
"""Places [tasks, slots] and options [options]."""


@dataclass(frozen=True, slots=True)
class _TierResult:
    """A tier solved: the best decision, its bound, and what any that is as good may use."""

    decision: Decision | None
    bound: float
    unfixed: Unfixed | None = None


def solve_decomposed(
    problem: Problem, known: Decision | None, run: SolveContext
) -> tuple[Decision | None, list[float]]:
    """Return a decision no worse than `known`, and a bound of each tier."""
    bounds: list[float] = []
    unfixed: Unfixed | None = None
    for tier in range(len(problem.tiers)):
        share = _SHARE if tier + 1 < len(problem.tiers) else 1.0
        served = _solve_tier(problem, tier, known, unfixed, run.sharing(share))
        known = better(problem, known, served.decision)
        unfixed = _intersection(unfixed, served.unfixed)
        bounds.append(served.bound)
        if not run.over():
            run.know(known, bounds)
    proven = known is not None and all(
        bound - value <= max(run.gap * abs(value), SAME_VALUE)
        for bound, value in zip(bounds, tier_values(problem, known), strict=True)
    )
    if not proven and len(problem.tiers) > 1 and problem.size <= _CORE and not run.over():
        exact, closer = solve_single_model(problem, known, run)
        known = better(problem, known, exact)
        bounds[: len(closer)] = [min(pair) for pair in zip(bounds, closer, strict=False)]
    return known, bounds


def _solve_tier(
    problem: Problem,
    tier: int,
    known: Decision | None,
    unfixed: Unfixed | None,
    run: SolveContext,
) -> _TierResult:
    """Return a decision that serves a tier well and keeps what it has of the earlier ones."""
    if is_zero_tier(problem, tier):
        return _TierResult(known, 0.0)
    if tier > 0 and (known is None or run.over()):
        return _TierResult(known, np.inf)
    whole = (
        None if run.over() else reduce_to_blocks(problem, *_weights(problem, tier), stop=run.over)
    )
    if run.over():
        return _TierResult(known, np.inf)
    if whole is None:
        return _TierResult(*solve_tier(problem, tier, known, run))
    if tier == 0 or known is None:
        return _search_tier(problem, tier, whole, known, run)
    return _solve_later_tier(problem, tier, known, unfixed, run)


def _solve_later_tier(
    problem: Problem,
    tier: int,
    known: Decision,
    unfixed: Unfixed | None,
    run: SolveContext,
) -> _TierResult:
    """Decide first about what earlier tiers leave where they are, then about everything.

    The second search may move them to where they have as much, and its bound is one for every such
    decision: a row for each of them says so, and has a price like any other.
    """
    weights, last = _weights(problem, tier)
    rest = fix_priorities(problem, known, tier)
    left = reduce_to_blocks(problem, weights, last, rest, stop=run.over)
    if left is not None:
        found = search_blocks(
            left.blocks, run.sharing(_SETTLED).effort(), _start_of(left, problem, known)
        )
        more = left.decision(problem, found.incumbent.columns, found.incumbent.multiplicities)
        known = better(problem, known, rest.decision(problem, more)) or known
        run.know(known, [])
    values = tier_values(problem, known)[:tier]
    if run.over():
        return _TierResult(known, np.inf)
    if problem.size > _KEPT:
        return _TierResult(known, _joint_bound(problem, tier, values, run))
    whole = reduce_to_blocks(problem, weights, last, kept=values, usable=unfixed, stop=run.over)
    if whole is None:
        return _TierResult(known, np.inf)
    prices = priority_floor_prices(whole.blocks, tier, run.sharing(_PRICING).effort())
    return _search_tier(problem, tier, whole, known, run, prices)


def _weights(problem: Problem, tier: int) -> tuple[Floats, float]:
    """Return what tasks and options count for in a tier."""
    return (problem.workload_tier == tier).astype(np.float64), float(tier == len(problem.tiers) - 1)


def _joint_bound(problem: Problem, tier: int, values: Sequence[float], run: SolveContext) -> float:
    """Return what all tiers up to one can have together, less what the earlier ones have."""
    every, last = (problem.workload_tier <= tier).astype(np.float64), _weights(problem, tier)[1]
    together = reduce_to_blocks(problem, every, last, stop=run.over)
    return (
        np.inf
        if together is None
        else lagrangian_bound(together.blocks, run.effort()) - sum(values)
    )


def _search_tier(
    problem: Problem,
    tier: int,
    whole: Reduction,
    known: Decision | None,
    run: SolveContext,
    prices: Prices | None = None,
) -> _TierResult:
    """Search the blocks of a tier; leave to the solver what a better decision could use."""

    def told(held: ColumnSelection, bound: float) -> None:
        own = [bound] if tier == 0 else []
        run.tell(lambda: whole.decision(problem, held.columns, held.multiplicities), own)

    effort = replace(run.effort(told), prices=prices)
    found = search_blocks(whole.blocks, effort, _start_of(whole, problem, known))
    decision = better(
        problem,
        known,
        whole.decision(problem, found.incumbent.columns, found.incumbent.multiplicities),
    )
    value = 0.0 if decision is None else tier_values(problem, decision)[tier]
    if run.over():
        return _TierResult(decision, found.bound)
    last = tier == len(problem.tiers) - 1
    bound, proven = found.bound, found.bound - value <= max(run.gap * abs(value), SAME_VALUE)
    if not proven:
        unfixed = _unfixed_in_problem(whole, found, value, problem)
        decision, bound = _solve_restricted_core(problem, tier, unfixed, bound, decision, run)
        value = 0.0 if decision is None else tier_values(problem, decision)[tier]
    if last or run.over():
        return _TierResult(decision, bound)
    unfixed = _unfixed_in_problem(whole, found, value, problem)
    return _TierResult(decision, bound, _with_other_tiers(problem, tier, whole, unfixed))


def _start_of(whole: Reduction, problem: Problem, known: Decision | None) -> ColumnSelection | None:
    return None if known is None else ColumnSelection(*whole.columns(problem, known))


def _unfixed_in_problem(
    whole: Reduction, found: SearchResult, value: float, problem: Problem
) -> Unfixed:
    """Return the places and options that decisions worth a value may use, of those in blocks."""
    blocks, priced = whole.blocks, found.dual
    answers = price_blocks(blocks, priced.items, priced.prices)
    slack = max(0.0, priced.bound - value)
    return whole.spread(*unfixed_variables(blocks, priced.prices, answers, slack), problem)


def _with_other_tiers(problem: Problem, tier: int, whole: Reduction, found: Unfixed) -> Unfixed:
    """Return the same for the whole problem: other tiers may use what they like."""
    places, options = found
    known = {
        option for own in whole.sites for site in own for mode in site.modes for option in mode
    }
    others = ~np.isin(np.arange(len(options)), list(known))
    return places | (problem.workload_tier > tier)[:, None], options | others


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
    run: SolveContext,
) -> tuple[Decision | None, float]:
    """Leave to the solver what a better decision could use."""
    values = [0.0] * (tier + 1) if decision is None else tier_values(problem, decision)
    places, options = unfixed
    size = int(np.count_nonzero(places)) + int(np.count_nonzero(options))
    if size > _CORE or run.left() < _WRITING * size:
        return decision, bound
    core = replace(problem.restricted(places, options), priorities=problem.tiers)
    earlier = (value_floor(core.weights(own), values[own]) for own in range(tier))
    outcome = solve_compact_model(
        core,
        [*all_rows(core), *earlier],
        core.weights(tier),
        solver=run.solver,
        seconds=run.left(),
        start=decision,
        gap=run.gap,
    )
    best = better(problem, decision, outcome.decision)
    if outcome.status == "Optimal" and best is not None:
        return best, tier_values(problem, best)[tier]
    found = [] if outcome.bound is None else [max(outcome.bound, values[tier])]
    return best, min([bound, *found])
