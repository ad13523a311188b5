"""The main job, as a user runs it: `dsf demo` finds both golden results, and serves its user."""

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest

from dsf.api.conditions import is_true
from dsf.api.names import HUB_NAMESPACE, REPLICA_SET_LABEL
from dsf.cli.scores import scores
from dsf.kube.client.connect import connect
from dsf.kube.kinds import DYNAMIC_SCORER, MANIFEST_WORK, POLICY
from dsf.sim.controllers.policy_framework import ROOT_LABEL
from dsf.sim.demo.processes import free_port
from dsf.sim.demo.walkthrough import BESIDE_A_STRANGER, scenario
from tests.command_line import invoked_meanwhile
from tests.dsf.scorer_kit.programs import started
from tests.dsf.sim.demo.test_authors_part import OF_CLUSTER, START, scaffold
from tests.eventually import eventually
from tests.pages.blocks import BASH, blocks
from tests.repository import ROOT

# The whole loop takes a quarter of a minute of CPU time.
pytestmark = pytest.mark.exhaustive

CLUSTERS = ("worker01", "worker02")
REQUEST_SECONDS = 120.0
DEMO = [sys.executable, "-m", "dsf", "demo"]


@dataclass(frozen=True)
class KeptDemo:
    """A demo that stays up: its result, and how to reach its optimizer and its hub."""

    result: dict[str, Any]
    optimizer: str
    hub: Path
    scorer: str

    def post(self, path: str, body: Any) -> dict[str, Any]:
        """Post a request to the optimizer and return its answer."""
        answer = httpx.post(
            self.optimizer + path, json=body, timeout=REQUEST_SECONDS, trust_env=False
        )
        assert answer.is_success, answer.text
        parsed: dict[str, Any] = answer.json()
        return parsed

    def optimize(self, score: str) -> set[tuple[str, str]]:
        """Post the guide's request with a score; return the workloads with their clusters."""
        request = json.loads((scenario() / "params.json").read_text(encoding="utf-8"))
        request["preference"]["addonPlacementScore"] = score
        answer = self.post("/optimize", request)
        return {(place["workload"], place["cluster"]) for place in answer["placements"]}


def write_table(path: Path, value: float) -> None:
    """Write a table of a week with a sample of `value` for each hour, one of them missing."""
    hours = (f"{hour * 3600},{value}\n" for hour in range(168) if hour != 9)
    path.write_text(f"time,value\n{''.join(hours)}")


def with_scorer(scorer: str, folder: Path) -> list[str]:
    """The options by which scorer-kit.md adds a scorer to the demo, with its tables."""
    page = ROOT / "docs/how-to/scorer-kit.md"
    (block,) = (one for one in blocks(page) if "dsf demo" in one.commands)
    command = block.commands.replace("http://localhost:8000", scorer)
    for name, value in (("east.csv", 0.6), ("west.csv", 1.4)):
        write_table(folder / name, value)
        command = command.replace(name, str(folder / name))
    return shlex.split(command)[3:]


@pytest.fixture(scope="module")
def kept() -> Iterator[KeptDemo]:
    with (
        TemporaryDirectory() as folder,
        TemporaryDirectory() as authors,
        started(START, scaffold(Path(authors), "headroom", OF_CLUSTER)) as scorer,
    ):
        port = free_port()
        command = [*DEMO, "--json", "--keep", "--allow-writes", "--port", str(port)]
        command += with_scorer(scorer, Path(authors))
        environ = environment(Path(folder))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ) as demo:
            assert demo.stdout
            result = json.loads(first_document(demo.stdout))
            (hub,) = Path(folder).glob("*/hub.kubeconfig")
            yield KeptDemo(result, f"http://127.0.0.1:{port}", hub, scorer)
            demo.send_signal(signal.SIGINT)
            assert demo.wait() == 0


@pytest.mark.parametrize(
    ("preference", "objective", "profile"), [("performance", 115, "3g"), ("power", 170, "2g")]
)
def test_the_golden_results(
    kept: KeptDemo, preference: str, objective: float, profile: str
) -> None:
    answer = kept.result[preference]
    assert answer["status"] == "Optimal"
    assert answer["objective_value"] == objective
    assert answer["policies"] == {
        cluster: f"policy-enable-mig-{profile}-{cluster}" for cluster in CLUSTERS
    }
    assert {place["cluster"] for place in answer["placements"]} == set(CLUSTERS)


