"""`dsf demo --fleet`: a fleet of any size is a legal one, and runs as its help says."""

import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dsf.sim.cli import demo
from dsf.sim.fleet.fleet_load import STEPS, recording
from dsf.sim.fleet.generated_fleet import (
    MODELS,
    REGIONS,
    WORKLOADS_PER_CLUSTER,
    fleet_apps,
    fleet_clusters,
)
from optimizer.domain.mig.geometry import Geometry, geometry
from optimizer.domain.mig.layouts import layouts
from optimizer.snapshot.drawn_gpus import gpu_model
from tests.dsf.sim.demo.test_demo import environment, first_document, processes_of
from tests.eventually import until

GIB = 1 << 30


@given(st.integers(2, 300))
def test_every_size_is_a_fleet_with_names_of_its_own(size: int) -> None:
    clusters, workloads = fleet_clusters(size), list(fleet_apps(size))
    assert len({one.name for one in clusters}) == size
    products = {one.model.product for one in clusters}
    assert products == {model.product for model in MODELS[:size]}
    names = [name for name, _ in workloads]
    assert len(set(names)) == len(names) == WORKLOADS_PER_CLUSTER * size
    regions = Counter(one.region for one in clusters)
    assert max(regions.values()) - min(regions[region] for region in REGIONS) <= 1


def test_gpus_are_divided_as_their_model_can_be() -> None:
    divided = [
        (model.product, layout) for model in MODELS for node in model.nodes for layout in node
    ]
    for product, layout in divided:
        known = geometry(product)
        if layout == {"all": 1}:
            continue
        assert isinstance(known, Geometry), product
        legal = (Counter(one.profile for one in found) for found in layouts(known))
        assert Counter(layout) in legal, (product, layout)


def test_a_cluster_measures_every_app_that_it_can_run_for_a_whole_day() -> None:
    for cluster in fleet_clusters(40):
        for series in recording(cluster).queries.values():
            assert {one.metric["device"] for one in series} <= set(cluster.devices)
            assert {len(one.values) for one in series} <= {STEPS}
            assert all(value and value > 0 for one in series for value in one.values)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fleet", "1"], "1 is not in the range 2<=x<=300"),
        (["--fleet", "301"], "301 is not in the range 2<=x<=300"),
        (["--fleet", "4", "--story", "airan"], "leave out --story"),
        (["--fleet", "4", "--scorer", "http://localhost:1"], "leave out --scorer"),
    ],
)
def test_what_is_no_fleet_is_refused_in_a_line(arguments: list[str], said: str) -> None:
    answer = CliRunner().invoke(demo, arguments)
    assert answer.exit_code == 2
    assert said in answer.output.splitlines()[-1]


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_forty_clusters_run_on_less_than_a_gibibyte(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dsf", "demo", "--fleet", "40", "--json", "--port", "0"]
    environ = environment(tmp_path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as fleet:
        assert fleet.stdout
        url = json.loads(first_document(fleet.stdout))["url"]
        # While a rollout goes on, what it moves has not landed.
        found = until("a hundred landed workloads", lambda: landed_fleet(url, more_than=100))
        assert sum(map(_resident, processes_of(tmp_path))) < GIB
        fleet.send_signal(signal.SIGINT)
        assert fleet.wait() == 0
    models = {item["model"] for item in found["capacity"]["fleet"]["resources"]}
    assert {gpu_model(model.product) for model in MODELS} <= models
    reasons = {item["reason"] for item in found["findings"]}
    assert {"QueryRejected", "NotPlaced"} <= reasons
    assert list(tmp_path.iterdir()) == []


def landed_fleet(url: str, *, more_than: int) -> dict[str, Any] | None:
    """Return the fleet if more workloads than that have landed."""
    found = httpx.get(f"{url}/fleet?namespace=default", timeout=60, trust_env=False).json()
    running = Counter(item["state"] for one in found["clusters"] for item in one["running"])
    return found if running["Landed"] > more_than else None


def _resident(process: str) -> int:
    """Return the bytes of a process that are in memory."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))
