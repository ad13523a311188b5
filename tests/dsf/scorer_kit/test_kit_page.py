"""Two pages of docs/how-to, the kit and the backtest: their commands work on a scorer."""

import json
import re
import shlex
from pathlib import Path

import pytest

from dsf.cli.root import root
from dsf.scorer_kit.cli.commands import scorer
from tests.command_line import invoked, invoked_meanwhile
from tests.dsf.scorer_kit.scorers import TestApi, config, served
from tests.repository import ROOT

PAGES = "".join(
    (ROOT / "docs/how-to" / page).read_text() for page in ("scorer-kit.md", "backtest.md")
)
NEW, *COMMANDS = dict.fromkeys(re.findall(r"```bash\n(dsf .*?)\n```", PAGES, re.DOTALL))
RECORDED = json.loads((ROOT / "dsf/scorer_kit/recordings/build-machine.json").read_text())[
    "queries"
][0]["query"]


def test_the_pages_show_each_command_of_the_kit() -> None:
    shown = {shlex.split(command)[2] for command in (NEW, *COMMANDS)}
    assert shown == set(scorer.commands) - {"openapi"}


def test_a_scorer_is_started_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoked(root, *shlex.split(NEW)[1:])[0] == 0
    assert (tmp_path / "my-scorer" / "score.py").is_file()


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_works(command: str) -> None:
    params = {"query": RECORDED, "range": 600, "step": 60}
    source = {"type": "Prometheus", "host": "http://prometheus:9090", "params": params}
    async with served({"api": TestApi(config=lambda base: config(base, source))}) as url:
        typed = command.replace("http://localhost:8000", f"{url}/api/config")
        code, out, err = await invoked_meanwhile(root, *shlex.split(typed)[1:])
    assert code == 0, err
    assert out
