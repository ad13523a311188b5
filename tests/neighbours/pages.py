"""Types the commands of a how-to page, while the test does what others do meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.eventually import until
from tests.pages.blocks import blocks, commands
from tests.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.real_hub.guides.terminal import Terminal


def type_page(
    terminal: Terminal, name: str, shows: Mapping[str, str], after: Mapping[str, Callable[[], None]]
) -> None:
    """Type all commands of a page in their order.

    `shows`: by a part of a command, what it prints in the end; it is typed until then. `after`:
    what happens after a command. A command that fails, or is no longer on the page, fails the test.
    """
    seen = set[str]()
    for block in blocks(ROOT / "docs/how-to" / name):
        for command in commands(block.commands):
            keys = {key for key in (*shows, *after) if key in command}
            seen |= keys
            expected = [text for key, text in shows.items() if key in keys]

            def shown(command: str = command, expected: list[str] = expected) -> bool:
                ended = terminal.run(command)
                assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
                return all(text in ended.stdout for text in expected)

            until(f"{command} to show {expected}", shown, every=1.0)
            for act in (act for key, act in after.items() if key in keys):
                act()
    assert seen == {*shows, *after}
