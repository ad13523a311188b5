"""The replaying Prometheus: over HTTP, as an agent asks."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.scorer_kit.prometheus_replay import (
    ANY_QUERY,
    PausedReplay,
    RecordedSeries,
    Recording,
    Repeated,
    matrix,
    replaying,
)
from dsf.scorer_kit.recordings import of_whole_periods, replayable

QUERY = "sum by (pod) (rate(cpu[1m]))"
RECORDING = Recording(30, {QUERY: (RecordedSeries({"pod": "a"}, (1.0, 2.0, 3.0)),)})
HOLES = {"a": [1, None, 3], "b": [None, None, None], "c": [4, 5, 6]}


@pytest.fixture
async def prometheus() -> AsyncIterator[httpx.AsyncClient]:
    async with (
        replaying(Repeated(RECORDING, {"node": "n1"}, 1)) as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        yield client


async def test_a_range_is_answered_in_matrix_form(prometheus: httpx.AsyncClient) -> None:
    parameters = {"query": QUERY, "start": "0", "end": "60", "step": "30"}
    answer = (await prometheus.get("/api/v1/query_range", params=parameters)).json()
    (series,) = answer["data"]["result"]
    assert series["metric"] == {"pod": "a", "node": "n1"}
    assert series["values"] == [[0, "2"], [30, "3"], [60, "1"]]


async def test_a_long_query_may_be_posted(prometheus: httpx.AsyncClient) -> None:
    answer = await prometheus.post("/api/v1/query", data={"query": QUERY, "time": "30"})
    (series,) = answer.json()["data"]["result"]
    assert series["value"] == [30, "3"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": "up"},
        {"start": "x"},
        {"step": "0"},
        {"end": "1e12"},
        {"end": "-1"},
        {"step": "nan"},
    ],
    ids=str,
)
async def test_nonsense_is_refused_as_prometheus_does(
    prometheus: httpx.AsyncClient, wrong: dict[str, str]
) -> None:
    parameters = {"query": QUERY, "start": "0", "end": "60", "step": "30", **wrong}
    answer = await prometheus.get("/api/v1/query_range", params=parameters)
    assert answer.status_code == 400
    assert answer.json()["errorType"] == "bad_data"


@pytest.mark.parametrize("time", ["", "x", "nan", "inf"])
async def test_a_time_that_is_none_is_refused_too(prometheus: httpx.AsyncClient, time: str) -> None:
    answer = await prometheus.get("/api/v1/query", params={"query": QUERY, "time": time})
    assert answer.status_code == 400


@given(st.integers(0, 10**10), st.integers(0, 1000))
def test_the_recording_repeats_for_ever(time: int, shift: int) -> None:
    series = RECORDING.queries[QUERY]
    (now,) = matrix(series, [time], step=30, shift=shift)
    (later,) = matrix(series, [time + 90], step=30, shift=shift)
    assert now["values"][0][1] == later["values"][0][1]


async def test_a_hole_is_no_sample(tmp_path: Path) -> None:
    series = [{"metric": {"pod": pod}, "values": values} for pod, values in HOLES.items()]
    document = {"step": 30, "queries": [{"query": QUERY, "series": series}]}
    (tmp_path / "holes.json").write_text(json.dumps(document))
    recording = Recording.load(tmp_path / "holes.json")
    async with (
        replaying(Repeated(recording)) as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        window = {"query": QUERY, "start": "0", "end": "60", "step": "30"}
        ranged = (await client.get("/api/v1/query_range", params=window)).json()
        instant = (await client.get("/api/v1/query", params={"query": QUERY, "time": "30"})).json()
    assert ranged["data"]["result"] == [
        {"metric": {"pod": "a"}, "values": [[0, "1"], [60, "3"]]},
        {"metric": {"pod": "c"}, "values": [[0, "4"], [30, "5"], [60, "6"]]},
    ]
    assert [one["metric"] for one in instant["data"]["result"]] == [{"pod": "c"}]


@pytest.mark.parametrize(
    ("step", "values"),
    [(0, [1]), (30, []), (30, ["1"]), (30, [float("nan")]), ("30", [1])],
    ids=str,
)
def test_a_recording_that_cannot_be_replayed_is_refused(
    tmp_path: Path, step: Any, values: list[Any]
) -> None:
    series = [{"metric": {}, "values": values}]
    document = {"step": step, "queries": [{"query": QUERY, "series": series}]}
    (tmp_path / "wrong.json").write_text(json.dumps(document))
    with pytest.raises((ValueError, TypeError)):
        Recording.load(tmp_path / "wrong.json")


async def test_a_paused_replay_stands_at_a_step_whatever_time_it_is() -> None:
    replay = PausedReplay(RECORDING)
    replay.show(1)
    async with replay.serving() as url, httpx.AsyncClient(base_url=url, trust_env=False) as client:
        for end in (90, 100_000_020):
            asked = {"query": QUERY, "start": f"{end - 60}", "end": f"{end}", "step": "30"}
            answer = (await client.get("/api/v1/query_range", params=asked)).json()
            (series,) = answer["data"]["result"]
            assert series["values"] == [[end - 30, "1"], [end, "2"]]


async def test_a_paused_replay_tells_when_it_was_asked_since_it_moved() -> None:
    replay = PausedReplay(RECORDING)
    async with replay.serving() as url, httpx.AsyncClient(base_url=url, trust_env=False) as client:
        asked = {"query": QUERY, "time": "0"}
        await client.get("/api/v1/query", params=asked)
        replay.show(2)
        waiting = asyncio.create_task(replay.asked(2))
        await client.get("/api/v1/query", params=asked)
        assert not waiting.done()
        await client.get("/api/v1/query", params=asked)
        await waiting


async def test_a_table_longer_than_a_week_repeats_with_its_weekdays(tmp_path: Path) -> None:
    """Seventeen days of which each sample is its hour of the week: the newest two weeks count."""
    monday = 1_772_409_600
    hours = (f"{monday + hour * 3600},{hour % 168}\n" for hour in range(17 * 24))
    (tmp_path / "hours.csv").write_text(f"time,value\n{''.join(hours)}")
    recording = of_whole_periods(replayable(tmp_path / "hours.csv"))
    (series,) = recording.queries[ANY_QUERY]
    assert (len(series.values), recording.start) == (14 * 24, monday + 3 * 24 * 3600)
    async with (
        replaying(Repeated(recording)) as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        for hour in (0, 30, 400, 5000):
            asked = {"query": "anything", "time": f"{monday + hour * 3600}"}
            (found,) = (await client.get("/api/v1/query", params=asked)).json()["data"]["result"]
            assert float(found["value"][1]) == hour % 168
