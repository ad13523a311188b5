"""Large problems: tier by tier by decomposition, and what that leaves to the solver."""

import numpy as np

from optimizer.engine.compact import every_row, solve_compact
from optimizer.engine.fixing import usable
from optimizer.engine.neighbourhood import Held
from optimizer.engine.prices import respond
from optimizer.engine.reduce import Reduction, reduced
from optimizer.engine.search import Found, search, searched_bound
from optimizer.engine.settled import settled
from optimizer.lexicographic import SAME_VALUE, better
from optimizer.problem import Floats, Problem, tier_values
from optimizer.progress import Run
from optimizer.solution import Decision
from optimizer.whole import solve_tier, solve_whole

_CORE = 20_000  # variables of the model that is left to the solver after fixing
_WRITING = 1e-4  # seconds for each variable that writing a model may take
_PRICING = 0.3  # of that at most is for the bound of a later priority
_SHARE = 0.5  # of the time left is for a priority that others follow


def solve_decomposed(
    problem: Problem, known: Decision | None, run: Run
) -> tuple[Decision | None, list[float]]:
    """Return a decision no worse than `known`, and a bound of each tier."""
    bounds: list[float] = []
    for tier in range(len(problem.tiers)):
        share = _SHARE if tier + 1 < len(problem.tiers) else 1.0
        decision, bound = _tier(problem, tier, known, run.sharing(share))
        known = better(problem, known, decision)
        bounds.append(bound)
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
    problem: Problem, tier: int, known: Decision | None, run: Run
) -> tuple[Decision | None, float]:
    """Return a decision that serves a tier well and keeps what it has of the earlier ones."""
    weights = (problem.task_tier == tier).astype(np.float64)
    last = float(tier == len(problem.tiers) - 1)
    whole = None if run.over() else reduced(problem, weights, last, stop=run.over)
    if run.over():
        return known, np.inf
    if whole is None:
        return solve_tier(problem, tier, known, run)
    if tier == 0:
        return _first(problem, whole, known, run)
    return (known, np.inf) if known is None else _later(problem, tier, known, run)


def _later(problem: Problem, tier: int, known: Decision, run: Run) -> tuple[Decision | None, float]:
    """Decide about what earlier tiers leave."""
    weights = (problem.task_tier == tier).astype(np.float64)
    last = float(tier == len(problem.tiers) - 1)
    # No decision that is as good for earlier tiers leaves more of what all can have together.
    all_up_to = (problem.task_tier <= tier).astype(np.float64)
    together = reduced(problem, all_up_to, last, stop=run.over)
    pricing = run.sharing(_PRICING).effort()
    bound = np.inf if together is None else searched_bound(together.blocks, pricing)
    bound -= sum(tier_values(problem, known)[:tier])
    rest = settled(problem, known, tier)
    left = reduced(problem, weights, last, rest, stop=run.over)
    if left is None:
        return known, bound
    found = search(left.blocks, run.effort(), _start(left, problem, known))
    more = left.decision(problem, found.held.columns, found.held.times)
    return rest.decision(problem, more), bound


def _first(
    problem: Problem, whole: Reduction, known: Decision | None, run: Run
) -> tuple[Decision | None, float]:

    def told(held: Held, bound: float) -> None:
        run.tell(lambda: whole.decision(problem, held.columns, held.times), [bound])

    found = search(whole.blocks, run.effort(told), _start(whole, problem, known))
    decision = better(problem, known, whole.decision(problem, found.held.columns, found.held.times))
    value = 0.0 if decision is None else tier_values(problem, decision)[0]
    if found.bound - value <= max(run.gap * abs(value), SAME_VALUE) or run.over():
        return decision, found.bound
    return _core(problem, whole, found, decision, run)


def _start(whole: Reduction, problem: Problem, known: Decision | None) -> Held | None:
    return None if known is None else Held(*whole.columns(problem, known))


def _core(
    problem: Problem, whole: Reduction, found: Found, decision: Decision | None, run: Run
) -> tuple[Decision | None, float]:
    """Leave to the solver what a better decision could use."""
    value = 0.0 if decision is None else tier_values(problem, decision)[0]
    blocks, priced = whole.blocks, found.priced
    answers = respond(blocks, priced.groups, priced.prices)
    slack = max(0.0, priced.bound - value)
    places, options = whole.spread(*usable(blocks, priced.prices, answers, slack), problem)
    size = int(np.count_nonzero(places)) + int(np.count_nonzero(options))
    if size > _CORE or run.left() < _WRITING * size:
        return decision, found.bound
    core = problem.restricted(places, options)
    outcome = solve_compact(
        core,
        every_row(core),
        _first_weights(problem, core),
        solver=run.solver,
        seconds=run.left(),
        start=decision,
        gap=run.gap,
    )
    best = better(problem, decision, outcome.decision)
    if outcome.status == "Optimal" and best is not None:
        return best, tier_values(problem, best)[0]
    bounds = [found.bound, *([] if outcome.bound is None else [max(outcome.bound, value)])]
    return best, min(bounds)


def _first_weights(problem: Problem, core: Problem) -> Floats:
    """Return what the first tier of a problem counts for in a part of it."""
    if len(problem.tiers) == 1:
        return core.weights()
    counts = np.array([task.priority == problem.tiers[0] for task in core.tasks], np.float64)
    places = core.places
    return np.concatenate([np.zeros(len(core.options)), places.value * counts[places.task]])
