"""The kit's commands on a strict scorer with several sources and further parameters."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from dsf.cli.root import root
from tests.command_line import invoked
from tests.dsf.efficiency_scorer import config, respond, source
from tests.dsf.scorer_kit.scorers import TestApi, served

SOURCES = [source("gpu", "http://prometheus:9090"), source("power", "http://kepler:9102")]
SOURCES[1]["type"] = "OpenTelemetry"
SOURCES[1]["params"]["query"] = "power"


@pytest.fixture
async def url() -> AsyncIterator[str]:
    api = TestApi(respond, lambda path: config(path, SOURCES))
    async with served({"efficiency": api}) as base:
        yield f"{base}/efficiency/config"


async def run(*words: str) -> tuple[int, str, str]:
    return await asyncio.to_thread(invoked, root, "scorer", *words)


def data(path: Path) -> str:
    series = [
        {"metric": {"node": node, "__source__": name}, "values": [[1_700_000_000, value]]}
        for name, value in (("gpu", "50"), ("power", "50"))
        for node in ("n1", "n2")
    ]
    path.write_text(json.dumps({"data": series}))
    return str(path)


async def test_a_strict_scorer_passes_every_check(url: str, tmp_path: Path) -> None:
    """Invented series have the label of their source, and each request has the parameters."""
    small = ("--data", data(tmp_path / "series.json"), "--series", "20", "--samples", "5")
    code, out, err = await run("check", url, "-o", "json", *small)
    checks = {one["name"]: one for one in json.loads(out)["checks"]}
    failed = {name: one for name, one in checks.items() if one["status"] == "failed"}
    assert (code, failed) == (0, {}), err


async def test_a_file_has_the_series_of_each_source(url: str, tmp_path: Path) -> None:
    words = ("--data", data(tmp_path / "series.json"), "--dimension-format", "${node}")
    code, out, err = await run("try", url, *words)
    assert code == 0, err
    assert "gpu: Prometheus http://127.0.0.1" in out
    assert out.count("2 series, 2 samples sent") == 2
    assert '{"price": 0.025, "model": "linear"}' in out
    lines = [line.split() for line in out.splitlines()]
    assert ["node=n1", "40", "-", "40", "40", "n1", "-"] in lines
    assert ["-", "40", "-", "40", "40", "efficiency", "-"] in lines


async def test_a_backtest_needs_one_source(url: str, tmp_path: Path) -> None:
    words = ("--data", data(tmp_path / "series.json"), "--horizon", "60s")
    code, _, err = await run("backtest", url, *words)
    assert code == 2
    assert "several sources (gpu, power): a backtest needs one" in err


async def test_it_can_be_registered(url: str) -> None:
    code, out, err = await run("register", url, "--dimension-format", "${node}")
    assert code == 0, err
    assert "source.host of the config must be reachable" in out
    spec = yaml.safe_load(out)["spec"]
    assert spec["configURL"] == url
    assert spec["scoreDimensionFormats"] == ["${scoreName}"]
