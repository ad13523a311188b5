"""What agents publish of the samples' scores, and bounds that hold for any series."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.crd.score_rules import Normalize
from sample_scorers.latency.score import LIMIT_MS
from sample_scorers.latency.score import config as latency_config
from sample_scorers.prediction.combination.score import score as combination_score
from sample_scorers.prediction.score import score as prediction_score
from sample_scorers.sample.score import score as sample_score
from sample_scorers.scoring_service.wire import ScoreResult, Series

times = st.floats(0, 253_402_300_799)
any_value = st.floats().map(
    lambda value: {math.inf: "+Inf", -math.inf: "-Inf"}.get(
        value, repr(value).replace("nan", "NaN")
    )
)
any_series = st.builds(
    lambda metric, values: Series.model_validate({"metric": metric, "values": values}),
    st.dictionaries(st.text(), st.text(), max_size=3),
    st.lists(st.tuples(times, any_value), max_size=30),
)


@pytest.mark.parametrize("score", [sample_score, prediction_score, combination_score])
@given(found=st.lists(any_series, max_size=4))
def test_each_series_with_a_finite_sample_gets_one_score_between_reasonable_bounds(
    score: Callable[[list[Series]], list[ScoreResult]], found: list[Series]
) -> None:
    scorable = [each for each in found if each.finite()]
    results = score(found)
    assert [{**each.metric, "meta": ""} for each in results] == [
        {**each.metric, "meta": ""} for each in scorable
    ]
    for result, scored in zip(results, scorable, strict=True):
        values = [value for _, value in scored.finite()]
        slack = 2 * (max(values) - min(values)) + 1e-9 * max(map(abs, values))
        assert min(values) - slack <= result.score <= max(values) + slack


def test_published_latencies_lie_in_ocms_range_and_near_is_high() -> None:
    rule = latency_config().scoring.normalize
    assert rule
    normalize = Normalize.model_validate(rule.model_dump())
    assert [normalize.of(latency) for latency in (0, 40, 1000, LIMIT_MS)] == [100, 96, 0, -100]
