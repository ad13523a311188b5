"""The demo's components as processes: they end with the demo, or report why they ended before."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dsf.sim.demo.processes import (
    DemoError,
    DemoProcesses,
    free_port,
    running_processes,
    wait_until_healthy,
)

ENDLESS = 600.0

PARENT = """
import asyncio, sys
from pathlib import Path
from dsf.sim.demo.processes import free_port, running_processes, wait_until_healthy

async def main():
    port = free_port()
    async with running_processes(Path(sys.argv[1])) as running:
        scorer = await running.start("scorer", ["sample_scorers.static", "--port", str(port)])
        deadline = asyncio.get_running_loop().time() + 600
        await wait_until_healthy(scorer, f"http://127.0.0.1:{port}/healthz", deadline=deadline)
        print(port, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_component_ends_even_where_its_starter_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout
        port = int(starter.stdout.readline())
        with socket.create_connection(("127.0.0.1", port)) as open_connection:
            starter.kill()
            open_connection.settimeout(ENDLESS / 10)
            assert open_connection.recv(1) == b""


async def started(running: DemoProcesses, *arguments: str) -> int:
    """Start a scorer and return its port, once it answers."""
    port = free_port()
    scorer = await running.start("scorer", [*arguments, "--port", str(port)])
    deadline = asyncio.get_running_loop().time() + ENDLESS
    await wait_until_healthy(scorer, f"http://127.0.0.1:{port}/healthz", deadline=deadline)
    return port


async def test_components_are_stopped_at_the_end(tmp_path: Path) -> None:
    async with running_processes(tmp_path) as running:
        port = await started(running, "sample_scorers.static")
        running.check()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


async def test_a_component_that_died_is_named_with_its_last_words_and_log(tmp_path: Path) -> None:
    async with running_processes(tmp_path) as running:
        with pytest.raises(DemoError) as told:
            await started(running, "sample_scorers.static", "--scores=missing.yaml")
    assert str(told.value) == (
        "scorer exited with code 1: static-scorer: cannot read missing.yaml:"
        f" No such file or directory (log: {tmp_path}/scorer.log)"
    )


async def test_a_component_that_never_answers_is_given_up(tmp_path: Path) -> None:
    async with running_processes(tmp_path) as running:
        scorer = await running.start("scorer", ["sample_scorers.static", "--port", "0"])
        with pytest.raises(DemoError, match="scorer does not answer at http:"):
            await wait_until_healthy(scorer, "http://127.0.0.1:1/", deadline=0.0)


def test_free_ports_are_given_to_nobody_else() -> None:
    ports = [free_port() for _ in range(200)]
    assert len(set(ports)) == len(ports)
    with socket.create_server(("127.0.0.1", ports[0])):
        pass
