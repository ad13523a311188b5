"""The demo's components, each in a process of its own with a log file."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

STOP_SECONDS = 5.0
"""Seconds for a graceful stop after SIGTERM; then SIGKILL follows."""

POLL_SECONDS = 0.1
"""Seconds between two requests to a component that does not answer yet."""

LOG_TAIL_LINES = 5
"""Lines of a component's log that an error quotes."""


class DemoError(Exception):
    """A step of the demo failed; the message is for the user."""


@dataclass(frozen=True, slots=True)
class DemoProcess:
    """A component's process and its log file."""

    name: str
    process: asyncio.subprocess.Process
    log: Path

    def check(self) -> None:
        """Raise DemoError if the process has exited."""
        if self.process.returncode is not None:
            raise DemoError(
                f"{self.name} exited with code {self.process.returncode}:"
                f" {_tail(self.log)} (log: {self.log})"
            )


class DemoProcesses:
    """Starts components as processes, and stops them all."""

    def __init__(self, log_dir: Path) -> None:
        self._log_dir = log_dir
        self._running: list[DemoProcess] = []

    async def start(self, name: str, arguments: Sequence[str]) -> DemoProcess:
        """Start `python -m ARGUMENTS` with a log file for its output.

        The process exits with this one, even if this one is killed: see `exit_with_parent`.
        """
        log = self._log_dir / f"{name}.log"
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "dsf.sim.demo.exit_with_parent",
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        component = DemoProcess(name, process, log)
        self._running.append(component)
        return component

    def check(self) -> None:
        """Raise DemoError if any component has exited."""
        for component in self._running:
            component.check()

    async def stop(self) -> None:
        """Stop all components: SIGTERM first, SIGKILL after STOP_SECONDS."""
        await _stop(self._running)

    async def stop_one(self, name: str) -> None:
        """Stop the component with a name; its name is free for another one."""
        stopping = [component for component in self._running if component.name == name]
        self._running = [component for component in self._running if component.name != name]
        await _stop(stopping)


async def _stop(components: Sequence[DemoProcess]) -> None:
    for component in components:
        _signal(component.process, signal.SIGTERM)
    done = asyncio.gather(*(component.process.wait() for component in components))
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(done), STOP_SECONDS)
    finally:  # a second Ctrl-C cancels the wait, but not this
        for component in components:
            _signal(component.process, signal.SIGKILL)
    await done


@asynccontextmanager
async def running_processes(log_dir: Path) -> AsyncIterator[DemoProcesses]:
    """Yield DemoProcesses without any component; stop all that were started, at the end."""
    starter = DemoProcesses(log_dir)
    try:
        yield starter
    finally:
        await starter.stop()


async def wait_until_healthy(component: DemoProcess, url: str, *, deadline: float) -> None:
    """Wait until a component answers 200 at `url`.

    `deadline` is a time of the event loop's clock. Raises DemoError at the deadline, or when the
    component exits.
    """
    loop = asyncio.get_running_loop()
    async with httpx.AsyncClient(trust_env=False, timeout=2.0) as client:
        while loop.time() < deadline:
            component.check()
            with contextlib.suppress(httpx.HTTPError):
                if (await client.get(url)).status_code == httpx.codes.OK:
                    return
            await asyncio.sleep(POLL_SECONDS)
    raise DemoError(f"{component.name} does not answer at {url} (log: {component.log})")


def free_port() -> int:
    """Return a free loopback port, which the system assigns to no other program for a minute."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address):
            # Closing the accepted end first leaves the port in TIME_WAIT: a program that names the
            # port can listen on it, but the system does not pick it as a free one.
            listener.accept()[0].close()
        return int(address[1])


def require_free(port: int, flag: str) -> None:
    """Raise DemoError if a port is in use; the message names the flag that chooses another."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise DemoError(
                f"port {port} is in use on 127.0.0.1; choose another with {flag} PORT"
            ) from error


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return " | ".join(lines[-LOG_TAIL_LINES:]) or "it printed nothing"
