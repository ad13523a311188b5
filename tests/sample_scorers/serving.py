"""Serves applications on loopback, and starts the scorers' programs."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI

from tests.repository import ROOT

SCORERS = ROOT / "sample_scorers"


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Serve `app` in a thread and yield its base URL."""
    # With the protocol named, asyncio sets TCP_NODELAY; without, each answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def client(app: FastAPI) -> Iterator[httpx.Client]:
    """Serve `app` and yield a client for it."""
    with served(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=120) as http:
        yield http


@contextmanager
def started(
    command: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> Iterator[str]:
    """Start a scorer's program, yield its URL, and stop it as Ctrl+C does."""
    with subprocess.Popen(
        command,
        env=environment(**(env or {})),
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        assert process.stdout
        assert process.stderr
        try:
            line = process.stdout.readline()
            assert " listens on http://" in line, process.stderr.read()
            yield line.split(" listens on ")[1].split()[0]
        finally:
            process.send_signal(2)
            process.wait()
        assert process.returncode == 0
        assert process.stderr.read() == ""


def run(*command: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the READMEs or a scorer's program to its end."""
    return subprocess.run(
        command,
        env=environment(**env),
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


def environment(**more: str) -> dict[str, str]:
    """Return the test's environment, where `python` is the one that runs the tests."""
    settings = {"PROMETHEUS_URL", "VLLM_ENDPOINT", "MODEL_NAME"}
    kept = {key: value for key, value in os.environ.items() if key not in settings}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**kept, "PATH": path, **more}
