"""The time of a solve, and reports of improved decisions as solutions.

Time to turn the last decision into a solution is reserved: as much as the last report took.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Decision, Solution, Tier, TierPrices
from optimizer.model.decision_comparison import SAME_VALUE, better, trimmed
from optimizer.model.objective import tier_values, upper_bounds
from optimizer.model.problem import Problem

_REPORT_TIME_SHARE = 0.05
"""Share of the time that reports of improved decisions take at most."""

STEP_OVERRUN = 0.04
"""Share of the time limit by which one step may exceed it."""

SOLVER_CALL_SECONDS = 0.3
"""Seconds: a longer step is a solver call, which keeps to its own time limit."""


def with_status(
    problem: Problem,
    decision: Decision | None,
    known_bounds: tuple[Sequence[float], Sequence[float]],
    seconds: float,
    solver: str,
) -> Solution:
    """Return a decision as a solution; Optimal only if every tier reaches its bound.

    `known_bounds`: the bounds proven for the first tiers, and the upper bound of every tier.
    """
    bounds, limits = known_bounds
    if decision is None or (not decision.assignments and len(bounds) < len(problem.tiers)):
        bound = min([sum(limits), *(bounds if len(problem.tiers) == 1 else [])])
        return Solution("NotSolved", Decision(), 0.0, bound, seconds, solver)
    decision = trimmed(problem, decision)
    values = tier_values(problem, decision)
    value = sum(values)
    # A solver that stopped early may return no bound, or an infinite one.
    known = [*map(min, bounds, limits), *limits[len(bounds) :]]
    tiers = tuple(
        Tier(priority, got, max(got, most))
        for priority, got, most in zip(problem.tiers, values, known, strict=True)
    )
    if all(tier.bound - tier.value <= SAME_VALUE for tier in tiers):
        return Solution("Optimal", decision, value, value, seconds, solver, tiers)
    bound = sum(tier.bound for tier in tiers)
    return Solution("Feasible", decision, value, bound, seconds, solver, tiers)


class SolveProgress:
    """Counts the seconds left, and reports decisions that are better than those before."""

    def __init__(
        self,
        problem: Problem,
        solver: SolverName,
        seconds: float,
        clock: Callable[[], float],
        report: Callable[[Solution], None] | None,
    ) -> None:
        self._problem, self._solver, self._seconds = problem, solver, seconds
        self._clock, self._send = clock, report
        self._started = clock()
        self._free, self._ending = 0.0, 0.0
        self._limits = upper_bounds(problem)
        self._asked = clock()
        self._best: Decision | None = None
        self.seconds_left = _latched(self._seconds_left)

    def _seconds_left(self) -> float:
        """Return the seconds left; at most 0 if another step like the last would be too long."""
        now = self._clock()
        step, self._asked = now - self._asked, now
        beyond = max(0.0, min(step, SOLVER_CALL_SECONDS) - STEP_OVERRUN * self._seconds)
        return self._started + self._seconds - now - self._ending - beyond

    def report(self, made: Callable[[], Decision | None], bounds: Sequence[float]) -> None:
        """Report the decision that `made` returns, unless reports take too much of the time."""
        asked = self._clock()
        if asked < self._free:
            return
        best = better(self._problem, self._best, made())
        if best is not None and best is not self._best:
            self._best = best
            solution = self.solution(best, bounds)
            if self._send is not None:
                self._send(solution)
        reported = self._asked = self._clock()
        self._free = reported + (reported - asked) / _REPORT_TIME_SHARE
        self._ending = reported - asked

    def solution(self, decision: Decision | None, bounds: Sequence[float]) -> Solution:
        """Return a decision as a solution; `bounds`: those proven for the first tiers."""
        seconds = self._clock() - self._started
        return with_status(self._problem, decision, (bounds, self._limits), seconds, self._solver)


def is_close(value: float, bound: float, gap: float) -> bool:
    """Tell whether a value is within a relative gap of its bound."""
    return bound - value <= max(gap * abs(value), SAME_VALUE)


@dataclass(frozen=True, slots=True)
class SolveContext:
    """How to solve, and until when.

    `gap`: relative optimality gap that is good enough. `report` takes what makes a decision, and
    bounds of tiers. `start_prices`: by priority, those of a similar problem. `note_prices` takes
    those that prove the bound of a tier.
    """

    solver: SolverName
    gap: float
    seed: int
    seconds_left: Callable[[], float]
    report: Callable[[Callable[[], Decision | None], Sequence[float]], None] = (
        lambda _made, _bounds: None
    )
    start_prices: Mapping[int, TierPrices] = field(default_factory=dict)
    note_prices: Callable[[TierPrices], None] = lambda _prices: None

    def with_share_of_time(self, share: float) -> "SolveContext":
        """Return the same with a share of the time that is left."""
        kept = (1.0 - share) * self.seconds_left()
        return replace(self, seconds_left=_latched(lambda: self.seconds_left() - kept))

    def report_decision(self, decision: Decision | None, bounds: Sequence[float]) -> None:
        """Report a decision that is made already."""
        self.report(lambda: decision, bounds)

    def is_over(self) -> bool:
        """Tell whether the time is up."""
        return self.seconds_left() <= 0

    def is_solved(
        self, problem: Problem, decision: Decision | None, bounds: Sequence[float]
    ) -> bool:
        """Tell whether a decision is within the gap of the bound of every tier."""
        return decision is not None and all(
            map(self.is_close, tier_values(problem, decision), bounds)
        )

    def is_close(self, value: float, bound: float) -> bool:
        """Tell whether a value is within the gap of its bound."""
        return is_close(value, bound, self.gap)


def _latched(seconds_left: Callable[[], float]) -> Callable[[], float]:
    """Return the same, but never positive again once it was 0, however short steps become."""
    over = False

    def asked() -> float:
        nonlocal over
        found = seconds_left()
        over = over or found <= 0
        return min(found, 0.0) if over else found

    return asked
