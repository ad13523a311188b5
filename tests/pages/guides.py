"""The commands of the quickstart and the development guide, in the order of their reader."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.repository import ROOT

from .blocks import Block, blocks, numbered_commands

TUTORIALS = ROOT / "docs" / "tutorials"
QUICKSTART = "quickstart.md"
GUIDE = "development-guide.md"
TO_THE_QUICKSTART = re.compile(r"^Follow the \[quickstart\]", re.MULTILINE)
"""Where the guide sends its reader to the quickstart, and back."""


@dataclass(frozen=True)
class Command:
    """A command of a page, from this line on."""

    page: str
    line: int
    text: str

    @property
    def place(self) -> str:
        """Where a person finds it."""
        return f"{self.page}:{self.line}"


def typed(page: str, texts: Mapping[str, str] | None = None) -> list[Command]:
    """Return what a reader of the page types; `texts` stands for what pages say, by their names."""
    return [
        Command(block.page.name, block.line + 1 + number, command)
        for block in typed_blocks(page, texts or {})
        for number, command in numbered_commands(block.commands)
    ]


def typed_blocks(page: str, texts: Mapping[str, str]) -> list[Block]:
    """Return the blocks that a reader of the page types."""
    path = TUTORIALS / page
    text = texts.get(page) or path.read_text(encoding="utf-8")
    own = blocks(path, text)
    if page != GUIDE:
        return own
    turn = TO_THE_QUICKSTART.search(text)
    assert turn, "the guide no longer says where to follow the quickstart"
    line = text.count("\n", 0, turn.start())
    return [
        *(block for block in own if block.line < line),
        *typed_blocks(QUICKSTART, texts),
        *(block for block in own if block.line > line),
    ]
