"""Start and stop the processes of a hub through its keeper."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

from . import keeper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class ProcessDied(Exception):
    """A process of the hub ended without being stopped; the message has the end of its log."""


class Processes:
    """All processes of one hub. They end when this is closed or its process ends."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.logs = directory / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.temporary = directory / "tmp"
        self.temporary.mkdir()
        self._lock = threading.Lock()
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C reaches the test run only, which then closes this in order.
            start_new_session=True,
        )

    @property
    def keeper_pid(self) -> int:
        """Process id of the keeper, the parent of all others."""
        return self._keeper.pid

    def start(
        self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> int:
        """Start a process under a unique name and return its process id.

        It sees PATH, HOME and a private TMPDIR besides ``env``, nothing else of this process's
        environment. Its output is in ``log(name)``. Raises ProcessDied when it cannot start.
        """
        answer = self._ask(
            do="start",
            name=name,
            argv=[str(part) for part in argv],
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": str(self.temporary),
                "TMPDIR": str(self.temporary),
                **(env or {}),
            },
            log=str(self.log(name)),
        )
        return int(answer["pid"])

    def stop(self, name: str, *, sign: int = signal.SIGTERM, grace: float = 10.0) -> int:
        """Stop a process and its children; return its exit code, negative for a signal."""
        return int(self._ask(do="stop", name=name, sign=int(sign), grace=grace)["code"])

    def kill(self, name: str) -> int:
        """Kill a process at once, as ``kill -9`` does."""
        return self.stop(name, sign=signal.SIGKILL)

    def exited(self) -> dict[str, int]:
        """Exit codes of processes that ended without being stopped."""
        codes = self._ask(do="poll")["exited"]
        return {str(name): int(code) for name, code in codes.items()}

    def check(self, *names: str) -> None:
        """Raise ProcessDied if one of the named processes (default: any) has ended."""
        for name, code in self.exited().items():
            if not names or name in names:
                raise ProcessDied(f"{name} ended with code {code}:\n{self.tail(name)}")

    def log(self, name: str) -> Path:
        """File with the output of a process."""
        return self.logs / f"{name}.log"

    def tail(self, name: str, lines: int = 20) -> str:
        """The last lines of a process's output."""
        if not self.log(name).exists():
            return "(no output)"
        return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-lines:])

    def close(self) -> None:
        """End every process and delete everything but the logs."""
        if self._keeper.stdin and not self._keeper.stdin.closed:
            # Closing flushes; a keeper that was killed reads no more.
            with contextlib.suppress(BrokenPipeError):
                self._keeper.stdin.close()
        self._keeper.wait()
        if self._keeper.stdout:
            self._keeper.stdout.close()

    def _ask(self, **command: Any) -> dict[str, Any]:
        if self._keeper.stdin is None or self._keeper.stdout is None:
            raise ProcessDied("the keeper has no pipes")
        line = ""
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._keeper.stdin.write(json.dumps(command) + "\n")
            self._keeper.stdin.flush()
            line = self._keeper.stdout.readline()
        if not line:
            raise ProcessDied("the keeper is gone, and with it every process of the hub")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProcessDied(f"cannot {command['do']} {command['name']}: {answer['error']}")
        return answer
