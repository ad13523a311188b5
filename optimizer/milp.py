"""Solving a problem in this process: small ones as one model, large ones by decomposition.

The status is never better than what was proven, and the bound holds however little time there was.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from optimizer.engine.compact import Outcome, every_row, solve_compact
from optimizer.engine.fixing import usable
from optimizer.engine.neighbourhood import Held
from optimizer.engine.parts import joined, of_part, parts
from optimizer.engine.prices import respond
from optimizer.engine.reduce import Reduction, reduced
from optimizer.engine.search import Effort, Found, search, searched_bound
from optimizer.engine.settled import settled
from optimizer.engine.solvers import available
from optimizer.engine.standing import standing
from optimizer.problem import Floats, Problem, objective, tier_values, upper_bounds
from optimizer.rules import Row, violations
from optimizer.settings import SolverName
from optimizer.solution import Decision, Solution, Tier
from optimizer.ties import tie_weights, trimmed

__all__ = ["available", "solve_here"]

SMALL = 300
"""Up to so many variables one model of the whole problem is quickest."""

_CORE = 20_000  # variables of the model that is left to the solver after fixing
_WRITING = 1e-4  # seconds for each variable that writing a model may take
_TIE_VARIABLES = 200  # beyond that the second solve can cost ten times the first
_PRICING = 0.3  # of that at most is for the bound of a later priority
_SAME_VALUE = 1e-6
_TELLING = 0.05  # of the time at most is for reports
_SHARE = 0.5  # of the time left is for a priority that others follow


@dataclass(frozen=True, slots=True)
class _Run:
    """How to solve, and until when; `tell` is given decisions with the bounds of tiers."""

    solver: SolverName
    gap: float
    seed: int
    left: Callable[[], float]
    tell: Callable[[Decision | None, Sequence[float]], None]

    def sharing(self, share: float) -> "_Run":
        """Return the same with a share of the time that is left."""
        kept = (1.0 - share) * self.left()
        return replace(self, left=lambda: self.left() - kept)

    def effort(self, found: Callable[[Held, float], None] = lambda _held, _bound: None) -> Effort:
        return Effort(self.solver, self.gap, self.seed, self.left, found)


class _Teller:
    """Reports what could be returned by now, where it is better than what was reported."""

    def __init__(
        self,
        problem: Problem,
        solver: str,
        started: float,
        report: Callable[[Solution], None] | None,
    ) -> None:
        self._problem, self._solver, self._started = problem, solver, started
        self._report = report
        self._best: Decision | None = None
        self._free = 0.0

    def __call__(self, decision: Decision | None, bounds: Sequence[float]) -> None:
        """Report a decision, unless that would take much of the time."""
        asked = time.perf_counter()
        if self._report is None or decision is None or asked < self._free:
            return
        best = _better(self._problem, self._best, decision)
        if best is not None and best is not self._best:
            self._best = best
            self._report(
                _solution(self._problem, best, bounds, asked - self._started, self._solver)
            )
        told = time.perf_counter()
        self._free = told + (told - asked) / _TELLING


def solve_here(
    problem: Problem,
    *,
    solver: SolverName,
    time_limit_seconds: float,
    gap: float = 0.0,
    seed: int = 0,
    incumbent: Decision | None = None,
    small: int = SMALL,
    report: Callable[[Solution], None] | None = None,
) -> Solution:
    """Solve a problem, priority by priority, until it is proven within `gap`, or time is up.

    `incumbent`: a decision to start from, else what runs now. `report` is given what could be
    returned by then, ever better. Deterministic for a problem, a solver and a seed unless the time
    limit is reached.
    """
    started = time.perf_counter()
    used: SolverName = solver if available(solver) else "cbc"
    usable_places = int(np.count_nonzero(~np.isnan(problem.values)))
    if not usable_places:
        return Solution("Infeasible", Decision(), 0.0, 0.0, 0.0, used)
    ends = started + time_limit_seconds
    teller = _Teller(problem, used, started, report)
    run = _Run(used, gap, seed, lambda: ends - time.perf_counter(), teller)
    known = incumbent if incumbent is not None else standing(problem)
    if known is not None and violations(problem, known):
        known = None
    run.tell(known, [])
    decision, bounds = _decided(problem, known, run, small)
    return _solution(problem, decision, bounds, time.perf_counter() - started, used)


def _size(problem: Problem) -> int:
    """Return the number of variables."""
    return int(np.count_nonzero(~np.isnan(problem.values))) + len(problem.options)


def _decided(
    problem: Problem, known: Decision | None, run: _Run, small: int
) -> tuple[Decision | None, Sequence[float]]:
    """Solve a problem the way that its size and its parts call for."""
    if _size(problem) <= small:
        return _whole(problem, known, run)
    split = parts(problem)
    if len(split) > 1:
        return _apart(problem, split, known, run, small)
    return _decomposed(problem, known, run)


def _apart(
    problem: Problem, split: Sequence[Problem], known: Decision | None, run: _Run, small: int
) -> tuple[Decision, Sequence[float]]:
    """Solve independent parts one by one, each in its share of the time that is left."""
    decisions = [Decision() if known is None else of_part(part, known) for part in split]
    limits = [dict(zip(part.tiers, upper_bounds(part), strict=True)) for part in split]
    sizes = [_size(part) for part in split]
    for number, part in enumerate(split):

        def tell(decision: Decision | None, _: Sequence[float], number: int = number) -> None:
            if decision is not None:
                every = [*decisions[:number], decision, *decisions[number + 1 :]]
                run.tell(joined(problem, every), [])

        share = run.sharing(sizes[number] / sum(sizes[number:]))
        found, own = _decided(part, decisions[number], replace(share, tell=tell), small)
        decisions[number] = decisions[number] if found is None else found
        # Bounds that are not known stay what every task has at its best places.
        limits[number] |= dict(zip(part.tiers, map(min, own, upper_bounds(part)), strict=False))
    bounds = [sum(most.get(tier, 0.0) for most in limits) for tier in problem.tiers]
    return joined(problem, decisions), bounds


def _whole(
    problem: Problem, known: Decision | None, run: _Run
) -> tuple[Decision | None, list[float]]:
    """Solve one model of everything, tier by tier; the bounds are those of the tiers solved."""
    rows, bounds = every_row(problem), list[float]()
    outcome = Outcome("NotSolved", Decision(), None)
    for tier in range(len(problem.tiers)):
        weights = problem.weights(tier)
        outcome = solve_compact(
            problem,
            rows,
            weights,
            solver=run.solver,
            seconds=run.left(),
            start=known,
            gap=run.gap if len(problem.tiers) == 1 else 0.0,
        )
        if outcome.status == "NotSolved" or violations(problem, outcome.decision):
            outcome = Outcome("NotSolved", Decision(), outcome.bound)
        else:
            known = _better(problem, known, outcome.decision)
            run.tell(known, bounds)
        if outcome.status != "Optimal":
            bounds += [] if outcome.bound is None else [outcome.bound]
            return known, bounds
        value = tier_values(problem, outcome.decision)[tier]
        known = outcome.decision
        bounds.append(value)
        rows.append(_at_least(weights, value))
    if problem.places.value.size <= _TIE_VARIABLES:
        outcome = _untied(problem, rows, outcome, run)
    return outcome.decision, bounds


def _decomposed(
    problem: Problem, known: Decision | None, run: _Run
) -> tuple[Decision | None, list[float]]:
    """Solve by decomposition, tier by tier: a later tier takes what the earlier ones leave."""
    bounds: list[float] = []
    for tier in range(len(problem.tiers)):
        share = _SHARE if tier + 1 < len(problem.tiers) else 1.0
        decision, bound = _tier(problem, tier, known, run.sharing(share))
        known = _better(problem, known, decision)
        bounds.append(bound)
        run.tell(known, bounds)
    proven = known is not None and all(
        bound - value <= max(run.gap * abs(value), _SAME_VALUE)
        for bound, value in zip(bounds, tier_values(problem, known), strict=True)
    )
    if not proven and len(problem.tiers) > 1 and _size(problem) <= _CORE and run.left() > 0:
        exact, better = _whole(problem, known, run)
        known = _better(problem, known, exact)
        bounds[: len(better)] = [min(pair) for pair in zip(bounds, better, strict=False)]
    return known, bounds


def _tier(
    problem: Problem, tier: int, known: Decision | None, run: _Run
) -> tuple[Decision | None, float]:
    """Return a decision that serves a tier well and keeps what it has of the earlier ones."""
    weights = (problem.task_tier == tier).astype(np.float64)
    last = float(tier == len(problem.tiers) - 1)
    whole = reduced(problem, weights, last)
    if whole is None:
        return (known, 0.0) if run.left() <= 0 else _unreduced(problem, tier, known, run)
    if tier == 0:
        return _first(problem, whole, known, run)
    if known is None or run.left() <= 0:
        return known, np.inf
    # No decision that is as good for earlier tiers leaves more of what all can have together.
    together = reduced(problem, (problem.task_tier <= tier).astype(np.float64), last)
    pricing = run.sharing(_PRICING).effort()
    bound = np.inf if together is None else searched_bound(together.blocks, pricing)
    bound -= sum(tier_values(problem, known)[:tier])
    rest = settled(problem, known, tier)
    left = reduced(problem, weights, last, rest)
    if left is None:
        return known, bound
    found = search(left.blocks, run.effort(), _start(left, problem, known))
    more = left.decision(problem, found.held.columns, found.held.times)
    return rest.decision(problem, more), bound


def _first(
    problem: Problem, whole: Reduction, known: Decision | None, run: _Run
) -> tuple[Decision | None, float]:

    def better(held: Held, bound: float) -> None:
        run.tell(whole.decision(problem, held.columns, held.times), [bound])

    found = search(whole.blocks, run.effort(better), _start(whole, problem, known))
    decision = _better(
        problem, known, whole.decision(problem, found.held.columns, found.held.times)
    )
    value = 0.0 if decision is None else tier_values(problem, decision)[0]
    if found.bound - value <= max(run.gap * abs(value), _SAME_VALUE) or run.left() <= 0:
        return decision, found.bound
    return _core(problem, whole, found, decision, run)


def _start(whole: Reduction, problem: Problem, known: Decision | None) -> Held | None:
    return None if known is None else Held(*whole.columns(problem, known))


def _core(
    problem: Problem, whole: Reduction, found: Found, decision: Decision | None, run: _Run
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
    weights = _first_weights(problem, core)
    outcome = solve_compact(
        core,
        every_row(core),
        weights,
        solver=run.solver,
        seconds=run.left(),
        start=decision,
        gap=run.gap,
    )
    better = _better(problem, decision, outcome.decision)
    if outcome.status == "Optimal" and better is not None:
        return better, tier_values(problem, better)[0]
    bounds = [found.bound, *([] if outcome.bound is None else [max(outcome.bound, value)])]
    return better, min(bounds)


def _first_weights(problem: Problem, core: Problem) -> Floats:
    """Return what the first tier of a problem counts for in a part of it."""
    if len(problem.tiers) == 1:
        return core.weights()
    counts = np.array([task.priority == problem.tiers[0] for task in core.tasks], np.float64)
    places = core.places
    return np.concatenate([np.zeros(len(core.options)), places.value * counts[places.task]])


def _unreduced(
    problem: Problem, tier: int, known: Decision | None, run: _Run
) -> tuple[Decision | None, float]:
    rows = every_row(problem)
    if known is not None:
        for earlier in range(tier):
            value = tier_values(problem, known)[earlier]
            rows.append(_at_least(problem.weights(earlier), value))
    weights = problem.weights(tier)
    outcome = solve_compact(
        problem, rows, weights, solver=run.solver, seconds=run.left(), start=known
    )
    better = _better(problem, known, outcome.decision)
    trivial = float(np.maximum(weights, 0.0).sum())
    return better, trivial if outcome.bound is None else min(trivial, outcome.bound)


def _better(problem: Problem, one: Decision | None, other: Decision | None) -> Decision | None:
    """Return the better of two decisions, the first of equal ones; what breaks a rule is none."""
    if other is None or violations(problem, other):
        return one
    if one is None or _worth_more(tier_values(problem, other), tier_values(problem, one)):
        return other
    return one


def _worth_more(values: Sequence[float], than: Sequence[float]) -> bool:
    """Compare tier by tier; sums that differ by rounding alone are equal."""
    for value, other in zip(values, than, strict=True):
        if abs(value - other) > _SAME_VALUE:
            return value > other
    return False


def _at_least(weights: Floats, value: float) -> Row:
    columns = np.nonzero(weights)[0]
    return Row("the value is the best one", columns, -weights[columns], _SAME_VALUE - value)


def _untied(problem: Problem, rows: Sequence[Row], found: Outcome, run: _Run) -> Outcome:
    """Solve once more among decisions of equal value; keep the first where that fails."""
    weights = tie_weights(problem)
    if weights is None or run.left() <= 0:
        return found
    second = solve_compact(problem, rows, weights, solver=run.solver, seconds=run.left())
    if second.status != "Optimal" or violations(problem, second.decision):
        return found
    both = zip(
        tier_values(problem, second.decision), tier_values(problem, found.decision), strict=True
    )
    equal = all(abs(one - other) <= _SAME_VALUE for one, other in both)
    return replace(found, decision=second.decision) if equal else found


def _solution(
    problem: Problem,
    decision: Decision | None,
    bounds: Sequence[float],
    seconds: float,
    solver: str,
) -> Solution:
    limits = upper_bounds(problem)
    if decision is None or (not decision.places and len(bounds) < len(problem.tiers)):
        bound = min([sum(limits), *(bounds if len(problem.tiers) == 1 else [])])
        return Solution("NotSolved", Decision(), 0.0, bound, seconds, solver)
    decision = trimmed(problem, decision)
    value, values = objective(problem, decision), tier_values(problem, decision)
    # A solver that was stopped early may know no bound at all, or an infinite one.
    known = [*map(min, bounds, limits), *limits[len(bounds) :]]
    tiers = tuple(
        Tier(priority, got, max(got, most))
        for priority, got, most in zip(problem.tiers, values, known, strict=True)
    )
    if all(tier.bound - tier.value <= _SAME_VALUE for tier in tiers):
        return Solution("Optimal", decision, value, value, seconds, solver, tiers)
    bound = sum(tier.bound for tier in tiers)
    return Solution("Feasible", decision, value, bound, seconds, solver, tiers)
