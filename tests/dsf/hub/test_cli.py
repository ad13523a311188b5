"""`dsf controller`: a user's mistake gives one line of output."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dsf.hub.cli import controller


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    document = {
        "current-context": "hub",
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "me"}}],
        "clusters": [{"name": "hub", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "me", "user": {}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


FOREIGN = (
    *("fastapi", "starlette", "uvicorn", "jsonschema", "numpy", "pulp", "rich", "websockets"),
    *("optimizer", "dsf.agent", "dsf.kube.embedded", "dsf.sim", "kubernetes.aio.client.api"),
)
"""What others of the product import, and the controller must not."""
MOST_MODULES = 1000
"""The official client's models would be as many again."""


def test_a_start_imports_only_what_the_controller_uses_and_looks_for_no_garbage(
    kubeconfig: Path,
) -> None:
    """It is told to stop when it connects to the API server."""
    program = (
        "import atexit, gc, json, sys\n"
        "def tell():\n"
        "    collections = sum(each['collections'] for each in gc.get_stats())\n"
        "    print(json.dumps([collections, sorted(sys.modules)]))\n"
        "atexit.register(tell)\n"
        "sys.argv = ['dsf', 'controller', '--metrics-bind-address=127.0.0.1:0']\n"
        "from dsf.cli import main\n"
        "main()\n"
    )
    with socket.socket() as hub:
        hub.bind(("127.0.0.1", 0))
        hub.listen()
        text = kubeconfig.read_text().replace(":1\n", f":{hub.getsockname()[1]}\n")
        kubeconfig.write_text(text)
        with subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            stdout=subprocess.PIPE,
            text=True,
        ) as started:
            connection, _ = hub.accept()
            connection.close()
            started.terminate()
            printed, _ = started.communicate()
    collections, modules = json.loads(printed)
    foreign = tuple(f"{name}." for name in FOREIGN)
    assert [name for name in modules if f"{name}.".startswith(foreign)] == []
    assert len(modules) < MOST_MODULES
    # Those before the command is known: the interpreter's own start, and click.
    assert collections < 60


def test_no_kubeconfig() -> None:
    result = CliRunner().invoke(controller, [], env={"KUBECONFIG": "/nonexistent/kubeconfig"})
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "/nonexistent/kubeconfig" in line


def test_an_unknown_context(kubeconfig: Path) -> None:
    result = CliRunner().invoke(controller, ["--kubeconfig", str(kubeconfig), "--context", "x"])
    assert result.exit_code == 1
    assert "x" in result.stderr.splitlines()[-1]


def test_a_used_port_is_named_with_the_flag_for_another(kubeconfig: Path) -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        address = f"127.0.0.1:{used.getsockname()[1]}"
        result = CliRunner().invoke(
            controller, ["--kubeconfig", str(kubeconfig), "--metrics-bind-address", address]
        )
    assert result.exit_code == 1
    line = result.stderr.splitlines()[-1]
    assert address in line
    assert "--bind-address" in line


def test_a_resync_that_would_flood_the_apis() -> None:
    result = CliRunner().invoke(controller, ["--resync-seconds", "0"])
    assert result.exit_code == 2
    assert "--resync-seconds" in result.stderr


@pytest.mark.parametrize(
    ("flag", "value", "told"),
    [
        ("--scorer-denied-cidrs", "10.0.0.0/8,10.0.0.1/8", "10.0.0.1/8"),
        ("--scorer-allowed-cidrs", "example", "example"),
        ("--scorer-certificate-authority", "/nonexistent/ca.crt", "/nonexistent/ca.crt"),
        ("--scorer-timeout-seconds", "0", "0"),
    ],
)
def test_rules_for_scoring_apis_that_cannot_be_read(flag: str, value: str, told: str) -> None:
    result = CliRunner().invoke(controller, [flag, value])
    assert result.exit_code == 2
    assert flag in result.stderr
    assert told in result.stderr


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--leader-elect-lease-duration=15"], "15s"),
        (["--leader-elect-lease-duration", "-1s"], "1m30s"),
        (["--leader-elect-renew-deadline=20s"], "has to be longer"),
        (["--leader-elect", "--leader-elect-retry-period=9s"], "has to be longer"),
    ],
)
def test_times_of_leader_election_that_would_let_two_lead(flags: list[str], told: str) -> None:
    result = CliRunner().invoke(controller, flags)
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.parametrize("flag", ["--namespace", "--agent-namespace"])
@pytest.mark.parametrize("name", ["", "Upper", "a.b", "a/b", "-a", "x" * 64, "a b"])
def test_what_cannot_be_a_namespace_is_refused_at_the_start(flag: str, name: str) -> None:
    result = CliRunner().invoke(controller, [flag, name])
    assert result.exit_code == 2
    line = result.stderr.splitlines()[-1]
    assert flag in line
    assert repr(name) in line


@pytest.mark.parametrize("flag", ["--unhealthy-threshold", "--healthy-threshold"])
def test_a_threshold_that_no_api_could_meet(flag: str) -> None:
    result = CliRunner().invoke(controller, [flag, "0"])
    assert result.exit_code == 2
    assert flag in result.stderr
