import json
import math
from typing import Any

import pytest

from dsf.agent.score.forecast_truth import read_truth, truth_question
from dsf.agent.score.result_rules import ConversionSettings, assemble, forecasts_of, judge
from dsf.agent.wire.encoded_series import EncodedSeries
from dsf.api.crd.published_value import Normalize
from dsf.api.crd.score_rules import ForecastRules, ForecastTruth
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.dimension_format import DimensionFormat
from tests.dsf.agent.builders import summary
from tests.dsf.agent.scoring_results import scoring_result

RULES = ForecastRules(horizon=600, truth=ForecastTruth(query="load"))


def form(**more: Any) -> ConversionSettings:
    dimension = DimensionFormat.parse("${cluster};${node}")
    assert not isinstance(dimension, InvalidInput)
    return ConversionSettings("east", "load_score", dimension, **more)


def series(metric: dict[str, str], *samples: tuple[float, str]) -> EncodedSeries:
    return EncodedSeries(json.dumps(metric).encode(), json.dumps(samples).encode())


def test_the_truth_is_asked_for_at_an_instant() -> None:
    asked = truth_question(summary(forecast=RULES))
    assert (asked.source_query, asked.source_range) == ("load", 0)
    with pytest.raises(ValueError, match="declares no forecast"):
        truth_question(summary())


def test_series_are_matched_to_entries_by_the_dimension_format() -> None:
    found = read_truth(
        [
            series({"node": "n1", "job": "x", "cluster": "other"}, (1600, "2")),
            series({"node": "n2"}, (1600, "+Inf")),
            series({"node": "n3"}, (1000, "1"), (1600, "7")),
            series({"node": "n4"}),
            series({"node": "n5"}, (1600, "many")),
            EncodedSeries(b'{"node":"n6"}', b'[1600,"0.5"]', instant=True),
        ],
        form(),
    )
    assert math.isnan(found.pop("east;n5"))
    assert found == {"east;n1": 2, "east;n2": math.inf, "east;n3": 7, "east;n6": 0.5}


def test_an_entry_that_several_series_name_has_no_truth() -> None:
    thrice = [series({"node": "n1", "pod": pod}, (600, "2")) for pod in "abc"]
    assert math.isnan(read_truth(thrice, form())["east;n1"])


def test_forecasts_are_in_the_units_of_the_scorer_whatever_is_published() -> None:
    results = [
        scoring_result(4000.0, {"node": "a"}),
        scoring_result(1.5, {"node": "a"}),
        scoring_result(math.nan, {"node": "b"}),
        scoring_result(-7.25, {"node": "c"}),
    ]
    settings = form(normalize=Normalize(min=0, max=8000, invert=True))
    verdicts = judge(results, settings)
    scores = assemble(verdicts, settings)
    assert [entry.value for entry in scores.entries] == [50, 100]
    assert forecasts_of(results, verdicts, scores) == {"east;a": 4000.0, "east;c": -7.25}


def test_entries_that_are_not_published_are_not_judged() -> None:
    results = [scoring_result(1.0, {"node": f"n{number}"}) for number in range(5)]
    settings = form(series=2)
    verdicts = judge(results, settings)
    scores = assemble(verdicts, settings)
    assert set(forecasts_of(results, verdicts, scores)) == {"east;n0", "east;n1"}
