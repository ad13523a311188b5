"""The history of a score: what Prometheus is asked, what is drawn, and servers that misbehave."""

import json
from typing import Any

import pytest

from optimizer.service.hub import score_history
from optimizer.service.hub.score_history import (
    MAX_SERIES,
    POINTS,
    HistoryQuestion,
    Point,
    PrometheusHistory,
    ScoreHistory,
)
from optimizer.wire.request_problem import RequestProblem
from tests.dsf.agent.servers import Handler, endless, hanging, matrix, replying, serving
from tests.spellings import CANARY, SPELLINGS, spelled_pieces

NOW = 1_800_000_000
DAY = HistoryQuestion("gpu-score.v1", "worker01", 24, NOW)


def labels(app: str, device: str = "all") -> dict[str, str]:
    return {"ds_app": app, "ds_device": device}


async def asked(handler: Handler, question: HistoryQuestion = DAY) -> ScoreHistory | RequestProblem:
    async with serving(handler) as server:
        return await PrometheusHistory(server.url).read(question)


async def drawn(*series: tuple[dict[str, str], list[list[Any]]]) -> ScoreHistory:
    found = await asked(replying(matrix(*series)))
    assert isinstance(found, ScoreHistory), found
    return found


async def test_the_agents_gauge_is_asked_over_the_time_in_steps_that_a_picture_shows() -> None:
    async with serving(replying(matrix())) as server:
        found = await PrometheusHistory(f"{server.url}/prefix/").read(DAY)
        (call,) = server.calls
    assert isinstance(found, ScoreHistory)
    assert call.path == "/prefix/api/v1/query_range"
    assert call.parameters["step"] == str(found.step_seconds) == str(24 * 3600 // POINTS)
    assert float(call.parameters["end"]) - float(call.parameters["start"]) == 24 * 3600
    assert call.parameters["query"] == (
        'avg by (ds_app, ds_device, ds_meta) (dynamic_score{ds_cluster="worker01",'
        'ds_score_name=~"(?i)gpu[^a-z0-9.]score[.]v1"})'
    )


async def test_series_are_named_by_app_and_device_and_broken_where_values_are_missing() -> None:
    step = DAY.window.step
    times = [NOW - 5 * step, NOW - 4 * step, NOW - step]
    values = [[times[0], "1.5"], [times[1], "NaN"], [times[2], "-3"]]
    found = await drawn((labels("app02", "3g"), values), (labels("app01", ""), values))
    assert [item.name for item in found.series] == ["app01", "app02;3g"]
    assert found.series[0].points == (
        (times[0], 1.5),
        (times[1], None),
        (times[1] + step, None),
        (times[2], -3.0),
    )


async def test_the_quantiles_of_a_forecast_are_a_band_around_its_median() -> None:
    at = {"p50": 5, "p5": 1, "p10": 2, "p95": 9, "note": 7}
    found = await drawn(
        *(({**labels("a"), "ds_meta": meta}, [[NOW, str(value)]]) for meta, value in at.items()),
        ({**labels("b"), "ds_meta": ""}, [[NOW, "4"]]),
        ({**labels("b"), "ds_meta": "p90"}, [[NOW, "6"]]),
    )
    band, other, alone = found.series
    edges = (band.low_name, band.low, band.high_name, band.high)
    assert (band.name, band.points) == ("a;all", ((NOW, 5.0),))
    assert edges == ("p5", ((NOW, 1.0),), "p95", ((NOW, 9.0),))
    assert (other.name, other.points, other.low) == ("a;all;note", ((NOW, 7.0),), ())
    assert (alone.points, alone.low, alone.high_name) == (((NOW, 4.0),), (), "")


async def test_all_clusters_are_a_median_with_a_band_and_an_app_is_quoted() -> None:
    hostile = 'a"} or vector(1) #\\\n'
    question = HistoryQuestion("power", "", 24, NOW, hostile)
    rows = [({**labels("a"), "of": of}, [[NOW, of[1:]]]) for of in ("p10", "p50", "p90")]
    async with serving(replying(matrix(*rows))) as server:
        found = await PrometheusHistory(server.url).read(question)
        (call,) = server.calls
    assert isinstance(found, ScoreHistory), found
    (series,) = found.series
    assert (series.low, series.points, series.high) == (
        ((NOW, 10.0),),
        ((NOW, 50.0),),
        ((NOW, 90.0),),
    )
    assert call.parameters["step"] == "900"
    assert call.parameters["query"].count(f"ds_app={json.dumps(hostile)}") == 3


async def test_an_answer_is_bounded_in_series_and_points() -> None:
    second = [[NOW - at, "1"] for at in range(5000, 0, -1)]
    many = [(labels(f"app{number:03}"), [[NOW, "1"]]) for number in range(MAX_SERIES + 7)]
    found = await drawn((labels("a"), second), *many)
    assert (len(found.series), found.omitted_series) == (MAX_SERIES, 8)
    assert len(found.series[0].points) == POINTS + 1
    other: list[Point] = [(NOW, 1.0)]
    ahead = [[-1e300, "1"], [NOW, "1"], [NOW + 9e9, "1"], [1e300, "2"]]
    assert [*(await drawn((labels("a"), ahead))).series[0].points] == other


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (replying(b"<html>"), "not a Prometheus query result"),
        (replying({"status": "error", "errorType": "bad", "error": "<b>no</b>"}, 400), "rejected"),
        (replying(matrix(({"ds_app": 1}, [])), 200), "not a Prometheus query result"),  # type: ignore[dict-item]
        (replying(matrix(*((labels(str(at)), [[NOW, "1"]]) for at in range(1501)))), "more than"),
        (replying(b"", 302, {"Location": "http://169.254.169.254/"}), "redirects are not followed"),
        (endless, "larger than"),
        (hanging, "did not answer"),
    ],
)
async def test_a_server_that_misbehaves_is_a_problem_that_says_how(
    handler: Handler, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(score_history, "CALL_SECONDS", 0.3)
    monkeypatch.setattr(score_history, "MAX_BYTES", 1 << 18)
    found = await asked(handler)
    assert isinstance(found, RequestProblem)
    assert (found.status, found.reason) == (503, "HistoryUnavailable")
    assert said in found.detail


async def test_addresses_that_serve_credentials_are_never_asked() -> None:
    found = await PrometheusHistory("http://169.254.169.254").read(DAY)
    assert isinstance(found, RequestProblem)
    assert "Denied" in found.detail


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("status", [200, 400])
async def test_the_password_of_its_url_does_not_come_back_out(spelling: str, status: int) -> None:
    said = SPELLINGS[spelling](CANARY)
    document = matrix((labels(said), [[NOW, "1"]]))
    if status != 200:
        document = {"status": "error", "errorType": said, "error": said}
    async with serving(replying(document, status)) as server:
        named = server.url.replace("://", f"://me:{CANARY}@")
        found = await PrometheusHistory(named).read(DAY)
        assert server.calls[0].headers["Authorization"].startswith("Basic ")
    assert isinstance(found, RequestProblem)
    assert spelled_pieces(CANARY, found.detail) == []
