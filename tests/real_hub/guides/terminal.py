"""Reads the commands of a page, and types them into one shell."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.repository import ROOT

from . import stand_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

BASH = shutil.which("bash") or "bash"
BLOCKS = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(page: str) -> Iterator[str]:
    """Yield the commands of the fenced blocks of a page, in their order."""
    for block in BLOCKS.findall(page):
        command = ""
        for line in block.splitlines(keepends=True):
            command += line
            if not line.endswith("\\\n") and is_complete(command):
                yield command.strip()
                command = ""
        assert not command, f"not a whole command: {command}"


def is_complete(command: str) -> bool:
    """Whether a shell would run the command, and not wait for more lines."""
    checked = subprocess.run(
        [BASH, "-n"], input=command, text=True, capture_output=True, check=False
    )
    return checked.returncode == 0


class Terminal:
    """A shell at the root of the repository; variables stay from command to command."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        programs = directory / "programs"
        programs.mkdir(parents=True)
        for name in stand_in.PROGRAMS:
            words = shlex.join([sys.executable, "-I", stand_in.__file__, name])
            (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            (programs / name).chmod(0o755)
        self._state = directory / "state.sh"
        self._state.touch()
        self._environment = {**environment, "PATH": f"{programs}:{environment['PATH']}"}

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        script = f"set -a -e -o pipefail\n. {self._state}\n{command}\nexport -p > {self._state}\n"
        return subprocess.run(
            [BASH, "-c", script],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
