"""The time that a search has, and what it could return by now.

Time for turning the last answer into a solution is kept aside: as much as the last report took.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from optimizer.domain.settings import SolverName
from optimizer.domain.solution import Decision, Solution
from optimizer.model.lexicographic import better
from optimizer.model.problem import Problem, upper_bounds
from optimizer.solve.blocks.columns import ColumnSelection
from optimizer.solve.pricing.lagrangian_dual import SearchContext
from optimizer.solve.solution_status import with_status

_TELLING = 0.05  # of the time at most is for reports
_OVER = 0.04  # of the limit that a step may go beyond it
_LONG = 0.3  # seconds; what takes longer keeps to its time by itself: a solver


class SolveProgress:
    """Tells the seconds left, and reports decisions that are better than those before."""

    def __init__(
        self,
        problem: Problem,
        solver: SolverName,
        seconds: float,
        clock: Callable[[], float],
        report: Callable[[Solution], None] | None,
    ) -> None:
        self._problem, self._solver, self._seconds = problem, solver, seconds
        self._clock, self._report = clock, report
        self._started = clock()
        self._free, self._ending = 0.0, 0.0
        self._limits = upper_bounds(problem)
        self._asked = clock()
        self._best: Decision | None = None
        self.left = _latched(self._left)

    def _left(self) -> float:
        """Return the seconds left; 0 or less too where another step like the last is too long."""
        now = self._clock()
        step, self._asked = now - self._asked, now
        beyond = max(0.0, min(step, _LONG) - _OVER * self._seconds)
        return self._started + self._seconds - now - self._ending - beyond

    def tell(self, made: Callable[[], Decision | None], bounds: Sequence[float]) -> None:
        """Report a decision, unless that would take much of the time."""
        asked = self._clock()
        if asked < self._free:
            return
        best = better(self._problem, self._best, made())
        if best is not None and best is not self._best:
            self._best = best
            solution = self.solution(best, bounds)
            if self._report is not None:
                self._report(solution)
        told = self._asked = self._clock()
        self._free = told + (told - asked) / _TELLING
        self._ending = told - asked

    def solution(self, decision: Decision | None, bounds: Sequence[float]) -> Solution:
        """Return what is known of a decision by now; `bounds`: those of the first tiers."""
        seconds = self._clock() - self._started
        return with_status(self._problem, decision, (bounds, self._limits), seconds, self._solver)


@dataclass(frozen=True, slots=True)
class SolveContext:
    """How to solve, and until when; `tell` is given how to make a decision, and bounds of tiers."""

    solver: SolverName
    gap: float
    seed: int
    left: Callable[[], float]
    tell: Callable[[Callable[[], Decision | None], Sequence[float]], None]

    def sharing(self, share: float) -> "SolveContext":
        """Return the same with a share of the time that is left."""
        kept = (1.0 - share) * self.left()
        return replace(self, left=_latched(lambda: self.left() - kept))

    def know(self, decision: Decision | None, bounds: Sequence[float]) -> None:
        """Tell a decision that is made already."""
        self.tell(lambda: decision, bounds)

    def over(self) -> bool:
        """Tell whether the time is up."""
        return self.left() <= 0

    def effort(
        self, found: Callable[[ColumnSelection, float], None] = lambda _held, _bound: None
    ) -> SearchContext:
        """Return the same for a search over blocks."""
        return SearchContext(self.solver, self.gap, self.seed, self.left, found)


def _latched(left: Callable[[], float]) -> Callable[[], float]:
    """Return the same, except that what is over once stays so, however short steps become."""
    over = False

    def asked() -> float:
        nonlocal over
        found = left()
        over = over or found <= 0
        return min(found, 0.0) if over else found

    return asked