def test_scores_that_differ_choose_clusters_as_well_as_profiles(kept: KeptDemo) -> None:
    answer = kept.result["throughput"]
    assert answer["objective_value"] == 165
    assert {(p["workload"], p["cluster"], p["device"]) for p in answer["placements"]} == {
        ("mwrs-app01", "worker02", "3g.48gb"),
        ("mwrs-app02", "worker01", "2g.24gb"),
    }


def test_a_plan_respects_a_pod_that_nobody_planned(kept: KeptDemo) -> None:
    answer = kept.result[BESIDE_A_STRANGER]
    assert answer["objective_value"] == 60
    assert [place["cluster"] for place in answer["placements"]] == ["worker02"]
    assert [(item["workload"], item["reason"]) for item in answer["unplaced"]] == [
        ("mwrs-app02", "NoCapacityLeft")
    ]


def test_the_score_of_an_author_decides_a_plan(kept: KeptDemo) -> None:
    answer = kept.result["headroom"]
    (place,) = answer["placements"]
    assert (place["workload"], place["cluster"], place["score"]) == ("mwrs-app01", "worker02", 70)


async def test_the_hub_of_the_demo_says_why_a_scorer_has_no_scores(kept: KeptDemo) -> None:
    kubeconfig = f"--kubeconfig={kept.hub}"
    code, out, err = await invoked_meanwhile(scores, kubeconfig, "--score=headroom")
    assert (code, err) == (0, "")
    assert out.splitlines()[2].split() == ["headroom", "30", "70"]
    wrong = {"type": "Prometheus", "host": "http://prometheus", "params": {"query": "up"}}
    spec = {
        "description": "d",
        "configURL": kept.scorer + "/config",
        "configSyncMode": "None",
        "source": wrong,
        "scoring": {"path": "/scoring", "params": {"name": "unknown", "interval": 5}},
    }
    async with connect(kept.hub) as hub:
        metadata = {"name": "unknown", "namespace": HUB_NAMESPACE}
        await hub.create(DYNAMIC_SCORER, {"metadata": metadata, "spec": spec})

        async def told() -> bool:
            _, _, err = await invoked_meanwhile(scores, kubeconfig, "--score=unknown")
            return err.startswith("unknown fails on worker01: QueryRejected: ")

        assert await eventually(told)
        await hub.delete(DYNAMIC_SCORER, "unknown", HUB_NAMESPACE)


def test_the_rollback_is_on_record_after_both_plans(kept: KeptDemo) -> None:
    answer = httpx.get(
        f"{kept.optimizer}/plans?namespace=default", timeout=REQUEST_SECONDS, trust_env=False
    )
    found = [
        (item["revision"], item["phase"], item["objective"]) for item in answer.json()["items"]
    ]
    assert found == [(3, "Applied", 115), (2, "RolledBack", 170), (1, "Superseded", 115)]


