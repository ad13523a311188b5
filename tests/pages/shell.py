"""A shell in which the quick suite types the commands of a page."""

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from dsf.cli.root import root
from tests.command_line import invoked
from tests.repository import ROOT

from .blocks import BASH

LINKS = ("docs", "dsf", "charts", "sample_scorers")


class Shell:
    """Types commands in a folder of its own, from which the repository's files can be read.

    `dsf` runs in this process, because a process of its own costs a second of imports; anything
    else in bash. The folder and the exported variables stay from command to command.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        for name in LINKS:
            (folder / name).symlink_to(ROOT / name)
        self._folder = folder
        self._environment = {"HOME": str(folder), "PATH": os.environ["PATH"], **environment}

    def run(self, command: str) -> str:
        """Run a command and return what it prints; a failure fails the test."""
        words = shlex.split(command, comments=True)
        if Path(words[0]).name == "dsf":
            return self._dsf(words[1:])
        return self._bash(command)

    def _dsf(self, words: list[str]) -> str:
        before = Path.cwd()
        os.chdir(self._folder)
        try:
            code, out, err = invoked(root, *words, env=self._environment)
        finally:
            os.chdir(before)
        assert code == 0, f"dsf {shlex.join(words)}\n{out}{err}"
        return out

    def _bash(self, command: str) -> str:
        script = f"{command}\nprintf '\\0'; pwd; env -0"
        ended = subprocess.run(
            [BASH, "-euc", script],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
        printed, _, state = ended.stdout.partition("\0")
        folder, _, variables = state.partition("\n")
        self._folder = Path(folder)
        pairs = (variable.partition("=") for variable in variables.split("\0") if variable)
        self._environment = {name: value for name, _, value in pairs}
        return printed
