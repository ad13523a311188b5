"""`dsf scorer backtest`: a scorer over HTTP, and histories from three places."""

import json
import math
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import polars as pl
import pytest
from aiohttp import web

from dsf.cli.root import root
from tests.command_line import invoked_meanwhile
from tests.dsf.agent.servers import matrix, replying, serving
from tests.dsf.scorer_kit.scorers import (
    QUERY,
    Json,
    TestApi,
    broken,
    changed,
    config,
    protected,
    served,
    unless,
)

WAVE = [round(2 + math.sin(index / 3), 6) for index in range(60)]
SERIES = [{"pod": "a", "node": "n1"}, {"pod": "b", "node": "n2"}]
HORIZON = ("--horizon", "3m")


def recording(values: list[float | None] | None = None) -> Json:
    both: list[list[Any]] = [list(values or WAVE), [4 - value for value in WAVE]]
    series = [{"metric": one, "values": row} for one, row in zip(SERIES, both, strict=True)]
    return {"step": 60, "queries": [{"query": QUERY, "series": series}]}


@pytest.fixture
def history(tmp_path: Path) -> str:
    return written(tmp_path, recording())


def written(folder: Path, document: Json) -> str:
    path = folder / "recording.json"
    path.write_text(json.dumps(document))
    return str(path)


async def ran(api: TestApi, *options: str) -> tuple[int, str, str]:
    async with served({"api": api}) as url:
        return await invoked_meanwhile(root, "scorer", "backtest", f"{url}/api/config", *options)


def answering(score: Callable[[str, list[float], list[float]], float]) -> TestApi:
    """A scorer that computes a score from the pod, the times and the values of each series."""

    async def respond(request: web.Request) -> web.StreamResponse:
        found = []
        for one in json.loads(await request.read())["data"]:
            times, texts = zip(*one["values"], strict=True)
            said = score(one["metric"]["pod"], list(times), list(map(float, texts)))
            found.append({"metric": one["metric"], "score": said})
        return web.json_response({"results": found})

    return TestApi(respond)


def swinging_on(_: str, __: list[float], values: list[float]) -> float:
    """Return the mean of the next three values of any wave like WAVE, without knowing it."""
    newest, change, before = values[-1], values[-1] - values[-2], values[-2] - values[-3]
    ahead = []
    for _step in range(3):
        change, before = 2 * math.cos(1 / 3) * change - before, change
        newest += change
        ahead.append(newest)
    return sum(ahead) / 3


async def test_a_scorer_that_continues_the_wave_has_no_error_and_no_regret(history: str) -> None:
    code, out, err = await ran(
        answering(swinging_on), "--recording", history, *HORIZON, "-o", "json"
    )
    assert code == 0, err
    document = json.loads(out)
    assert document["scorer"]["error"] == pytest.approx(0, abs=1e-4)
    assert {one["method"]: one["ratio"] < 0.01 for one in document["comparisons"]} == {
        "last value": True,
        "window mean": True,
        "seasonal naive": True,
    }
    assert all(one["pValue"] < 0.01 for one in document["comparisons"][:2])
    regret = {one["method"]: one["loss"] for one in document["regret"]}
    assert regret["scorer"] == pytest.approx(0, abs=1e-4)
    assert regret["last value"] > 0.1
    setting = document["setting"]
    assert (setting["window"], setting["horizon"], setting["requests"]) == (600, 180, 48)
    assert setting["season"] == 19 * 60
    assert [one["implausible"] for one in document["copies"]] == [False, False]


def came(pod: str, end: int) -> float:
    """Return the mean of the three steps from `end` on."""
    truth = sum(WAVE[end : end + 3]) / 3
    return truth if pod == "a" else 4 - truth


def by_its_times(pod: str, times: list[float], values: list[float]) -> float:
    end = int(times[-1] - 1_700_000_000) // 60 + 1
    return came(pod, end) if 0 < end < len(WAVE) else values[-1]


def by_its_values(pod: str, _: list[float], values: list[float]) -> float:
    row = WAVE if pod == "a" else [4 - value for value in WAVE]
    near = [end for end in range(2, 58) if math.dist(row[end - 2 : end], values[-2:]) < 1e-3]
    return came(pod, near[-1]) if near else values[-1]


def by_order() -> Callable[[str, list[float], list[float]], float]:
    """Return a scorer that has prepared its answers in the order of the requests."""
    asked = {"a": 9, "b": 9}

    def score(pod: str, _: list[float], values: list[float]) -> float:
        asked[pod] += 1
        return came(pod, asked[pod]) if asked[pod] < 58 else values[-1]

    return score


