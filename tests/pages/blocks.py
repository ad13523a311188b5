"""The blocks of commands in the documents, and what types each of them.

The quick suite types a block in a folder of its own. One that names kubectl, helm, the port of the
optimizer or an agent is typed on a real hub. What differs is written into the page:

- `<!-- typed by tests/PATH.py -->` where another test types it, and `<!-- not run: REASON -->`
  where none does: in front of a block, or above the first section for all blocks of the page.
- A block is not run if it has a program that the page's paragraph "**Not run in our tests**:
  `program`, ..." names.

A block of `text` right after the commands is what they print.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.house.test_commands import called
from tests.house.test_documents import DOCUMENTS

BASH = shutil.which("bash") or "bash"
ON_A_HUB = re.compile(r"\b(?:kubectl|helm|dsf agent)\b|:8338\b")
TARGETS = re.compile(r"(?:make |(?:\.venv/bin/)?python -m benchmarks\.)")
"""Commands that are a suite or a benchmark: only their names are checked."""
BLOCK = re.compile(
    r"(?:^ *<!-- (?P<mark>(?:typed by|not run:) [^>]+?) -->\n)?"
    r"^(?P<indent> *)```(?:bash|sh|console)\n(?P<commands>.*?)^ *```\n"
    r"(?:\n```text\n(?P<printed>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
OF_THE_PAGE = re.compile(r"^<!-- ((?:typed by|not run:) [^>]+?) -->\n(?! *```)", re.MULTILINE)
NOT_RUN = re.compile(r"\*\*Not run in our tests\*\*: (.*?)(?:\n\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Commands of a page; `mark` says what types them, unless a suite of ours does by itself."""

    page: Path
    line: int
    commands: str
    mark: str
    printed: str | None
    printed_span: tuple[int, int]

    @property
    def place(self) -> str:
        """Where a person finds it."""
        return f"{self.page.name}:{self.line}"

    @property
    def typed_by(self) -> str:
        """The path of the test that types it, or nothing."""
        return self.mark.removeprefix("typed by ") if self.mark.startswith("typed by ") else ""

    @property
    def not_run(self) -> str:
        """Why no test types it, or nothing."""
        return self.mark.removeprefix("not run: ") if self.mark.startswith("not run: ") else ""

    @property
    def on_a_hub(self) -> bool:
        """Whether tests/real_hub/guides types it."""
        return not self.mark and bool(ON_A_HUB.search(self.commands))

    @property
    def here(self) -> bool:
        """Whether the quick suite types it."""
        return not self.mark and not self.on_a_hub


def blocks(page: Path, text: str | None = None) -> list[Block]:
    """Return the blocks of a page, in their order; `text` stands for what the page says."""
    text = page.read_text(encoding="utf-8") if text is None else text
    of_page = OF_THE_PAGE.search(text.partition("\n## ")[0])
    default = of_page[1] if of_page else ""
    not_run = {name for said in NOT_RUN.findall(text) for name in re.findall(r"`(\w+)`", said)}
    return [
        Block(
            page,
            text.count("\n", 0, found.start("commands")),
            typed := _dedented(found["commands"], len(found["indent"])),
            found["mark"] or _suite_or_missing(typed, not_run) or default,
            found["printed"],
            found.span("printed"),
        )
        for found in BLOCK.finditer(text)
    ]


def _suite_or_missing(typed: str, not_run: set[str]) -> str:
    if all(TARGETS.match(line) for line in typed.splitlines()):
        return "not run: a suite or a benchmark"
    missing = {words[0] for words in called(typed) if words} & not_run
    return f"not run: needs {', '.join(sorted(missing))}" if missing else ""


def _dedented(commands: str, indent: int) -> str:
    return "".join(line[indent:] or "\n" for line in commands.splitlines(keepends=True))


ALL = [block for page in DOCUMENTS for block in blocks(page)]
"""The blocks of all documents."""


def commands(text: str) -> Iterator[str]:
    """Yield the commands of a block, in their order, without comments of their own."""
    yield from (command for _, command in numbered_commands(text))


def numbered_commands(text: str) -> Iterator[tuple[int, str]]:
    """Yield the commands of a block, each with the number of its first line, from 0."""
    command, first = "", 0
    for number, line in enumerate(text.splitlines(keepends=True)):
        if not command:
            first = number
            if line.startswith("#"):
                continue
        command += line
        if not line.endswith("\\\n") and is_complete(command):
            if command.strip():
                yield first, command.strip()
            command = ""
    assert not command, f"not a whole command: {command}"


@cache
def is_complete(command: str) -> bool:
    """Return whether a shell would run the command, and not wait for more lines."""
    checked = subprocess.run(
        [BASH, "-n"], input=command, text=True, capture_output=True, check=False
    )
    return checked.returncode == 0 and not checked.stderr
