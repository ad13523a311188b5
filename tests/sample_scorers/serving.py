"""Starts the scorers' programs, and runs the commands of their READMEs."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.repository import ROOT

SCORERS = ROOT / "sample_scorers"


@contextmanager
def started(
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    warning: str = "",
) -> Iterator[str]:
    """Start a scorer's program, yield its URL, and stop it as Ctrl+C does.

    It may write `warning` to standard error, again and again, and nothing else.
    """
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
        assert set(process.stderr.read().splitlines()) <= {warning}


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