@pytest.mark.parametrize(
    ("score", "how"),
    [
        (by_its_times, "the scorer knows this history by its times: with the times moved by"),
        (by_its_values, "the scorer knows this history by its values, or works at its level"),
        (by_order(), "the scorer knows this history by its times: with the times moved by"),
    ],
)
async def test_a_scorer_that_knows_the_future_is_called_implausible(
    history: str, score: Callable[[str, list[float], list[float]], float], how: str
) -> None:
    code, out, err = await ran(answering(score), "--recording", history, *HORIZON)
    assert code == 1
    assert "100% better" in out
    assert f"Error: implausible forecasts: {how}" in " ".join(err.split())


async def test_a_scorer_that_remembers_an_earlier_backtest_is_called_implausible(
    history: str,
) -> None:
    seen = dict[str, dict[float, float]]()

    def remembering(pod: str, times: list[float], values: list[float]) -> float:
        known = seen.setdefault(pod, {})
        known.update(zip(times, values, strict=True))
        ahead = [known.get(times[-1] + 60 * step) for step in (1, 2, 3)]
        finite = [value for value in ahead if value is not None]
        return sum(finite) / 3 if len(finite) == 3 else values[-1]

    api = answering(remembering)
    async with served({"api": api}) as url:
        given = ("backtest", f"{url}/api/config", "--recording", history, *HORIZON)
        season = ("--season", "5m")
        codes = [(await invoked_meanwhile(root, "scorer", *given, *season))[0] for _ in range(2)]
    assert codes == [0, 1]


async def test_a_scorer_that_refuses_a_copy_is_not_called_implausible(history: str) -> None:
    def refusing(pod: str, times: list[float], values: list[float]) -> float:
        if not 0 <= times[0] - 1_700_000_000 < 3600:
            raise web.HTTPServiceUnavailable
        return swinging_on(pod, times, values)

    code, out, _ = await ran(answering(refusing), "--recording", history, *HORIZON)
    assert code == 0
    assert "it fails: ServerError" in out


async def with_bounds(request: web.Request) -> web.StreamResponse:
    """Answer the mean of the three steps that follow, as `swinging_on`, with an interval."""
    data = json.loads(await request.read())["data"]
    found = []
    for series in data:
        score = swinging_on("", [], [float(text) for _, text in series["values"]])
        quantiles = [[0.95, score + 1], [0.05, score - 1], [0.5, score]]
        found.append({"metric": series["metric"], "score": score, "quantiles": quantiles})
    return web.json_response({"results": found})


async def test_the_table_says_what_was_compared(history: str, tmp_path: Path) -> None:
    picture = tmp_path / "picture.svg"
    code, out, _ = await ran(
        TestApi(with_bounds), *("--recording", history, *HORIZON, "--plot", "--svg", str(picture))
    )
    assert code == 0
    row = next(line for line in out.splitlines() if line.startswith("window mean"))
    assert "100% better" in row
    assert "<0.001 better" in row
    assert "90%        100.0%" in out
    assert "CHOOSE THE SERIES WITH THE LOWEST" in out
    assert "truth" in out.split("OLDEST FIRST")[1]
    drawing = Xml.fromstring(picture.read_text())  # noqa: S314  # our own picture
    assert sum(each.tag.endswith("polyline") for each in drawing) == 4


async def test_a_scorer_that_repeats_the_window_mean_is_neither_better_nor_worse(
    history: str,
) -> None:
    def in_cores(found: list[Json]) -> list[Json]:
        return [{**one, "score": one["score"] / 100} for one in found]

    code, out, _ = await ran(
        TestApi(changed(in_cores)), "--recording", history, *HORIZON, "-o", "json"
    )
    assert code == 0
    (mean,) = [one for one in json.loads(out)["comparisons"] if one["method"] == "window mean"]
    assert mean["ratio"] == pytest.approx(1)


async def test_a_history_can_be_asked_of_a_prometheus(tmp_path: Path) -> None:
    samples = [[60 * index, str(value)] for index, value in enumerate(WAVE)]
    async with serving(replying(matrix((SERIES[0], samples)))) as prometheus:
        code, out, err = await ran(
            TestApi(), "--prometheus", prometheus.url, "--since", "1h", *HORIZON
        )
    assert code == 0, err
    assert "1 series of 60 steps of 60 s" in out
    asked = prometheus.calls[0].parameters
    assert float(asked["end"]) - float(asked["start"]) == 3600


