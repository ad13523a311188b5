"""`dsf agent --once` against real servers."""

import json
import re
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from tests.dsf.agent.builders import summary
from tests.dsf.agent.servers import Server, serving
from tests.dsf.agent.test_cli import ended, file_of
from tests.real_hub.harness.ports import Ports
from tests.real_hub.harness.processes import Processes
from tests.real_sources.servers import start_prometheus


async def last_value(request: web.Request) -> web.StreamResponse:
    """Score each series with its last value; a series that ends with NaN gets no score."""
    body = json.loads(await request.read())
    results = [
        {"metric": series["metric"], "score": float(series["values"][-1][1])}
        for series in body["data"]
        if series["values"][-1][1] != "NaN"
    ]
    return web.json_response({"results": results})


@pytest.fixture
async def scorer() -> AsyncIterator[Server]:
    async with serving(last_value) as server:
        yield server


async def once(source: str, scorer: Server, home: Path, **changes: Any) -> tuple[Any, str]:
    """Return the status that would be published, and standard error."""
    fields = {
        "source_endpoint": f"{source}/api/v1/query_range",
        "source_range": 60,
        "source_step": 1,
        "scoring_endpoint": f"{scorer.url}/scoring",
        "score_dimension_format": "${pod}",
    }
    _, out, err = await ended("--once", file_of(home, summary(**(fields | changes))), home=home)
    return yaml.safe_load(out)["status"], err


def values(status: Any) -> dict[str, int]:
    return {item["name"]: item["value"] for item in status["scores"]}


def series(scorer: Server) -> list[Any]:
    (call,) = scorer.calls
    return list(call.json["data"])


async def test_a_range(source: str, scorer: Server, tmp_path: Path) -> None:
    status, _ = await once(source, scorer, tmp_path, source_query="util")
    assert {name: value for name, value in values(status).items() if name != "b"} == {
        "a": 12,
        "<é>": -3,
    }
    # Of a series that is never a number, VictoriaMetrics answers nothing.
    pods = {one["metric"]["pod"] for one in series(scorer)}
    assert pods in ({"a", "b", "<é>"}, {"a", "<é>"})
    for one in series(scorer):
        assert set(one) == {"metric", "values"}
        times = [time for time, _ in one["values"]]
        assert len(times) > 2
        assert {round(after - before, 3) for before, after in pairwise(times)} == {1.0}


async def test_the_latest_value(source: str, scorer: Server, tmp_path: Path) -> None:
    status, _ = await once(source, scorer, tmp_path, source_query="util>0", source_range=0)
    assert values(status) == {"a": 12}
    (one,) = series(scorer)
    assert len(one["values"]) == 1


async def test_several_queries(source: str, scorer: Server, tmp_path: Path) -> None:
    query = 'util{pod="a"}; label_replace(node_load1 * 0 + 7, "pod", "load;1", "", "")'
    status, _ = await once(source, scorer, tmp_path, source_query=query)
    assert values(status) == {"a": 12, "load;1": 7}


async def test_a_query_too_long_for_a_url(source: str, scorer: Server, tmp_path: Path) -> None:
    query = 'util{pod="a"}' + ' + util{pod="a"} * 0' * 500
    status, _ = await once(source, scorer, tmp_path, source_query=query)
    assert values(status) == {"a": 12}


async def test_a_scalar(source: str, scorer: Server, tmp_path: Path) -> None:
    status, _ = await once(source, scorer, tmp_path, source_query="40 + 2", source_range=0)
    assert values(status) == {"": 42}


@pytest.mark.parametrize(
    ("query", "said"), [("util{", "util{|unexpected end"), ("nope(util)", 'unknown func.*"?nope')]
)
async def test_the_servers_own_words(
    source: str, scorer: Server, tmp_path: Path, query: str, said: str
) -> None:
    status, err = await once(source, scorer, tmp_path, source_query=query)
    condition = next(c for c in status["conditions"] if c["type"] == "SourceFetched")
    assert (condition["status"], condition["reason"]) == ("False", "QueryRejected")
    assert re.search(said, condition["message"])
    assert re.search(said, err)
    assert scorer.calls == []


async def test_what_prometheus_warns_of(
    processes: Processes, ports: Ports, targets: list[str], scorer: Server, tmp_path: Path
) -> None:
    unreachable = [{"url": "http://127.0.0.1:9/api/v1/read", "read_recent": True}]
    url = start_prometheus(processes, ports, targets, remote_read=unreachable)
    status, _ = await once(url, scorer, tmp_path, source_query="util")
    condition = next(c for c in status["conditions"] if c["type"] == "SourceFetched")
    assert (condition["status"], condition["reason"]) == ("True", "FetchedWithWarnings")
    assert "remote_read" in condition["message"]
