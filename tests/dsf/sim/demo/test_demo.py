"""The main job, as a user runs it: `dsf demo` finds both golden results and ends by itself."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CLUSTERS = ("worker01", "worker02")


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    command = [sys.executable, "-m", "dsf", "demo", "--json", "--port", "0"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    parsed: dict[str, Any] = json.loads(answer.stdout)
    return parsed


@pytest.mark.parametrize(
    ("preference", "objective", "profile"), [("performance", 115, "3g"), ("power", 170, "2g")]
)
def test_the_golden_results(
    result: dict[str, Any], preference: str, objective: float, profile: str
) -> None:
    answer = result[preference]
    assert answer["status"] == "Optimal"
    assert answer["objective_value"] == objective
    assert answer["policies"] == {
        cluster: f"policy-enable-mig-{profile}-{cluster}" for cluster in CLUSTERS
    }
    assert {place["cluster"] for place in answer["placements"]} == set(CLUSTERS)


def test_a_used_port_is_one_line_and_says_how_to_choose_another(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "dsf", "demo", "--port", str(port)]
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
    command = [sys.executable, "-m", "dsf", "demo", "--port", "0"]
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
