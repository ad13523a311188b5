"""Scenario files, and the scores that they describe."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from optimizer.twin.score_series import ScoreSeries
from tests.optimizer.twin.fleets import scenario, signals


def test_groups_name_their_members_and_durations_are_text() -> None:
    fleet = scenario(workloads=[{"name": "job", "count": 12, "every": "10m", "stays": "1h30m"}])
    assert fleet.cluster_names == ("site-1", "site-2", "site-3")
    assert fleet.named_clusters(("site-2",)) == {"site-2"}
    assert fleet.named_clusters(("site",)) == fleet.named_clusters(()) == set(fleet.cluster_names)
    second = list(fleet.tenures())[1]
    assert (second.workload, second.begins, second.ends) == ("job-02", 600, 6000)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"duration": "soon"}, '"soon" is no duration such as 90s, 15m or 24h'),
        ({"duration": "10s"}, "greater than or equal to 60"),
        ({"workloads": [{"name": "a"}, {"name": "a"}]}, "workload named twice: a"),
        ({"clusters": [{"name": "a", "count": 9000}]}, "at most 2000"),
        ({"duration": "31d", "scoringInterval": 10, "clusters": [{"name": "a", "count": 99}]},
         "a shorter duration or a longer scoringInterval"),
        (signals({"type": "Shift", "at": 0, "by": 1, "clusters": ["siet"]}), "there is no siet"),
        (signals({"type": "Noise", "size": -1}), "greater than 0"),
        (signals({"type": "Waves"}), "Waves"),
        (
            signals({"type": "Recorded", "series": [
                {"cluster": "site-1", "times": [5, 5], "values": [1, 2]}]}),
            "each must be after the one before",
        ),
        ({"failures": [{"type": "ClusterLost", "at": 60, "until": 60}]}, "must be after at"),
        ({"failures": [{"type": "AgentStopped", "at": 0, "scores": ["fit"]}]}, "only for Scoring"),
        ({"failures": [{"type": "ScoringDown", "at": 0, "scores": ["fat"]}]}, "there is no fat"),
        ({"unknown": 1}, "unknown"),
    ],
)  # fmt: skip
def test_a_scenario_that_cannot_be_played_is_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        scenario(**fields)


def test_scores_are_the_sum_of_signals_and_errors_are_only_published() -> None:
    drawn = ScoreSeries(
        scenario(
            **signals(
                {"type": "Constant", "least": 20, "most": 60},
                {"type": "Shift", "at": "1h", "until": "90m", "by": 30, "clusters": ["site-1"]},
                {"type": "Diurnal", "height": 10, "peak": "0h"},
                {"type": "Noise", "size": 5},
            )
        ),
        1,
    )
    true, said = drawn.true("fit")["all"][:, 0], drawn.published("fit")["all"][:, 0]
    at = drawn.round_of
    assert true[0, at(3600)] - true[0, at(3599)] == pytest.approx(30, abs=0.5)
    assert true[0, at(5400)] - true[0, 0] == pytest.approx(10 * (np.cos(np.pi / 8) - 1))
    assert true[1, at(5400)] < true[1, 0]
    errors = said - true
    assert 3 < errors.std() < 7
    assert (errors != 0).all()


def test_a_forecast_is_the_quantile_of_what_comes() -> None:
    fleet = scenario(
        duration="20d",
        scores=[
            {
                "name": "fit",
                "signals": [{"type": "Diurnal", "height": 50}],
                "forecast": {"horizon": "1h", "quantile": 0.9, "deviation": 4},
            }
        ],
    )
    drawn = ScoreSeries(fleet, 1)
    true, said = drawn.true("fit")["all"][:, 0], drawn.published("fit")["all"][:, 0]
    came = true[:, 12:] <= said[:, :-12]
    assert came.mean() == pytest.approx(0.9, abs=0.01)


def test_what_was_recorded_holds_until_the_next_value_and_has_gaps() -> None:
    series = [{"cluster": "site-2", "times": [600, 1200], "values": [5, 7]}]
    drawn = ScoreSeries(scenario(**signals({"type": "Recorded", "series": series})), 1)
    true = drawn.true("fit")["all"][:, 0]
    assert np.isnan(true[0]).all()
    assert np.isnan(true[1, :2]).all()
    assert true[1, 2:6].tolist() == [5, 5, 7, 7]


def test_the_seed_decides() -> None:
    fleet = scenario(**signals({"type": "Noise", "size": 5, "kept": 0.9}))
    first, again, other = (ScoreSeries(fleet, seed).published("fit")["all"] for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
