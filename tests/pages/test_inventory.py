"""Every block of commands in the documents is typed by a test, or says that it is not and why."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.house.test_commands import NOT_HERE, called
from tests.repository import ROOT

from .blocks import ALL, NOT_RUN, Block, blocks

ELSEWHERE = re.compile(r"https://(?!localhost:)|oci://")


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.place)
def test_a_block_is_typed_or_marked(block: Block) -> None:
    if block.typed_by:
        test = ROOT / block.typed_by
        assert test.is_file(), block.mark
        named = re.findall(r"[\w*-]+\.md", test.read_text())
        reads = any(fnmatch(block.page.name, name) for name in named)
        assert reads, f"{block.typed_by} does not read this page"
    elif block.not_run:
        assert block.not_run == "a suite or a benchmark" or NOT_RUN.search(
            block.page.read_text()
        ), "say so on the page: **Not run in our tests**: what, and why"
    else:
        programs = {words[0] for words in called(block.commands) if words}
        unknown = [*(programs & NOT_HERE), *ELSEWHERE.findall(block.commands)]
        assert unknown == [], "mark it as tests/pages/blocks.py says"


def test_a_mark_holds_for_its_block_before_that_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n<!-- typed by tests/a.py -->\n\nText.\n\n```bash\ndsf a\n```\n\n"
        "<!-- not run: it needs more -->\n```bash\ndsf b\n```\n\n## More\n\n"
        "**Not run in our tests**: `podman`.\n\n- item\n\n  ```sh\n  podman c\n  ```\n\n"
        "```bash\nmake d\n```\n"
    )
    assert [(block.typed_by, block.not_run) for block in blocks(page)] == [
        ("tests/a.py", ""),
        ("", "it needs more"),
        ("", "needs podman"),
        ("", "a suite or a benchmark"),
    ]
