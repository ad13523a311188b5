"""Types commands into bash, where functions stand for the programs that reach something."""

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.pages.blocks import BASH
from tests.pages.guides import Command
from tests.pages.shell import LINKS
from tests.repository import ROOT

STAND_INS = Path(__file__).with_name("stand_ins.sh")


@dataclass(frozen=True)
class Call:
    """A program that a command called, after bash has expanded its words."""

    place: str
    stdin: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Typed:
    """The calls of the commands, and why bash stopped, if it did: the place and what it said."""

    calls: list[Call]
    stopped: tuple[str, str] | None


def typed_dry(commands: Iterable[Command], folder: Path) -> Typed:
    """Type the commands in a folder that shows the repository; nothing of them is run."""
    for name in (*LINKS, "Makefile"):
        (folder / name).symlink_to(ROOT / name)
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    lines = [f". {STAND_INS}", *(f"place={item.place}\n{item.text}" for item in commands)]
    calls, failed = folder / "calls", folder / "failed"
    calls.touch()
    ended = subprocess.run(
        [BASH, "-c", "\n".join(lines)],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "CALLS": str(calls),
            "FAILED": str(failed),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    last = (ended.stderr.strip() or f"exit code {ended.returncode}").splitlines()[-1]
    said = re.sub(r"^\S*bash: line \d+: ", "", last)
    stopped = (failed.read_text(), said) if failed.exists() else None
    return Typed(_calls(calls.read_text(encoding="utf-8")), stopped)


def _calls(text: str) -> list[Call]:
    fields = iter(text.split("\0")[:-1])
    return [
        Call(place, next(fields), tuple(next(fields) for _ in range(int(next(fields)))))
        for place in fields
    ]
