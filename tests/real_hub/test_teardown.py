"""No process outlives a run that ends, that is killed, or whose keeper is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.eventually import until
from tests.repository import ROOT

from .harness.processes import ProcessDied, Processes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .build import Assets

# A process whose child leaves its process group, as a solver or a shell's background job may.
STRAY = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)", sys.argv[1]],
                 start_new_session=True)
time.sleep(3600)
"""


def alive(mark: object) -> list[str]:
    """Command lines of running processes that mention something; zombies have none."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(mark) in words and int(entry.name) != os.getpid():
            found.append(words)
    return found


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path / "run")
    yield started
    started.close()


@contextmanager
def hub_command(directory: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """``python -m tests.real_hub``, with its files below a directory."""
    command = subprocess.Popen(
        [sys.executable, "-m", "tests.real_hub", *words],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(directory)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with command:
        yield command
        command.kill()


def state_of(directory: Path) -> dict[str, Any] | None:
    for path in directory.glob("dsf-hub-*/logs/state.json"):
        try:
            state: dict[str, Any] = json.loads(path.read_text())
        except ValueError:
            continue
        return state
    return None


def test_closing_ends_strays_too(processes: Processes, tmp_path: Path) -> None:
    processes.start("stray", [sys.executable, "-c", STRAY, tmp_path])
    until("the stray's child", lambda: len(alive(tmp_path)) == 3)
    processes.close()
    assert alive(tmp_path) == []


def test_a_killed_keeper_takes_its_processes_along(processes: Processes, tmp_path: Path) -> None:
    processes.start("sleeper", [sys.executable, "-c", "import time; time.sleep(3600)", tmp_path])
    os.kill(processes.keeper_pid, signal.SIGKILL)
    until("everything to be gone", lambda: not alive(tmp_path))
    with pytest.raises(ProcessDied, match="the keeper is gone"):
        processes.check()


def test_a_process_that_dies_is_reported_with_its_last_words(processes: Processes) -> None:
    processes.start("doomed", [sys.executable, "-c", "raise SystemExit('no more memory')"])
    until("its end", lambda: processes.exited() == {"doomed": 1})
    with pytest.raises(ProcessDied, match="doomed ended with code 1:\nno more memory"):
        processes.check("doomed")


def test_a_program_that_does_not_exist_is_named(processes: Processes) -> None:
    with pytest.raises(ProcessDied, match="/no/such/program: No such file or directory"):
        processes.start("ghost", ["/no/such/program"])


def test_a_process_stopped_on_purpose_is_no_death(processes: Processes) -> None:
    processes.start("sleeper", [sys.executable, "-c", "import time; time.sleep(3600)"])
    assert processes.stop("sleeper") == -signal.SIGTERM
    processes.check()


def test_a_killed_run_leaves_no_process_and_nothing_but_logs(
    hub_assets: Assets, tmp_path: Path
) -> None:
    with hub_command(tmp_path, "serve", "lonely") as run:
        until("the hub to be up", lambda: state_of(tmp_path) or run.poll())
        assert run.poll() is None, run.communicate()[0]
        assert any("kube-apiserver" in words for words in alive(tmp_path))
        run.kill()
    until("everything to be gone", lambda: not alive(tmp_path))
    [directory] = tmp_path.glob("dsf-hub-*")
    until("the files to be gone", lambda: [path.name for path in directory.iterdir()] == ["logs"])


def test_up_status_and_down(hub_assets: Assets, tmp_path: Path) -> None:
    def said(*words: str) -> tuple[int, str]:
        with hub_command(tmp_path, *words) as command:
            output, _ = command.communicate()
        return command.returncode, output

    assert said("status") == (1, "hub: none is running\n")
    code, output = said("up", "north")
    assert code == 0, output
    assert "north available=True" in output
    assert said("up")[0] == 1
    assert said("status") == (0, output)
    assert said("down") == (0, "hub: stopped\n")
    assert said("down") == (0, "hub: none is running\n")
    assert alive(tmp_path) == []
    assert list(tmp_path.glob("dsf-hub-*")) == []