async def test_pushed_metrics_are_asked_of_a_prometheus_too() -> None:
    samples = [[60 * index, str(value)] for index, value in enumerate(WAVE)]
    source = {"type": "OpenTelemetry", "params": {"query": "cpu", "range": 600, "step": 60}}
    api = TestApi(config=lambda base: config(base, source))
    async with serving(replying(matrix((SERIES[0], samples)))) as prometheus:
        code, out, err = await ran(
            api, "--prometheus", prometheus.url, *HORIZON, "--part", "second"
        )
    assert code == 0, err
    assert "over the second half" in out


async def test_a_history_can_be_a_saved_answer(tmp_path: Path) -> None:
    samples = [[60 * index, str(value)] for index, value in enumerate(WAVE)]
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(matrix((SERIES[0], samples))))
    code, out, err = await ran(TestApi(), "--data", str(path), *HORIZON)
    assert code == 0, err
    assert "answer.json: 1 series of 60 steps" in out


async def test_what_the_config_declares_is_used(history: str) -> None:
    def declaring(base: str) -> Json:
        forecast = {"horizon": 180, "truth": {"query": "up"}, "quantile": 0.9}
        return {**config(base), "forecast": forecast, "direction": "HigherIsBetter"}

    code, out, _ = await ran(
        TestApi(config=declaring), "--recording", history, "--season", "0.0125d"
    )
    assert code == 0
    assert "season 1080 s" in out
    assert "horizon 180 s" in out
    assert "ERROR AS THE 0.9 QUANTILE" in out
    assert any(line.startswith("0.9 ") and "%" in line for line in out.splitlines())
    assert "CHOOSE THE SERIES WITH THE HIGHEST" in out


async def test_holes_are_said_and_not_sent(tmp_path: Path) -> None:
    holes = [None if index % 5 == 2 else value for index, value in enumerate(WAVE)]
    code, out, _ = await ran(
        TestApi(), "--recording", written(tmp_path, recording(holes)), *HORIZON
    )
    assert code == 0
    assert "12 steps of the history have no sample" in out


def relabelled(found: list[Json]) -> list[Json]:
    return [{**one, "metric": {"pod": "another"}} for one in found]


def lying(found: list[Json]) -> list[Json]:
    return [{**one, "quantiles": {"0.5": "much"}} for one in found]


def not_finite(found: list[Json]) -> list[Json]:
    return [{**one, "score": "NaN"} for one in found]


def without_score(found: list[Json]) -> list[Json]:
    return [{"metric": one["metric"], "value": 1} for one in found]


@pytest.mark.parametrize(
    ("api", "code", "said"),
    [
        (TestApi(changed(relabelled)), 2, "none of the 96 results has the labels of a series"),
        (TestApi(changed(lying)), 1, "scoring: InvalidResponse: "),
        (TestApi(changed(without_score)), 1, "scoring: InvalidResponse: "),
        (TestApi(changed(lambda _: [])), 2, "no score could be judged"),
        (TestApi(changed(not_finite)), 2, "no score could be judged"),
        (TestApi(unless(lambda *_: True, broken)), 1, "scoring: ServerError"),
        (TestApi(protected()), 1, "scoring: Unauthorized: "),
    ],
)
async def test_a_scorer_that_can_not_be_judged_is_named_in_one_line(
    api: TestApi, code: int, said: str, history: str
) -> None:
    exit_code, out, err = await ran(api, "--recording", history, *HORIZON)
    assert (exit_code, out) == (code, "")
    error = err.splitlines()[-1]
    assert error.startswith("Error: ")
    assert said in error
    assert "Traceback (most recent" not in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([*HORIZON], "name one history"),
        (["--recording", "{history}"], "the config has no forecast.horizon: set --horizon"),
        (["--recording", "{history}", "--horizon", "59m"], "a window of 600 s and a horizon"),
        (["--recording", "{history}", "--horizon", "3m", "--step", "90s"], "is not a multiple"),
        (["--recording", "{history}", *HORIZON, "--svg", "/nowhere/x.svg"], "can't be written"),
        (["--recording", "{history}", *HORIZON, "--query", "up"], "has no answer to the query"),
        (["--recording", "{history}", *HORIZON, "--season", "7d"], "--season: 604800 s are longer"),
        (["--data", "{history}", *HORIZON, "--query", "up"], "has one query; leave it out"),
        (["--recording", "{history}", *HORIZON, "--truth", "p0"], "'p0' is no truth: write mean"),
        (["--recording", "{history}", *HORIZON, "--truth", "query"], "no answer to forecast.truth"),
        (["--recording", "tomorrow", *HORIZON], "there are: build-machine"),
        (["--data", "{history}", *HORIZON], "has no series"),
        (
            ["--recording", "{history}", *HORIZON, "--choose-by", "site"],
            "no series of recording.json has the label 'site'",
        ),
    ],
)
async def test_wrong_usage_is_exit_code_2(history: str, options: list[str], said: str) -> None:
    code, out, err = await ran(TestApi(), *(one.replace("{history}", history) for one in options))
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


