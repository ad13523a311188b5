"""Large problems: tier by tier by decomposition, and what that leaves to the solver."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.domain.solution import Decision
from optimizer.model.lexicographic import SAME_VALUE, better
from optimizer.model.problem import Floats, Problem, tier_values
from optimizer.solve.blocks.blocks import Flags
from optimizer.solve.blocks.fixed_priorities import settled
from optimizer.solve.blocks.reduction import Reduction, reduced
from optimizer.solve.compact_model import every_row, solve_compact
from optimizer.solve.heuristics.neighbourhood import Held
from optimizer.solve.pricing.prices import Prices, respond
from optimizer.solve.pricing.priority_floor import first_kept_prices
from optimizer.solve.pricing.reduced_cost_fixing import usable
from optimizer.solve.progress import Run
from optimizer.solve.search.search import Found, search, searched_bound
from optimizer.solve.single_model import at_least, counts_nothing, solve_tier, solve_whole

_CORE = 20_000  # variables of the model that is left to the solver after fixing
_WRITING = 1e-4  # seconds for each variable that writing a model may take
_SETTLED = 0.2  # of its time at most goes into what earlier priorities leave where they are
_PRICING = 0.3  # of what is left then at most goes into prices to start from
_KEPT = 2_000_000  # variables up to which what earlier priorities have becomes rows
_SHARE = 0.5  # of the time left is for a priority that others follow

Usable = tuple[Flags, Flags]
"""Places [tasks, slots] and options [options]."""


@dataclass(frozen=True, slots=True)
class _Served:
    """A tier solved: the best decision, its bound, and what any that is as good may use."""

    decision: Decision | None
    bound: float
    usable: Usable | None = None


def solve_decomposed(
    problem: Problem, known: Decision | None, run: Run
) -> tuple[Decision | None, list[float]]:
    """Return a decision no worse than `known`, and a bound of each tier."""
    bounds: list[float] = []
    usable: Usable | None = None
    for tier in range(len(problem.tiers)):
        share = _SHARE if tier + 1 < len(problem.tiers) else 1.0
        served = _tier(problem, tier, known, usable, run.sharing(share))
        known = better(problem, known, served.decision)
        usable = _both(usable, served.usable)
        bounds.append(served.bound)
        if not run.over():
            run.know(known, bounds)
    proven = known is not None and all(
        bound - value <= max(run.gap * abs(value), SAME_VALUE)
        for bound, value in zip(bounds, tier_values(problem, known), strict=True)
    )
    if not proven and len(problem.tiers) > 1 and problem.size <= _CORE and not run.over():
        exact, closer = solve_whole(problem, known, run)
        known = better(problem, known, exact)
        bounds[: len(closer)] = [min(pair) for pair in zip(bounds, closer, strict=False)]
    return known, bounds


def _tier(
    problem: Problem, tier: int, known: Decision | None, usable: Usable | None, run: Run
) -> _Served:
    """Return a decision that serves a tier well and keeps what it has of the earlier ones."""
    if counts_nothing(problem, tier):
        return _Served(known, 0.0)
    if tier > 0 and (known is None or run.over()):
        return _Served(known, np.inf)
    whole = None if run.over() else reduced(problem, *_weights(problem, tier), stop=run.over)
    if run.over():
        return _Served(known, np.inf)
    if whole is None:
        return _Served(*solve_tier(problem, tier, known, run))
    if tier == 0 or known is None:
        return _searched(problem, tier, whole, known, run)
    return _later(problem, tier, known, usable, run)


def _later(
    problem: Problem, tier: int, known: Decision, usable: Usable | None, run: Run
) -> _Served:
    """Decide first about what earlier tiers leave where they are, then about everything.

    The second search may move them to where they have as much, and its bound is one for every such
    decision: a row for each of them says so, and has a price like any other.
    """
    weights, last = _weights(problem, tier)
    rest = settled(problem, known, tier)
    left = reduced(problem, weights, last, rest, stop=run.over)
    if left is not None:
        found = search(left.blocks, run.sharing(_SETTLED).effort(), _start(left, problem, known))
        more = left.decision(problem, found.held.columns, found.held.times)
        known = better(problem, known, rest.decision(problem, more)) or known
        run.know(known, [])
    values = tier_values(problem, known)[:tier]
    if run.over():
        return _Served(known, np.inf)
    if problem.size > _KEPT:
        return _Served(known, _bound_together(problem, tier, values, run))
    whole = reduced(problem, weights, last, kept=values, usable=usable, stop=run.over)
    if whole is None:
        return _Served(known, np.inf)
    prices = first_kept_prices(whole.blocks, tier, run.sharing(_PRICING).effort())
    return _searched(problem, tier, whole, known, run, prices)


def _weights(problem: Problem, tier: int) -> tuple[Floats, float]:
    """Return what tasks and options count for in a tier."""
    return (problem.task_tier == tier).astype(np.float64), float(tier == len(problem.tiers) - 1)


def _bound_together(problem: Problem, tier: int, values: Sequence[float], run: Run) -> float:
    """Return what all tiers up to one can have together, less what the earlier ones have."""
    every, last = (problem.task_tier <= tier).astype(np.float64), _weights(problem, tier)[1]
    together = reduced(problem, every, last, stop=run.over)
    return (
        np.inf if together is None else searched_bound(together.blocks, run.effort()) - sum(values)
    )


def _searched(
    problem: Problem,
    tier: int,
    whole: Reduction,
    known: Decision | None,
    run: Run,
    prices: Prices | None = None,
) -> _Served:
    """Search the blocks of a tier; leave to the solver what a better decision could use."""

    def told(held: Held, bound: float) -> None:
        own = [bound] if tier == 0 else []
        run.tell(lambda: whole.decision(problem, held.columns, held.times), own)

    effort = replace(run.effort(told), prices=prices)
    found = search(whole.blocks, effort, _start(whole, problem, known))
    decision = better(problem, known, whole.decision(problem, found.held.columns, found.held.times))
    value = 0.0 if decision is None else tier_values(problem, decision)[tier]
    if run.over():
        return _Served(decision, found.bound)
    last = tier == len(problem.tiers) - 1
    bound, proven = found.bound, found.bound - value <= max(run.gap * abs(value), SAME_VALUE)
    if not proven:
        usable = _usable(whole, found, value, problem)
        decision, bound = _core(problem, tier, usable, bound, decision, run)
        value = 0.0 if decision is None else tier_values(problem, decision)[tier]
    if last or run.over():
        return _Served(decision, bound)
    usable = _usable(whole, found, value, problem)
    return _Served(decision, bound, _of_tier(problem, tier, whole, usable))


def _start(whole: Reduction, problem: Problem, known: Decision | None) -> Held | None:
    return None if known is None else Held(*whole.columns(problem, known))


def _usable(whole: Reduction, found: Found, value: float, problem: Problem) -> Usable:
    """Return the places and options that decisions worth a value may use, of those in blocks."""
    blocks, priced = whole.blocks, found.priced
    answers = respond(blocks, priced.groups, priced.prices)
    slack = max(0.0, priced.bound - value)
    return whole.spread(*usable(blocks, priced.prices, answers, slack), problem)


def _of_tier(problem: Problem, tier: int, whole: Reduction, found: Usable) -> Usable:
    """Return the same for the whole problem: other tiers may use what they like."""
    places, options = found
    known = {
        option for own in whole.sites for site in own for mode in site.modes for option in mode
    }
    others = ~np.isin(np.arange(len(options)), list(known))
    return places | (problem.task_tier > tier)[:, None], options | others


def _both(one: Usable | None, other: Usable | None) -> Usable | None:
    if one is None or other is None:
        return one or other
    return one[0] & other[0], one[1] & other[1]


def _core(
    problem: Problem,
    tier: int,
    usable: Usable,
    bound: float,
    decision: Decision | None,
    run: Run,
) -> tuple[Decision | None, float]:
    """Leave to the solver what a better decision could use."""
    values = [0.0] * (tier + 1) if decision is None else tier_values(problem, decision)
    places, options = usable
    size = int(np.count_nonzero(places)) + int(np.count_nonzero(options))
    if size > _CORE or run.left() < _WRITING * size:
        return decision, bound
    core = replace(problem.restricted(places, options), priorities=problem.tiers)
    earlier = (at_least(core.weights(own), values[own]) for own in range(tier))
    outcome = solve_compact(
        core,
        [*every_row(core), *earlier],
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
