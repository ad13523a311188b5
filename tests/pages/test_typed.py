"""The commands of the documents that need only Python work, and print what the documents show.

`DSF_UPDATE_DOCS=1 make test ARGS=tests/pages` writes what they print into the documents.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.test_documents import shown

from .blocks import ALL, Block, blocks, commands
from .shell import Shell

UPDATE = "DSF_UPDATE_DOCS"
SLOW = {"simulate.md"}
"""Pages whose commands play a day."""
PAGES = [
    pytest.param(page, marks=pytest.mark.exhaustive if page.name in SLOW else ())
    for page in sorted({block.page for block in ALL if block.here})
]


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_the_commands_of_a_page_work(page: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"COLUMNS": "200"})
    typed = [block for block in blocks(page) if block.here]
    printed = {block: "".join(map(shell.run, commands(block.commands))) for block in typed}
    if os.environ.get(UPDATE):
        write(page, printed)
    else:
        assert list(differing(printed)) == []


def differing(printed: dict[Block, str]) -> Iterator[str]:
    """Yield the blocks after which the page shows something else than was printed."""
    for block, text in printed.items():
        if block.printed is not None and block.printed != text:
            yield f"{block.place} prints:\n{text}"


def write(page: Path, printed: dict[Block, str]) -> None:
    """Write what was printed into the page; the last block first, so that positions hold."""
    text = page.read_text(encoding="utf-8")
    for block in sorted(printed, key=lambda block: block.printed_span, reverse=True):
        if block.printed is not None:
            start, end = block.printed_span
            text = text[:start] + printed[block] + text[end:]
    page.write_text(text, encoding="utf-8")
