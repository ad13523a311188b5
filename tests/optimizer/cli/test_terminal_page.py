"""What the page on the terminal shows is what the commands print.

Rewrite it with `python -m tests.optimizer.cli.test_terminal_page`.
"""

import asyncio
import re
import shlex
import tempfile
from pathlib import Path

import yaml

from dsf.cli.root import root
from dsf.kube.embedded.http.server import kubeconfig, serving
from tests.command_line import invoked_meanwhile
from tests.optimizer.follow.hub_health.test_checks import installed_hub
from tests.repository import ROOT

PAGE = ROOT / "docs/how-to/terminal.md"
SHOWN = re.compile(r"^```text\n\$ dsf ([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


async def printed(folder: Path) -> str:
    """Return the page with what the commands print against an installed hub."""
    text = PAGE.read_text(encoding="utf-8")
    async with serving(await installed_hub()) as url:
        config = folder / "hub.kubeconfig"
        config.write_text(yaml.safe_dump(kubeconfig(url)), encoding="utf-8")
        for found in SHOWN.finditer(text):
            command, *rest = shlex.split(found[1])
            _, out, _ = await invoked_meanwhile(root, command, f"--kubeconfig={config}", *rest)
            shown = out.replace(url, "https://hub01:6443").rstrip("\n")
            shown = re.sub(r"\b\d+s\b", lambda age: "5s".ljust(len(age[0])), shown)
            shown = re.sub(r"since \S+Z", "since 2026-11-20T12:00:00Z", shown)
            text = text.replace(found[0], f"```text\n$ dsf {found[1]}\n{shown}\n```")
    return text


async def test_the_page_shows_what_the_commands_print(tmp_path: Path) -> None:
    assert len(SHOWN.findall(PAGE.read_text(encoding="utf-8"))) == 3
    assert PAGE.read_text(encoding="utf-8") == await printed(tmp_path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(asyncio.run(printed(Path(folder))), encoding="utf-8")
