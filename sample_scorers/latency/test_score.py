# SPDX-License-Identifier: Apache-2.0
"""The latency of apps by their probes."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..scoring_service.wire import ScoringRequest, Series
from .score import CLUSTER, LIMIT_MS, config, score

DATA = Path(__file__).parent / "static/data.json"


def probes(*values: str, name: str = "probe_duration_seconds", **labels: str) -> Series:
    points = [(30 * position, value) for position, value in enumerate(values)]
    return Series.model_validate({"metric": {"__name__": name, **labels}, "values": points})


def scored(*series: Series) -> dict[str, float]:
    return {each.metric["app"]: each.score for each in score(series)}


def test_a_refused_connection_is_not_the_fastest() -> None:
    down = probes("0.001", "0.001", app="down"), probes("0", "0", name="probe_success", app="down")
    up = probes("0.1", "0.1", app="up"), probes("1", "1", name="probe_success", app="up")
    found = scored(*down, *up)
    assert found["down"] == LIMIT_MS
    assert found["up"] == 100
    assert found[CLUSTER] == (LIMIT_MS + 100) / 2


def test_the_score_is_what_at_most_one_probe_in_twenty_exceeds() -> None:
    assert scored(probes(*["0.1"] * 95, *["0.9"] * 5, app="a"))["a"] == 100
    assert scored(probes(*["0.1"] * 94, *["0.9"] * 6, app="a"))["a"] == 900


def test_probes_of_an_app_are_taken_together_and_an_instance_stands_for_an_app() -> None:
    found = scored(
        probes("0.1", app="a", instance="x"),
        probes("0.3", app="a", instance="y"),
        probes("0.2", instance="z"),
    )
    assert found == {CLUSTER: 250, "a": 300, "z": 200}


def test_what_is_no_duration_is_left_out() -> None:
    assert scored(probes("NaN", "-1", "+Inf", app="a")) == {}
    assert scored(probes("1", "1", name="probe_success", app="a")) == {}
    assert scored(probes("1e99", app="a"))["a"] == LIMIT_MS


def test_the_recorded_probes_are_not_all_zeros() -> None:
    request = ScoringRequest.model_validate(json.loads(DATA.read_text()))
    assert scored(*request.data) == {CLUSTER: 1026, "app01": 52, "app02": LIMIT_MS}


seconds = st.floats(-1e100, 1e100).map(repr) | st.sampled_from(["NaN", "+Inf", "0.1"])
names = st.sampled_from(["probe_duration_seconds", "probe_success", "other"])


@given(
    st.lists(
        st.builds(
            lambda name, app, values: probes(*values, name=name, app=app),
            names,
            st.sampled_from("ab"),
            st.lists(seconds, max_size=5),
        ),
        max_size=5,
    )
)
def test_every_score_lies_in_the_declared_range(series: list[Series]) -> None:
    declared = config().range
    assert declared
    for value in scored(*series).values():
        assert declared.min <= value <= declared.max  # type: ignore[operator]  # both are set


@pytest.mark.parametrize("count", [1, 2, 20, 21])
def test_one_probe_is_enough(count: int) -> None:
    assert scored(probes(*["0.5"] * count, app="a"))["a"] == 500
