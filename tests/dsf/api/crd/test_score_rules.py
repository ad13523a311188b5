import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dsf.api.crd.published_value import Normalize
from dsf.api.crd.score_rules import OnFailure
from dsf.api.scoring.scorer_summary import dump_summaries, load_summaries
from dsf.api.scoring.scoring_api import ScorerConfig
from tests.dsf.agent.builders import summary

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


@pytest.mark.parametrize(
    "bad",
    [
        {"normalize": {"min": 1, "max": 1}},
        {"normalize": {"min": 2, "max": 1}},
        {"normalize": {"min": 0}},
        {"normalize": {"min": "NaN", "max": 1}},
        {"onFailure": {"policy": "Hold"}},
        {"onFailure": {"policy": "Value"}},
        {"onFailure": {"policy": "Value", "value": 101}},
        {"onFailure": {"policy": "Hold", "holdSeconds": 0}},
        {"onFailure": {"policy": "Retry"}},
    ],
)
def test_scoring_that_makes_no_sense_is_refused(bad: dict[str, object]) -> None:
    config = {"name": "x", "source": {}, "scoring": {"params": {"name": "x"}, **bad}}
    with pytest.raises(ValidationError):
        ScorerConfig.model_validate(config)


@pytest.mark.parametrize(
    "bad",
    [
        {"horizon": 0},
        {"horizon": -60},
        {"horizon": 86_401},
        {"horizon": "NaN"},
        {"truth": {"query": ""}},
        {"truth": {"query": " "}},
        {"truth": {}},
        {"truth": None},
        {"quantile": 0},
        {"quantile": 1},
        {"quantile": float("nan")},
    ],
)
def test_a_forecast_that_cannot_be_judged_is_refused(bad: dict[str, object]) -> None:
    good = {"horizon": 60, "truth": {"query": "up"}}
    config = {"name": "x", "source": {}, "scoring": {"params": {"name": "x"}}, "forecast": good}
    assert ScorerConfig.model_validate(config).forecast
    with pytest.raises(ValidationError):
        ScorerConfig.model_validate(config | {"forecast": good | bad})


def test_a_summary_says_nothing_of_what_a_scorer_does_not_declare() -> None:
    plain = summary()
    declared = summary(
        scoring_normalize=Normalize(min=0, max=5),
        scoring_on_failure=OnFailure(policy="Value", value=-100),
    )
    assert "Normalize" not in dump_summaries([plain])
    assert "OnFailure" not in dump_summaries([plain])
    text = dump_summaries([declared])
    assert "holdSeconds" not in text
    assert load_summaries(text) == (declared,)