def test_a_kept_demo_answers_the_request_of_the_first_page(kept: KeptDemo) -> None:
    (block,) = (one for one in blocks(ROOT / "README.md") if "curl" in one.commands)
    command = block.commands.replace("http://127.0.0.1:8338", kept.optimizer)
    typed = [BASH, "-c", command.replace("curl", "curl --silent --fail-with-body")]
    ended = subprocess.run(typed, capture_output=True, text=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert json.loads(ended.stdout)["objective_value"] == 115


async def test_a_kept_demo_carries_out_requests_of_its_user(kept: KeptDemo) -> None:
    async with connect(kept.hub) as hub:

        async def landed() -> set[tuple[str, str]]:
            """Return the workloads that run, with their clusters."""
            works = (await hub.list(MANIFEST_WORK, labels=REPLICA_SET_LABEL)).items
            return {
                (work["metadata"]["name"], work["metadata"]["namespace"])
                for work in works
                if is_true(work, "Available")
            }

        async def enforced() -> set[str]:
            """Return the policies that clusters report as compliant."""
            replicas = (await hub.list(POLICY, labels=ROOT_LABEL)).items
            return {
                replica["metadata"]["name"]
                for replica in replicas
                if (replica.get("status") or {}).get("compliant") == "Compliant"
            }

        async def carried_out(planned: set[tuple[str, str]], policies: set[str]) -> bool:
            return await landed() == planned and await enforced() == policies

        async def withdrawn() -> bool:
            return not (await hub.list(POLICY, labels=ROOT_LABEL)).items

        performance = kept.optimize("example-performance-score")
        assert await eventually(partial(carried_out, performance, replicas_of("3g")))
        kept.post("/reset", {"namespace": "default"})
        assert await eventually(withdrawn)
        power = kept.optimize("example-powerconsumption-score")
        assert await eventually(partial(carried_out, power, replicas_of("2g")))
        throughput = kept.optimize("example-throughput-score")
        assert throughput == {("mwrs-app01", "worker02"), ("mwrs-app02", "worker01")}
        mixed = {f"default.policy-enable-mig-{name}" for name in ("2g-worker01", "3g-worker02")}
        assert await eventually(partial(carried_out, throughput, mixed))


def test_a_kept_demo_is_read_only_unless_it_is_told_otherwise(tmp_path: Path) -> None:
    port, source, folder = free_port(), free_port(), tmp_path / "temporary"
    folder.mkdir()
    replay = f"{sys.executable} {ROOT}/tests/real_hub/product/replay.py {source}"
    own = scaffold(tmp_path, "cores", {})
    environ = environment(folder)
    with (
        subprocess.Popen(replay.split(), env={**os.environ, "PYTHONPATH": str(ROOT)}) as prometheus,
        started(START, own) as scorer,
        ExitStack() as stack,
    ):
        stack.callback(prometheus.kill)
        while not listens(source):
            time.sleep(0.1)
        asked = ["--prometheus-url", f"http://127.0.0.1:{source}", "--scorer", scorer]
        command = [*DEMO, "--json", "--keep", "--port", str(port), *asked]
        demo = stack.enter_context(
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
        )
        stack.callback(demo.kill)
        assert demo.stdout
        result = json.loads(first_document(demo.stdout))
        assert [*result] == ["performance", "power", BESIDE_A_STRANGER, "cores"]
        assert result["power"]["objective_value"] == 170
        assert result["cores"]["placements"][0]["score"] == 6
        url = f"http://127.0.0.1:{port}/reset"
        answer = httpx.post(
            url, json={"namespace": "default"}, timeout=REQUEST_SECONDS, trust_env=False
        )
        assert answer.json()["reason"] == "ReadOnly"
        demo.send_signal(signal.SIGINT)
        assert demo.wait() == 0


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_without_keep_it_ends_by_itself() -> None:
    command = [*DEMO, "--port", "0"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    for cluster in ("hub", *CLUSTERS):
        assert f"{cluster}.kubeconfig" in answer.stdout


def test_a_used_port_is_one_line_and_says_how_to_choose_another(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [*DEMO, "--port", str(port)]
        answer = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment(tmp_path)
        )
    assert answer.returncode == 1
    assert answer.stderr.splitlines() == [
        f"Error: port {port} is in use on 127.0.0.1; choose another with --port PORT"
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_leaves_neither_processes_nor_files(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = [*DEMO, "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
    ) as demo:
        assert demo.stdout
        assert demo.stderr
        next(line for line in demo.stdout if "agent-worker01" in line)
        assert len(processes_of(tmp_path)) > 1
        demo.send_signal(number)
        assert demo.wait() == 1
        assert demo.stderr.read() == "Error: the demo was stopped before it had a result\n"
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def replicas_of(profile: str) -> set[str]:
    """Return the names of the replicated policies of a profile on both clusters."""
    return {f"default.policy-enable-mig-{profile}-{cluster}" for cluster in CLUSTERS}


def first_document(output: Iterable[str]) -> str:
    """Return the lines of the first JSON document of an output."""
    lines = []
    for line in output:
        lines.append(line)
        if line == "}\n":
            break
    return "".join(lines)


def environment(temporary: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(temporary)}


def processes_of(temporary: Path) -> list[str]:
    """Return the processes that were started with a folder as their TMPDIR."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"TMPDIR={temporary}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(process.name)
    return found
