"""The replaying Prometheus: over HTTP, as an agent asks."""

from collections.abc import AsyncIterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.sim.prometheus_replay import RecordedSeries, Recording, matrix, replaying

QUERY = "sum by (pod) (rate(cpu[1m]))"
RECORDING = Recording(30, {QUERY: (RecordedSeries({"pod": "a"}, (1.0, 2.0, 3.0)),)})


@pytest.fixture
async def prometheus() -> AsyncIterator[httpx.AsyncClient]:
    async with (
        replaying(RECORDING, labels={"node": "n1"}, shift=1) as url,
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
