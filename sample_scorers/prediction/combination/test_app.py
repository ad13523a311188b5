# SPDX-License-Identifier: Apache-2.0
"""The prediction scorer over HTTP: its options, its answers and its metrics."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from ...scoring_service.wire import ScoringResponse
from .__main__ import main
from .app import PredictionSettings, config, create_app
from .score import ScoreMeaning


def request(end: int, value: float | None = None) -> dict[str, Any]:
    """Return two hours of samples up to `end`; `value` replaces those after 7200 s."""
    points = [
        [when, str(value if value is not None and when > 7200 else 1 + when // 60 % 3)]
        for when in range(max(end - 7200, 0), end + 1, 60)
    ]
    return {"data": [{"metric": {"pod": "a"}, "values": points}]}


def metrics(http: TestClient) -> dict[str, float]:
    lines = http.get("/metrics").text.splitlines()
    return {line.split()[0]: float(line.split()[1]) for line in lines if not line.startswith("#")}


def test_the_answer_has_quantiles_and_is_a_scoring_response() -> None:
    with TestClient(create_app()) as http:
        answer = http.post("/scoring", json=request(7200))
    (result,) = ScoringResponse.model_validate(answer.json()).results
    assert result.quantiles is not None
    values = [value for _, value in result.quantiles]
    assert values == sorted(values)
    assert dict(result.quantiles)[0.5] == result.score


@pytest.mark.parametrize(("truth", "inside"), [(None, 1), (50.0, 0)])
def test_past_forecasts_are_judged_by_what_later_requests_show(
    truth: float | None, inside: int
) -> None:
    with TestClient(create_app()) as http:
        http.post("/scoring", json=request(7200))
        http.post("/scoring", json=request(7500))
        assert metrics(http)["prediction_judged_total"] == 0
        http.post("/scoring", json=request(7800, truth))
        found = metrics(http)
    assert found["prediction_judged_total"] == 1
    assert found["prediction_inside_interval_total"] == inside
    assert found["prediction_interval_coverage"] == inside


def test_each_managed_cluster_has_forecasts_of_its_own() -> None:
    with TestClient(create_app()) as http:
        http.post("/scoring", json=request(7200), headers={"Dynamic-Scoring-Cluster": "one"})
        http.post("/scoring", json=request(7800), headers={"Dynamic-Scoring-Cluster": "two"})
        assert metrics(http)["prediction_judged_total"] == 0


def test_the_config_declares_what_the_score_forecasts() -> None:
    bound = config(PredictionSettings(query="up", step=60, meaning=ScoreMeaning(1200, 0.9)))
    assert bound.forecast is not None
    assert bound.forecast.truth.query == "avg_over_time((up)[1200s:60s])"
    assert (bound.forecast.horizon, bound.forecast.quantile) == (1200, 0.9)
    chance = config(PredictionSettings(meaning=ScoreMeaning(threshold=2)))
    assert chance.forecast is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--quantile", "1"], "not between 0.01 and 0.99"),
        (["--quantile", "0.9", "--threshold", "2"], "not allowed with"),
        (["--horizon", "0"], "not a whole number of at least 1"),
        (["--threshold", "nan"], "not a finite number"),
    ],
)
def test_wrong_options_are_refused(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(options)
    assert said in capsys.readouterr().err
