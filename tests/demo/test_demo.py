"""The main job, as a user runs it: `dsf demo` finds both golden results and ends by itself."""

import json
import socket
import subprocess
import sys
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


def test_a_used_port_is_one_line_and_says_how_to_choose_another() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "dsf", "demo", "--port", str(port)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr.splitlines() == [
        f"Error: port {port} is in use on 127.0.0.1; choose another by --port PORT"
    ]