async def test_a_query_that_was_not_recorded_is_named(tmp_path: Path) -> None:
    document = recording()
    document["queries"] = [{**document["queries"][0], "query": name} for name in ("one", "two")]
    path = written(tmp_path, document)
    code, _, err = await ran(TestApi(), "--recording", path, *HORIZON)
    assert code == 2
    assert "set --query to one of: one, two" in " ".join(err.split())
    assert (await ran(TestApi(), "--recording", path, *HORIZON, "--query", "two"))[0] == 0


PEAK = "max_over_time(up[3m])"


def declaring_the_peak(base: str) -> Json:
    return {**config(base), "forecast": {"horizon": 180, "truth": {"query": PEAK}}}


def knowing_the_peak(pods: dict[str, list[float]]) -> TestApi:
    """A scorer that answers what its query of the truth will, after the wave of WAVE."""

    async def respond(request: web.Request) -> web.StreamResponse:
        data = json.loads(await request.read())["data"]
        found = []
        for one in data:
            end = (one["values"][-1][0] - 1_700_000_000) // 60 + 1
            found.append({"metric": one["metric"], "score": pods[one["metric"]["pod"]][end + 2]})
        return web.json_response({"results": found})

    return TestApi(respond, declaring_the_peak)


def peaks(values: list[float]) -> list[float]:
    return [max(values[max(index - 2, 0) : index + 1]) for index in range(len(values))]


PODS = {"a": peaks(WAVE), "b": peaks([4 - value for value in WAVE])}
"""The answers to PEAK: at each step the highest of the last three values."""


@pytest.mark.parametrize("option", ["recorded", "max"])
async def test_the_truth_is_what_the_config_declares_or_an_option_says(
    tmp_path: Path, option: str
) -> None:
    document = recording()
    if option == "recorded":
        truth = [{"metric": one, "values": PODS[one["pod"]]} for one in SERIES]
        document["queries"].append({"query": PEAK, "series": truth})
    path = written(tmp_path, document)
    given = () if option == "recorded" else ("--truth", "max")
    _, out, _ = await ran(
        knowing_the_peak(PODS), "--recording", path, "--query", QUERY, *given, "-o", "json"
    )
    figures = json.loads(out)
    assert figures["scorer"]["error"] == pytest.approx(0, abs=1e-9)
    assert figures["setting"]["truth"] == ("query" if option == "recorded" else "max")
    by_method = {one["method"]: one["error"] for one in figures["comparisons"]}
    naive = [abs(PODS[pod][end + 2] - PODS[pod][end - 1]) for pod in "ab" for end in range(10, 58)]
    assert by_method["last value"] == pytest.approx(sum(naive) / len(naive))


async def test_a_prometheus_is_asked_for_the_truth(tmp_path: Path) -> None:
    samples = [[60 * index, str(value)] for index, value in enumerate(WAVE)]
    api = TestApi(config=declaring_the_peak)
    async with serving(replying(matrix((SERIES[0], samples)))) as prometheus:
        code, out, err = await ran(api, "--prometheus", prometheus.url)
    assert code == 0, err
    assert "truth: forecast.truth.query" in out
    assert [call.parameters["query"] for call in prometheus.calls] == [QUERY, PEAK]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([], "forecast.truth.query has no series in the history"),
        ([{"metric": {"pod": "x"}, "values": WAVE}], "none of the 1 series of forecast.truth"),
        (
            [{"metric": {"pod": "a", **more}, "values": WAVE} for more in ({}, {"meta": "x"})],
            "2 series have the same labels",
        ),
    ],
)
async def test_a_truth_without_data_is_named(
    tmp_path: Path, answers: list[Json], said: str
) -> None:
    document = recording()
    document["queries"].append({"query": PEAK, "series": answers})
    api = TestApi(config=declaring_the_peak)
    given = ("--recording", written(tmp_path, document), "--query", QUERY)
    code, _, err = await ran(api, *given)
    assert code == 2
    assert said in " ".join(err.split())
    assert (await ran(api, *given, "--truth", "mean"))[0] == 0


