"""docs/scorer-kit.md: its commands work on a scorer of its query."""

import json
import re
import shlex

import pytest

from dsf.cli.root import root
from tests.command_line import invoked_meanwhile
from tests.dsf.scorer_kit.scorers import TestApi, config, served
from tests.repository import ROOT

PAGE = (ROOT / "docs" / "scorer-kit.md").read_text()
COMMANDS = re.findall(r"```bash\n(dsf .*?)\n```", PAGE, re.DOTALL)
RECORDED = json.loads((ROOT / "dsf/sim/recording.json").read_text())["queries"][0]["query"]


def test_the_page_shows_each_command_for_a_running_scorer() -> None:
    assert [shlex.split(command)[2] for command in COMMANDS] == ["check", "try", "register"]


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_works(command: str) -> None:
    params = {"query": RECORDED, "range": 600, "step": 60}
    source = {"type": "Prometheus", "host": "http://prometheus:9090", "params": params}
    async with served({"api": TestApi(config=lambda base: config(base, source))}) as url:
        typed = command.replace("http://localhost:8000", f"{url}/api/config")
        code, out, err = await invoked_meanwhile(root, *shlex.split(typed)[1:])
    assert code == 0, err
    assert out
