"""Noise moves nothing, a lasting shift moves once, in virtual days with the whole decision."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.wire.keeping import Keeping
from tests.optimizer.keep.kept_fleet import KeptFleet, Scores, cluster, fleet, workload

DAY, STEP, AFTER = 86_400, 30, 36_000
CLUSTERS, WORKLOADS = ("a", "b", "c"), ("w", "x")

Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def _ar1(draw: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Return noise that remembers about ten minutes."""
    found = np.zeros(shape)
    for at in range(1, shape[0]):
        found[at] = 0.95 * found[at - 1] + draw.normal(0, 0.8, shape[1])
    return np.clip(found, -5, 5)


def _diurnal(draw: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    phase = draw.uniform(0, 2 * math.pi, shape[1])
    return 5 * np.sin(np.arange(shape[0])[:, None] * STEP * 2 * math.pi / DAY + phase)


SHAPES: dict[str, Noise] = {
    "uniform": lambda draw, shape: draw.uniform(-5, 5, shape),
    "gaussian": lambda draw, shape: draw.normal(0, 5, shape),
    "heavy tail": lambda draw, shape: 2.5 * draw.standard_t(2, shape),
    "ar1": _ar1,
    "diurnal": _diurnal,
}

BOUNDED = ("ar1", "diurnal", "uniform")
"""Within 5 points, so that what noise alone can gain is the least gain, which is not enough."""


def _kept(shape: str, seed: int, shift: float) -> KeptFleet:
    """Keep two workloads for a day; from AFTER on the place c of w is worth `shift` more."""
    draw = np.random.default_rng(seed)
    noise = SHAPES[shape](draw, (DAY // STEP, len(CLUSTERS) * len(WORKLOADS)))

    def scores(at: float) -> Scores:
        row = np.clip(np.floor(50 + noise[int(at // STEP)]), -100, 100)
        more = {("w", "c"): shift if at >= AFTER else 0.0}
        pairs = [(app, name) for app in WORKLOADS for name in CLUSTERS]
        return {p: float(v) + more.get(p, 0.0) for p, v in zip(pairs, row, strict=True)}

    own = fleet(tuple(map(cluster, CLUSTERS)), workload("w", "a"), workload("x", "b"))
    return KeptFleet(own, Keeping()).run(scores, DAY)


@pytest.mark.parametrize("shape", SHAPES)
def test_noise_of_five_points_moves_nothing_for_a_day(shape: str) -> None:
    assert _kept(shape, 1, 0.0).moved == []


@pytest.mark.parametrize("shape", ["uniform", "gaussian", "heavy tail"])
def test_a_lasting_shift_of_twenty_points_moves_once_within_a_window(shape: str) -> None:
    ((at, name, places),) = _kept(shape, 2, 20.0).moved
    assert (name, places) == ("w", ("c",))
    assert AFTER < at <= AFTER + 300


@pytest.mark.long
@settings(max_examples=20)
@given(st.sampled_from(BOUNDED), st.integers(3, 10_000), st.sampled_from([0.0, 20.0]))
def test_bounded_noise_moves_nothing_and_a_shift_moves_at_most_once(
    shape: str, seed: int, shift: float
) -> None:
    """Of noise without bounds, no seed but those above is promised anything."""
    moved = _kept(shape, seed, shift).moved
    assert len(moved) <= (shift > 0)
    assert all(at > AFTER and places == ("c",) for at, _, places in moved)