def table(folder: Path, name: str, **columns: Any) -> str:
    path = folder / name
    frame = pl.DataFrame(columns)
    frame.write_parquet(path) if name.endswith("parquet") else frame.write_csv(path)
    return str(path)


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("name", ["load.csv", "load.parquet"])
@pytest.mark.parametrize("form", ["seconds", "dates"])
async def test_a_history_can_be_a_table(tmp_path: Path, name: str, form: str) -> None:
    times: list[Any] = [NOON + timedelta(minutes=index) for index in range(60)] * 2
    if form == "seconds":
        times = [time.timestamp() for time in times]
    values = [*WAVE[:30], None, *WAVE[31:], *WAVE]
    path = table(
        tmp_path, name, timestamp=times, pod=["a"] * 60 + ["b"] * 60, value=values, truth=values
    )
    code, out, err = await ran(TestApi(), "--data", path, *HORIZON)
    assert code == 0, err
    assert f"{name}: 2 series of 60 steps of 60 s" in out
    assert "truth: forecast.truth.query" in out
    assert "1 steps of the history have no sample" in out


SECONDS = [60 * index for index in range(60)]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"when": SECONDS, "value": WAVE},
            "columns time and value, and one for each label; it has",
        ),
        ({"time": SECONDS, "value": ["much"] * 60}, "the column value has values that are not"),
        ({"time": ["noon"] * 60, "value": WAVE}, "the column time needs unix seconds"),
        ({"time": [1e12] * 60, "value": WAVE}, "the column time needs unix seconds"),
        ({"time": ["1969-12-31"] * 60, "value": WAVE}, "the column time needs unix seconds"),
        ({"time": [0] * 60, "value": WAVE}, "two rows with the same time and labels"),
        ({"time": [], "value": []}, "has no rows"),
    ],
)
async def test_a_table_that_can_not_be_used_is_named(
    tmp_path: Path, columns: Json, said: str
) -> None:
    code, out, err = await ran(
        TestApi(), "--recording", table(tmp_path, "load.parquet", **columns), *HORIZON
    )
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


@pytest.mark.parametrize("name", ["load.csv", "load.parquet"])
async def test_a_file_that_is_no_table_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\x00\xff\n1,2,3\n")
    code, _, err = await ran(TestApi(), "--data", str(tmp_path / name), *HORIZON)
    assert code == 2
    assert f"{name} " in err
    assert "Traceback" not in err


async def test_two_series_of_one_name_are_named(tmp_path: Path) -> None:
    document = recording()
    for one in document["queries"][0]["series"]:
        one["metric"] = {"pod": "a"}
    for option in ("--recording", "--data"):
        code, _, err = await ran(TestApi(), option, written(tmp_path, document), *HORIZON)
        assert code == 2
        assert '2 series have the same labels ("pod=a")' in " ".join(err.split())
        values = [[60 * index, "1"] for index in range(60)]
        document = {"data": [{"metric": {"pod": "a"}, "values": values}] * 2}


async def test_a_query_without_series_is_named() -> None:
    async with serving(replying(matrix())) as prometheus:
        code, _, err = await ran(TestApi(), "--prometheus", prometheus.url, *HORIZON)
    assert code == 2
    assert f'has no series of the last 86400 s for the query "{QUERY}"' in " ".join(err.split())


async def test_without_the_extra_one_line_says_what_to_install(
    history: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    code, out, err = await ran(TestApi(), "--recording", history, *HORIZON)
    assert (code, out) == (1, "")
    assert "pip install 'dynamic-scoring-framework[kit]'" in err


async def test_a_sample_that_is_not_a_number_is_named(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    path.write_text('{"data": [{"metric": {"pod": "a"}, "values": [[0, "1"], [60, "x"]]}]}')
    code, out, err = await ran(TestApi(), "--data", str(path), *HORIZON)
    assert (code, out) == (2, "")
    assert "is not a number: write each as [unix seconds" in " ".join(err.split())


async def test_a_recording_without_series_is_named(tmp_path: Path) -> None:
    document = {"step": 60, "queries": [{"query": QUERY, "series": []}]}
    code, _, err = await ran(TestApi(), "--recording", written(tmp_path, document), *HORIZON)
    assert code == 2
    assert "recording.json has no series" in err
