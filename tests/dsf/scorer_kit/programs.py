"""Starts a scorer as its README says."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def started(command: str, folder: Path, **env: str) -> Iterator[str]:
    """Start a service, yield its URL, and stop it as a kubelet does."""
    python = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with subprocess.Popen(
        shlex.split(command),
        cwd=folder,
        env={**os.environ, "PATH": python, "PORT": "0", **env},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().split(" listens on ")[1].strip()
        finally:
            os.killpg(process.pid, signal.SIGTERM)
