"""`dsf agent`: as a process in tests about processes, else in this process."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from dsf.agent.cli import agent
from dsf.api.scoring.scorer_summary import ScorerSummary, dump_summaries
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http import server as api
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, CONFIG_MAP
from tests.command_line import invoked, invoked_meanwhile
from tests.dsf.agent.builders import summary
from tests.dsf.agent.conftest import AGENT_NAMESPACE, CLUSTER
from tests.dsf.agent.servers import matrix, replying, scores, serving
from tests.eventually import eventually

NAME = "--cluster-name=cluster1"
MIB = 1 << 20
LIMIT = 80 * MIB
"""What an agent may take, resident, on every managed cluster."""
SERIES = ({"node": "n1", "namespace": "ns", "pod": "a"}, [[1, "1.5"]])
RESULT = ({"node": "n1", "namespace": "ns", "pod": "a"}, 12.7)


@asynccontextmanager
async def process(*arguments: str, home: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    started = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "dsf",
        "agent",
        NAME,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()


async def ended(*arguments: str, home: Path) -> tuple[int | None, str, str]:
    async with process(*arguments, home=home) as started:
        out, err = await started.communicate()
        return started.returncode, out.decode(), err.decode()


def file_of(directory: Path, *summaries: ScorerSummary) -> str:
    path = directory / "summaries.json"
    path.write_text(dump_summaries(summaries), encoding="utf-8")
    return f"--summaries-file={path}"


def hub_of(directory: Path) -> str:
    """A kubeconfig of a hub that nobody serves."""
    path = directory / "hub.kubeconfig"
    named = {"name": "hub"}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "hub",
        "contexts": [{**named, "context": {"cluster": "hub", "user": "hub"}}],
        "clusters": [{**named, "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{**named, "user": {"token": "t"}}],
    }
    return f"--hub-kubeconfig={written(path, document)}"


async def test_once_prints_what_would_be_published(tmp_path: Path) -> None:
    async with (
        serving(replying(matrix(SERIES))) as prometheus,
        serving(replying(scores(RESULT))) as scorer,
    ):
        one = summary(
            source_endpoint=f"{prometheus.url}/api/v1/query_range", scoring_endpoint=scorer.url
        )
        code, out, err = await ended("--once", file_of(tmp_path, one), home=tmp_path)

    assert (code, err) == (0, "")
    (obj,) = yaml.safe_load_all(out)
    assert obj["kind"] == "AddOnPlacementScore"
    assert (obj["metadata"]["namespace"], obj["metadata"]["name"]) == (
        "cluster1",
        "sample-my-score",
    )
    assert obj["status"]["scores"] == [{"name": "n1;ns;a", "value": 12}]
    assert obj["status"]["validUntil"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--push-min-interval=1m"], "options of pushes need --push-bind-address"),
        (["--push-bind-address=:0", "--push-min-interval=0s"], "'0s' is not a duration"),
        (
            ["--push-bind-address=:0", f"--push-tls-cert-file={__file__}"],
            "--push-tls-cert-file and --push-tls-private-key-file need each other",
        ),
        (
            [
                "--push-bind-address=:0",
                f"--push-tls-cert-file={__file__}",
                f"--push-tls-private-key-file={__file__}",
            ],
            f"the certificate {__file__}",
        ),
    ],
)
def test_options_of_pushes_are_honoured_or_refused(
    options: list[str], said: str, tmp_path: Path
) -> None:
    code, _, err = invoked(agent, NAME, *options, hub_of(tmp_path))
    assert code != 0
    assert said in err


async def test_explain_prints_where_each_value_came_from(tmp_path: Path) -> None:
    results = [({"node": "n1", "namespace": "ns", "pod": pod}, 3) for pod in "abc"]
    async with (
        serving(replying(matrix(SERIES, SERIES))) as prometheus,
        serving(replying(scores(*results))) as scorer,
    ):
        one = summary(
            source_endpoint=f"{prometheus.url}/api/v1/query_range", scoring_endpoint=scorer.url
        )
        code, out, err = await invoked_meanwhile(
            agent, NAME, "--explain", "--max-series=2", file_of(tmp_path, one)
        )

    assert (code, err) == (0, "")
    assert f"{prometheus.url}/api/v1/query_range: 2 series, 2 samples sent" in out
    assert f"scoring     {scorer.url}: 3 results" in out
    assert [line.split()[-1] for line in out.splitlines()[-3:]] == ["-", "-", "SeriesLimit"]


def test_explain_tells_how_far_a_round_came(tmp_path: Path) -> None:
    broken = summary(source_type="none", scoring_endpoint="http://127.0.0.1:1/scoring")
    code, out, err = invoked(agent, NAME, "--explain", file_of(tmp_path, broken))
    assert code == 1
    assert "source      none: 0 series, 0 samples sent" in out
    assert "scoring     http://127.0.0.1:1/scoring: failed, Unreachable" in out
    assert err.startswith("Error: sample-scorer: scoring: Unreachable")


def test_explain_names_the_server_that_was_asked_in_the_place_of_the_scorers(
    tmp_path: Path,
) -> None:
    one = summary(source_endpoint="http://prometheus.example:9090/api/v1/query_range")
    code, out, _ = invoked(
        agent, NAME, "--explain", "--prometheus-url=http://127.0.0.1:1", file_of(tmp_path, one)
    )
    assert code == 1
    assert (
        "source      Prometheus http://127.0.0.1:1/api/v1/query_range: failed, Unreachable" in out
    )
    assert f"scoring     {one.scoring_endpoint}: not called" in out


def test_once_shows_failures_and_exits_with_1(tmp_path: Path) -> None:
    broken = summary(source_type="none", scoring_endpoint="http://127.0.0.1:1/scoring")
    code, out, err = invoked(agent, NAME, "--once", file_of(tmp_path, broken))

    assert code == 1
    (obj,) = yaml.safe_load_all(out)
    assert {c["type"]: c["status"] for c in obj["status"]["conditions"]}["Scored"] == "False"
    assert err.startswith("Error: sample-scorer: scoring: Unreachable: http://127.0.0.1:1/scoring")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "arguments", "code", "said"),
    [
        ("{not json", ["--once"], 1, "summaries.json: "),
        ("[]", [], 2, "--hub-kubeconfig"),
        ("[]", ["--hub-kubeconfig=gone"], 2, "gone"),
        (
            "[]",
            ["--once", "--cluster-name=a/../b"],
            2,
            "'a/../b' is not a valid name of a namespace",
        ),
    ],
)
def test_bad_input_is_one_line_and_no_trace(
    tmp_path: Path, text: str, arguments: list[str], code: int, said: str
) -> None:
    path = tmp_path / "summaries.json"
    path.write_text(text, encoding="utf-8")
    found, out, err = invoked(agent, NAME, *arguments, f"--summaries-file={path}")
    assert (found, out) == (code, "")
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err


async def test_without_a_cluster_one_line_says_how_to_name_one(tmp_path: Path) -> None:
    code, out, err = await ended("--once", home=tmp_path)
    assert (code, out) == (1, "")
    assert "--kubeconfig" in err.splitlines()[-1]
    assert "Traceback" not in err


def test_a_used_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        bind = f"127.0.0.1:{used.getsockname()[1]}"
        code, _, err = invoked(
            agent,
            NAME,
            f"--metrics-bind-address={bind}",
            hub_of(tmp_path),
            file_of(tmp_path),
            env={"HOME": str(tmp_path), "KUBECONFIG": None},
        )
    assert code == 1
    assert err.splitlines()[-1].startswith(f"Error: cannot listen on {bind}")
    assert "--bind-address" in err


async def test_the_agent_loads_no_web_framework_and_no_client_of_others() -> None:
    code = (
        "import sys, dsf.agent.cli, dsf.agent.run, dsf.agent.dry_run, dsf.kube.client.connect;"
        "foreign = {'fastapi', 'starlette', 'uvicorn', 'numpy', 'pulp', 'kubernetes', 'requests'};"
        "print(sorted(foreign & set(sys.modules)))"
    )
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await started.communicate()
    assert out == b"[]\n"


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_the_running_agent_is_small_and_ends_when_told(
    hub: EmbeddedHub, managed: EmbeddedHub, tmp_path: Path
) -> None:
    """Both API servers over HTTP, 5 scorers of 50 series of 60 points."""
    times = range(0, 3600, 60)
    metrics = [{"node": "n1", "namespace": "ns", "pod": f"p{n}"} for n in range(50)]
    series = [(metric, [[time, "1.5"] for time in times]) for metric in metrics]
    async with (
        serving(replying(matrix(*series))) as prometheus,
        serving(replying(scores(*((metric, 1.5) for metric in metrics)))) as scorer,
        api_server(hub, tmp_path / "hub") as hub_kubeconfig,
        api_server(managed, tmp_path / "managed") as kubeconfig,
    ):
        await managed.create(
            CONFIG_MAP,
            {
                "metadata": {"name": "dynamic-scoring-config", "namespace": AGENT_NAMESPACE},
                "data": {
                    "summaries": dump_summaries(
                        summary(
                            f"scorer{n}",
                            source_endpoint=f"{prometheus.url}/api/v1/query_range",
                            scoring_endpoint=scorer.url,
                            scoring_interval=1,
                        )
                        for n in range(5)
                    )
                },
            },
        )
        arguments = (
            f"--hub-kubeconfig={hub_kubeconfig}",
            f"--kubeconfig={kubeconfig}",
            "--metrics-bind-address=127.0.0.1:0",
        )
        for _ in range(2):  # The first process may have to compile what the image has compiled.
            scorer.calls.clear()
            async with process(*arguments, home=tmp_path) as running:

                async def scored() -> bool:
                    page = await hub.list(ADD_ON_PLACEMENT_SCORE, CLUSTER)
                    found = [len(obj.get("status", {}).get("scores", [])) for obj in page.items]
                    return found == [50] * 5 and len(scorer.calls) > 15

                await eventually(scored)
                size = resident(running.pid)
                running.terminate()
                _, err = await running.communicate()
    assert size < LIMIT, size / MIB
    assert running.returncode == 0
    assert b"Traceback" not in err


@asynccontextmanager
async def api_server(hub: EmbeddedHub, path: Path) -> AsyncIterator[Path]:
    """Serve a hub over HTTP and yield its kubeconfig."""
    async with api.serving(hub) as url:
        yield written(path, api.kubeconfig(url))


def written(path: Path, document: object) -> Path:
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")
