"""The parent process of all processes of a hub: none of them outlives the run.

It reads one JSON command per line from standard input and responds to each with one line of JSON:
``{"do": "start", "name", "argv", "env", "log"}`` -> ``{"pid"}``; ``{"do": "stop", "name",
"grace"}`` -> ``{"code"}``; ``{"do": "poll"}`` -> ``{"exited": {name: code}}``. When its input
ends, because the owner closed it or was killed, it kills all that it started. It then deletes the
directory on its command line, except ``logs/``, and exits. If the keeper itself is killed, the
kernel kills its children (PR_SET_PDEATHSIG).

Standard library only: it runs as a script, isolated, and has to start fast.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Run in a child before it executes its program: it is killed when the keeper ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Keeper:
    """Starts and stops processes, each the leader of its own process group."""

    def __init__(self) -> None:
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, argv: list[str], env: dict[str, str], log: str) -> dict[str, Any]:
        """Start a process; its output goes to the end of a file."""
        old = self.children.get(name)
        if old and old.poll() is None:
            return {"error": f"{name} runs already"}
        with Path(log).open("ab") as output:
            try:
                self.children[name] = subprocess.Popen(
                    argv,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=die_with_parent,  # noqa: PLW1509 - there is one thread
                )
            except OSError as error:
                return {"error": f"{argv[0]}: {error.strerror}"}
        return {"pid": self.children[name].pid}

    def stop(self, name: str, sign: int, grace: float) -> dict[str, Any]:
        """Signal a process group, and kill it when the grace (seconds) is over."""
        child = self.children.pop(name, None)
        if child is None:
            return {"error": f"{name} was not started"}
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace)
        kill_group(child.pid)
        return {"code": child.wait()}

    def poll(self) -> dict[str, Any]:
        """Exit codes of processes that ended without being stopped."""
        codes = {name: child.poll() for name, child in self.children.items()}
        return {"exited": {name: code for name, code in codes.items() if code is not None}}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Execute one command."""
        action = command.pop("do")
        if action == "start":
            return self.start(**command)
        if action == "stop":
            return self.stop(**command)
        return self.poll()

    def kill_all(self) -> None:
        """Kill every process group, then the processes that left their group and were adopted."""
        for child in self.children.values():
            kill_group(child.pid)
        while orphans := children_of_this_process():
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(-1, 0)


def kill_group(pid: int) -> None:
    """Kill a process group that may be gone already."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def children_of_this_process() -> list[int]:
    """Direct children, adopted ones included, zombies too (see proc(5))."""
    pid = os.getpid()
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def clean(directory: Path) -> None:
    """Delete the files of a hub in its directory, except its logs."""
    for path in directory.iterdir():
        if path.name == "logs":
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def main() -> None:
    """Serve commands until the input or a signal ends the process."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A plain exit() runs the finally clause below, which a default SIGTERM would not.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    directory = Path(sys.argv[1])
    keeper = Keeper()
    try:
        for line in sys.stdin:
            sys.stdout.write(json.dumps(keeper.answer(json.loads(line))) + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        pass
    finally:
        keeper.kill_all()
        clean(directory)


if __name__ == "__main__":
    main()
