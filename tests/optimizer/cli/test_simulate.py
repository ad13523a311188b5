"""`dsf simulate`, as it is typed."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from aiohttp import web

from dsf.kube.embedded.http.server import kubeconfig, serving
from optimizer.cli.simulate import simulate
from tests.command_line import invoked, invoked_meanwhile
from tests.optimizer.twin.recorded_fleet import STEP, STEPS, answer, record, recorded_hub

SCENARIO = {
    "description": "a shift",
    "duration": "2h",
    "controller": "Naive",
    "naiveEvery": "5m",
    "clusters": [{"name": "site", "count": 2, "allocatable": "gpu/all=1"}],
    "workloads": [{"name": "chat"}],
    "scores": [
        {
            "name": "fit",
            "total": "EUR",
            "signals": [
                {"type": "Constant", "least": 50},
                {"type": "Shift", "at": 0, "until": "1h", "by": 20, "clusters": ["site-1"]},
                {"type": "Shift", "at": "1h", "by": 20, "clusters": ["site-2"]},
                {"type": "Noise", "size": 4},
            ],
        }
    ],
    "optimization": {"preference": {"addonPlacementScore": "fit"}},
}


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    return written(tmp_path / "scenario.yaml", SCENARIO)


def written(path: Path, value: Any) -> str:
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    return str(path)


def answered(*arguments: str) -> Any:
    code, out, err = invoked(simulate, *arguments, "-o", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_it_tells_value_regret_moves_and_totals(scenario: str, tmp_path: Path) -> None:
    picture = tmp_path / "runs.svg"
    code, out, err = invoked(simulate, scenario, "--picture", str(picture))
    assert (code, err) == (0, f"Drew {picture}: open it in a browser.\n")
    assert out.splitlines()[0] == "2 h, 1 seed"
    assert "FIT (EUR)" in out.splitlines()[1]
    assert out.splitlines()[-1].startswith("best in hindsight")
    drawn = ET.fromstring(picture.read_text())  # noqa: S314 - our own
    assert len(drawn.findall(".//{*}path[@class='best']")) == 2
    found = answered(scenario)
    (row,) = found["rows"]
    assert found["best_value"]["mean"] == pytest.approx(70)
    regret = row["regret_percent"]["mean"]
    assert regret == pytest.approx(100 * (70 - row["value"]["mean"]) / 70)
    assert row["totals"]["fit"]["mean"] == pytest.approx(2 * row["value"]["mean"])
    assert row["moves"]["mean"] >= 1
    assert row["value"]["half_interval"] is None


@pytest.mark.exhaustive
def test_a_sweep_is_the_same_on_any_number_of_processes(scenario: str) -> None:
    asked = (scenario, "--sweep", "missingScore=0,forbid", "--seeds", "2")
    alone, together = answered(*asked, "--processes", "1"), answered(*asked, "--processes", "2")
    assert alone == together
    assert [row["setting"] for row in alone["rows"]] == [
        {"missingScore": "0"},
        {"missingScore": "forbid"},
    ]
    assert alone["seeds"] == [0, 1]
    assert all(row["value"]["half_interval"] >= 0 for row in alone["rows"])


@pytest.mark.parametrize(
    ("changed", "asked", "code", "told"),
    [
        ({"durration": "2h"}, [], 1, "durration: unknown field; did you mean duration"),
        ({"duration": "99d"}, [], 1, "duration: "),
        ({"clusters": [{"name": "a", "count": 9000}]}, [], 1, "at most 2000"),
        ({"optimization": {"preference": {"addonPlacementScore": "fat"}}}, [], 1, "no score fat"),
        ({}, ["--sweep", "hysterisis.leastGain=1"], 1, "hysterisis: unknown field"),
        ({}, ["--sweep", "preference.weight.x=1"], 1, "preference.weight: "),
        ({}, ["--sweep", "gap=2"], 1, "gap: "),
        ({}, ["--sweep", "gap"], 1, "does not have the form hysteresis=1,2,5"),
        ({}, ["--sweep", "gap={"], 1, '"{" is no value in YAML'),
        ({}, ["--sweep", "gap=0,0"], 1, "has a value twice"),
        ({}, ["--sweep", "gap=0", "--sweep", "gap=0.1"], 2, "a field is named twice"),
        ({}, ["--seeds", "0"], 2, "0 is not in the range"),
        ({}, ["--picture", "runs.png"], 2, "must end in .svg"),
        ({}, ["--dask", "tcp://127.0.0.1:9", "--processes", "1"], 2, "give one of them"),
        ({}, ["--dask", "tcp://127.0.0.1:9"], 1, "no Dask scheduler answers at tcp://127.0.0.1:9"),
        ({}, ["--record", "."], 2, "name a scenario file, or a recording"),
    ],
)
def test_what_cannot_be_played_is_told_in_a_line(
    tmp_path: Path, changed: dict[str, Any], asked: list[str], code: int, told: str
) -> None:
    path = written(tmp_path / "scenario.yaml", {**SCENARIO, **changed})
    ended, out, err = invoked(simulate, path, *asked)
    assert (ended, out) == (code, "")
    assert told in err.splitlines()[-1]


@pytest.mark.exhaustive
def test_two_local_workers_of_dask_play_the_same(scenario: str) -> None:
    distributed = pytest.importorskip("distributed", reason="in the extra `simulate`")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        found = answered(scenario, "--seeds", "2", "--dask", cluster.scheduler_address)
    assert found == answered(scenario, "--seeds", "2", "--processes", "1")


SHIFT = answer({"worker01": lambda step: 60 if step < 36 else 40, "worker02": lambda _: 50})


@pytest.mark.exhaustive
async def test_a_recording_is_played_beside_what_was_applied(tmp_path: Path) -> None:
    await record(tmp_path, SHIFT)
    code, out, err = await invoked_meanwhile(simulate, "--record", str(tmp_path), "-o", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    rows = {row["controller"]: row for row in found["rows"]}
    assert found["notes"] == []
    assert rows["Recorded"]["moves"]["mean"] == 0
    shares = 36 / (STEPS - 1), 35 / (STEPS - 1)
    assert rows["Recorded"]["value"]["mean"] == pytest.approx(60 * shares[0] + 40 * shares[1])
    assert found["best_value"]["mean"] == pytest.approx(60 * shares[0] + 50 * shares[1])
    assert rows["Naive"]["moves"]["mean"] == 1


@pytest.mark.exhaustive
async def test_the_recorded_spec_counts_for_what_was_placed(tmp_path: Path) -> None:
    """Its clusters and selectors were answered by the plan; the site that lost is kept for 50."""
    await record(tmp_path, SHIFT)
    spec = {
        "preference": {"addonPlacementScore": "fit"},
        "clusters": [{"name": "worker01"}],
        "workloadSelector": "tier=gold",
        "hysteresis": {"leastGain": 50},
    }
    kept = {
        "apiVersion": "dynamic-scoring.open-cluster-management.io/v1alpha1",
        "kind": "PlacementOptimization",
        "metadata": {"name": "default", "namespace": "default"},
        "spec": spec,
    }
    written(tmp_path / "kept.yaml", kept)
    asked = ("--record", str(tmp_path), "--no-hindsight", "-o", "json")
    code, out, err = await invoked_meanwhile(simulate, *asked)
    assert (code, err) == (0, "")
    rows = {row["controller"]: row for row in json.loads(out)["rows"]}
    assert rows["Kept"]["moves"]["mean"] == 0
    assert rows["Kept"]["value"]["mean"] == pytest.approx(rows["Recorded"]["value"]["mean"], 0.01)


@pytest.mark.exhaustive
async def test_gaps_are_told_and_played_as_an_agent_away(tmp_path: Path) -> None:
    gap = answer({"worker01": lambda _: 60, "worker02": lambda at: None if 9 < at < 20 else 50})
    await record(tmp_path, gap)
    code, out, _ = await invoked_meanwhile(simulate, "--record", str(tmp_path), "--no-hindsight")
    assert code == 0
    assert out.splitlines()[-1] == (
        "worker02: nothing recorded for 50m from 2026-11-20T12:50:00Z;"
        " played as an agent that was away"
    )


@pytest.mark.parametrize(
    ("answers", "plan", "told"),
    [
        ([], True, "the recording has no samples of fit"),
        ([answer({})], True, "the recording has no samples of fit"),
        ([answer({"worker09": lambda _: 1})], True, "the recording has no samples of fit"),
        ([answer({"worker01": lambda _: 1}, last=1)], True, "shorter than two steps"),
        ([SHIFT, SHIFT], True, "the recording's clock jumped, or its files overlap"),
        ([SHIFT], False, "no applied PlacementPlan"),
        ([{"status": "success", "data": {"result": [7]}}], True, "is not one of a Prometheus"),
    ],
)
async def test_a_recording_that_cannot_be_played_is_told_in_a_line(
    tmp_path: Path, answers: list[Any], plan: bool, told: str
) -> None:
    await record(tmp_path, *answers, plan=plan)
    code, out, err = await invoked_meanwhile(simulate, "--record", str(tmp_path))
    assert (code, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert told in err


@pytest.mark.exhaustive
async def test_a_prometheus_and_a_hub_are_a_recording(tmp_path: Path) -> None:
    hub = await recorded_hub()
    async with serving(hub) as url, prometheus(SHIFT) as (past, queries):
        config = written(tmp_path / "hub.kubeconfig", kubeconfig(url))
        code, out, _ = await invoked_meanwhile(
            simulate, "--record", past, "--since", "1h", f"--kubeconfig={config}", "-o", "json"
        )
        assert code == 0
        refused = await invoked_meanwhile(
            simulate, "--record", f"{past}/gone", f"--kubeconfig={config}"
        )
    assert "HTTP 404" in refused[2]
    assert {row["controller"] for row in json.loads(out)["rows"]} >= {"Naive", "Recorded"}
    assert float(queries[0]["end"]) - float(queries[0]["start"]) == pytest.approx(3600)
    assert float(queries[0]["step"]) == STEP


@asynccontextmanager
async def prometheus(body: Any) -> AsyncIterator[tuple[str, list[Any]]]:
    """A Prometheus that answers every range with `body`; yields its URL, and what it was asked."""
    asked = list[Any]()

    async def answered(request: web.Request) -> web.Response:
        asked.append(request.query)
        return web.json_response(body)

    app = web.Application()
    app.router.add_get("/api/v1/query_range", answered)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await asyncio.wait_for(runner.cleanup(), 10)
