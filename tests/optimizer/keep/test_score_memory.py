"""Averages and variation of scores: what a change, an outlier and a gap do to them."""

from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest

from optimizer.domain.score_matrix import ScoreMatrix
from optimizer.keep.score_memory import ScoreMemory
from tests.optimizer.keep.kept_fleet import START

WINDOW = 300.0


def _run(memory: ScoreMemory, rows: list[list[float]], every: float = 30.0) -> list[ScoreMemory]:
    """Observe one app on places, again and again; NaN is a missing score."""
    found = [memory]
    for number, row in enumerate(rows):
        values = {("abcdef"[at], "app", ""): value for at, value in enumerate(row)}
        start = memory.at or START
        now = start + timedelta(seconds=every * (number + (memory.at is not None)))
        found.append(found[-1].observed({"s": ScoreMatrix.of(values)}, now))
    return found[1:]


def _levels(found: list[ScoreMemory], place: int = 0) -> list[float]:
    return [float(item.scores["s"].level[0, place]) for item in found]


def test_an_average_makes_most_of_a_lasting_change_within_a_window() -> None:
    levels = _levels(_run(ScoreMemory(WINDOW), [[50.0, 50.0]] * 20 + [[70.0, 50.0]] * 11))
    assert levels[:20] == [50.0] * 20
    assert all(after > before for before, after in pairwise(levels[19:]))
    assert levels[24] > 60  # within half a window
    assert levels[-1] > 68


def test_without_a_window_the_last_score_is_the_average() -> None:
    assert _levels(_run(ScoreMemory(0), [[50.0], [90.0], [-100.0]])) == [50.0, 90.0, -100.0]


def test_an_outlier_moves_an_average_no_more_than_ten_points_would() -> None:
    calm = [[50.0, 50.0]] * 20
    outlier = _levels(_run(ScoreMemory(WINDOW), [*calm, [-100.0, 50.0], *calm]))
    smaller = _levels(_run(ScoreMemory(WINDOW), [*calm, [40.0, 50.0], *calm]))
    assert outlier == smaller
    assert min(outlier) > 47


def test_a_missing_score_keeps_its_last_average_and_does_not_age() -> None:
    gone = _run(ScoreMemory(WINDOW), [[50.0, 40.0]] * 5 + [[float("nan"), 40.0]] * 5)
    assert _levels(gone) == [50.0] * 10
    assert gone[-1].scores["s"].seconds.tolist() == [[120.0, 270.0]]


def test_variation_is_that_of_averages_without_what_all_places_share() -> None:
    draw = np.random.default_rng(1)
    shared = draw.normal(0, 20, 600)
    own = draw.normal(0, 5, (600, 6))
    together = _run(ScoreMemory(WINDOW), (50 + shared[:, None] + 0 * own).tolist())[-1]
    apart = _run(ScoreMemory(WINDOW), (50 + own).tolist())[-1]
    assert together.scores["s"].variation.max() == pytest.approx(0, abs=1e-9)
    # Averages of noise of 5 points vary by about 1.9, their differences by 2.7, in the mean 2.2.
    assert 1.5 < apart.scores["s"].variation.mean() < 2.8


def test_a_lasting_change_and_a_slow_swing_are_hardly_variation() -> None:
    shift = [[50.0, 50.0, 50.0]] * 200 + [[80.0, 50.0, 50.0]] * 10
    assert _run(ScoreMemory(WINDOW), shift)[-1].scores["s"].variation.max() < 1
    day = np.sin(np.arange(2880) * 2 * np.pi / 2880)
    swing = _run(ScoreMemory(WINDOW), np.stack([40 * day, 0 * day, -40 * day], axis=1).tolist())
    assert swing[-1].scores["s"].variation.max() < 4  # of 80 points within the day


def test_places_and_apps_that_come_and_go_keep_what_is_known_of_the_others() -> None:
    before = _run(ScoreMemory(WINDOW), [[50.0, 40.0]] * 5)[-1]
    assert before.at is not None
    wider = ScoreMatrix.of({("b", "app", ""): 40, ("c", "new", ""): 7, ("a", "app", ""): 90})
    after = before.observed({"s": wider}, before.at + timedelta(seconds=30)).scores["s"]
    assert after.level[0, 0] == 40
    assert 50 < after.level[0, 2] < 55
    assert after.seconds.tolist() == [[150.0, 0.0, 150.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("jump", [-86_400, 0, 86_400 * 365])
def test_a_clock_that_jumps_ages_nothing_by_more_than_a_window(jump: int) -> None:
    before = _run(ScoreMemory(WINDOW), [[50.0]] * 5)[-1]
    assert before.at is not None
    values = {"s": ScoreMatrix.of({("a", "app", ""): 50.0})}
    after = before.observed(values, before.at + timedelta(seconds=jump))
    assert 120 <= after.scores["s"].seconds[0, 0] <= 120 + WINDOW
    assert after.observed(values, before.at + timedelta(seconds=jump + 30)).at is not None


def test_the_largest_change_is_that_of_averages_both_memories_have() -> None:
    found = _run(ScoreMemory(0), [[50.0, 40.0], [47.0, 60.0], [47.0, float("nan")]])
    assert found[1].largest_change(found[0]) == 20
    assert found[2].largest_change(found[1]) == 0
    assert found[2].largest_change(ScoreMemory(0)) == float("inf")
