"""How a score becomes the value that is published."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.crd.score_rules import Normalize

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ENDS = st.tuples(FINITE, FINITE).filter(lambda ends: ends[0] < ends[1])


@given(ENDS, st.booleans())
def test_the_ends_become_0_and_100(ends: tuple[float, float], invert: bool) -> None:
    low, high = ends
    scale = Normalize(min=low, max=high, invert=invert)
    assert [scale.of(low), scale.of(high)] == ([100, 0] if invert else [0, 100])


@given(ENDS, FINITE, FINITE)
def test_the_order_is_kept_or_turned(ends: tuple[float, float], one: float, other: float) -> None:
    one, other = sorted((one, other))
    up = Normalize(min=ends[0], max=ends[1])
    down = up.model_copy(update={"invert": True})
    assert up.of(one) <= up.of(other)
    assert down.of(one) >= down.of(other)


@given(st.integers(-1000, 1000))
def test_a_scale_of_0_to_100_changes_nothing(score: int) -> None:
    assert Normalize(min=0, max=100).of(score) == score
    assert Normalize(min=0, max=1).of(score / 100) == pytest.approx(score)


def test_numbers_too_large_for_the_scale_are_not_finite() -> None:
    assert math.isinf(Normalize(min=0, max=1e-308).of(1e308))
