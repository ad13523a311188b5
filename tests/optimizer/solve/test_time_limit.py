"""The time of a solve, by a clock that the test sets."""

from collections.abc import Callable

import pytest

from optimizer.domain.solution import Decision
from optimizer.solve.time_limit import SOLVER_CALL_SECONDS, STEP_OVERRUN, SolveProgress
from tests.optimizer.random_problems import random_problem

LIMIT = 100.0


def timed() -> tuple[SolveProgress, Callable[[float], None]]:
    """Return a solve that starts now, and what lets seconds pass."""
    now = 0.0

    def passes(seconds: float) -> None:
        nonlocal now
        now += seconds

    return SolveProgress(random_problem(1), "highs", LIMIT, lambda: now, None), passes


def test_all_but_the_time_that_passed_is_left() -> None:
    progress, passes = timed()
    assert progress.seconds_left() == LIMIT
    passes(3.0)
    assert progress.seconds_left() == pytest.approx(97.0)


@pytest.mark.parametrize("limit", [0.5, 5.0])
def test_a_step_like_the_last_may_overrun_the_limit_by_its_share(limit: float) -> None:
    now = 0.0
    progress = SolveProgress(random_problem(1), "highs", limit, lambda: now, None)
    now = 0.4 * limit
    beyond = max(0.0, min(now, SOLVER_CALL_SECONDS) - STEP_OVERRUN * limit)
    assert progress.seconds_left() == pytest.approx(0.6 * limit - beyond)


def test_once_the_time_is_up_it_stays_up() -> None:
    progress, passes = timed()
    passes(LIMIT)
    assert progress.seconds_left() <= 0
    passes(-50.0)
    assert progress.seconds_left() <= 0


def test_what_a_report_takes_is_kept_for_the_solution() -> None:
    progress, passes = timed()

    def made() -> Decision:
        passes(2.0)
        return Decision()

    progress.report(made, [])
    assert progress.seconds_left() == pytest.approx(LIMIT - 2.0 - 2.0)
