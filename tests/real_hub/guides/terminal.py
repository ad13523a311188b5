"""A shell that types the commands of a page."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.pages.blocks import BASH
from tests.repository import ROOT

from . import stand_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Terminal:
    """A shell in a folder that shows the repository; variables stay from command to command.

    What commands write there does not reach the repository.
    """

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        programs = directory / "programs"
        programs.mkdir(parents=True)
        for name in stand_in.PROGRAMS:
            words = shlex.join([sys.executable, "-I", stand_in.__file__, name])
            (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            (programs / name).chmod(0o755)
        self._folder = directory / "repository"
        self._folder.mkdir()
        for entry in (*ROOT.glob("[!.]*"), *(ROOT / name for name in (".venv", ".build", ".ci"))):
            (self._folder / entry.name).symlink_to(entry)
        # An answer that is an error fails the command.
        (directory / ".curlrc").write_text("fail-with-body\n")
        self._state = directory / "state.sh"
        self._state.touch()
        self.environment = {
            **environment,
            "PATH": f"{programs}:{ROOT}/.venv/bin:{environment['PATH']}",
        }

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; a question is answered with yes."""
        script = f"set -a -e -o pipefail\n. {self._state}\n{command}\nexport -p > {self._state}\n"
        return subprocess.run(
            [BASH, "-c", script],
            cwd=self._folder,
            env=self.environment,
            input="y\n",
            capture_output=True,
            text=True,
            check=False,
        )
