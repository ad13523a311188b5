"""`dsf agent` as a process."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from dsf.api.summary import ScorerSummary, dump_summaries
from tests.agent.builders import summary
from tests.agent.servers import eventually, matrix, replying, scores, serving

MIB = 1 << 20
LIMIT = 80 * MIB
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
        "--cluster-name=cluster1",
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
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return f"--hub-kubeconfig={path}"


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


async def test_once_shows_failures_and_exits_with_1(tmp_path: Path) -> None:
    broken = summary(source_type="none", scoring_endpoint="http://127.0.0.1:1/scoring")
    code, out, err = await ended("--once", file_of(tmp_path, broken), home=tmp_path)

    assert code == 1
    (obj,) = yaml.safe_load_all(out)
    assert {c["type"]: c["status"] for c in obj["status"]["conditions"]}["Scored"] == "False"
    assert err.startswith("Error: sample-scorer: scoring: Unreachable: http://127.0.0.1:1/scoring")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "arguments", "code", "said"),
    [
        ("{not json", ["--once"], 1, "InvalidSummaries"),
        ("[]", [], 2, "--hub-kubeconfig"),
        ("[]", ["--hub-kubeconfig=gone"], 2, "gone"),
        (None, ["--once"], 1, "--kubeconfig"),
    ],
)
async def test_bad_input_is_one_line_and_no_trace(
    tmp_path: Path, text: str | None, arguments: list[str], code: int, said: str
) -> None:
    if text is not None:
        path = tmp_path / "summaries.json"
        path.write_text(text, encoding="utf-8")
        arguments = [*arguments, f"--summaries-file={path}"]
    found, out, err = await ended(*arguments, home=tmp_path)
    assert (found, out) == (code, "")
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err


async def test_a_used_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        bind = f"127.0.0.1:{used.getsockname()[1]}"
        code, _, err = await ended(
            f"--metrics-bind-address={bind}", hub_of(tmp_path), file_of(tmp_path), home=tmp_path
        )
    assert code == 1
    assert err.splitlines()[-1].startswith(f"Error: cannot listen on {bind}")
    assert "--bind-address" in err


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_the_running_agent_is_small_and_ends_when_told(tmp_path: Path) -> None:
    series = [
        ({**SERIES[0], "pod": f"p{n}"}, [[60 * i, "1.5"] for i in range(60)]) for n in range(50)
    ]
    async with (
        serving(replying(matrix(*series))) as prometheus,
        serving(replying(scores(*((metric, 1.5) for metric, _ in series)))) as scorer,
    ):
        summaries = [
            summary(
                f"scorer{n}",
                source_endpoint=f"{prometheus.url}/api/v1/query_range",
                scoring_endpoint=scorer.url,
                scoring_interval=1,
            )
            for n in range(5)
        ]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            bind = f"127.0.0.1:{free.getsockname()[1]}"
        arguments = (f"--metrics-bind-address={bind}", hub_of(tmp_path))
        async with (
            process(*arguments, file_of(tmp_path, *summaries), home=tmp_path) as running,
            httpx.AsyncClient(trust_env=False) as client,
        ):

            async def scored() -> bool:
                try:
                    text = (await client.get(f"http://{bind}/metrics")).text
                except httpx.ConnectError:
                    return False
                return text.count("dynamic_score{") == 250 and len(scorer.calls) > 15

            await eventually(scored)
            assert resident(running.pid) < LIMIT
            running.terminate()
            _, err = await running.communicate()
    assert running.returncode == 0
    assert b"Traceback" not in err


def resident(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmRSS")
