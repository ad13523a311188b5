"""docs/tutorials/your-own-scorer.md, typed in an empty directory."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from dsf.cli.root import root
from tests.command_line import invoked
from tests.dsf.scorer_kit.programs import started
from tests.repository import ROOT
from tests.sample_scorers.serving import run

PAGE = (ROOT / "docs/tutorials/your-own-scorer.md").read_text()
URL = "http://127.0.0.1:8000"


def blocks(number: int) -> list[str]:
    """Return the commands of a section."""
    section = PAGE.split("\n## ")[number]
    return re.findall(r"```bash\n(.*?)\n```", section, re.DOTALL)


def typed(block: str, url: str = URL) -> str:
    """Type a block: `dsf` in this process, anything else in a shell."""
    if not block.startswith("dsf "):
        done = run("bash", "-euc", f"cd {Path.cwd()}\n{block}", PYTHONDONTWRITEBYTECODE="1")
        assert done.returncode == 0, done.stderr
        return done.stdout
    shown = ""
    for line in block.splitlines():
        command, _, file = line.replace(URL, url).partition(" > ")
        code, out, err = invoked(root, *shlex.split(command)[1:])
        assert code == 0, out + err
        if file:
            Path(file).write_text(out)
        shown += out
    return shown


def test_from_nothing_to_a_score_that_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in (*blocks(1), *blocks(2)):
        typed(block)
    start, check = blocks(3)
    with started(start, tmp_path) as url:
        assert "${app};${device}" in typed(check, url).splitlines()[-1]
        files, shown, written = blocks(4)
        typed(files)
        out = typed(shown, url)
        assert "▁" in out
        assert " 12 " in next(line for line in out.splitlines() if line.startswith("device=all"))
        typed(written, url)
        objects, plan = blocks(5)
        typed(objects)
        decided = next(line for line in typed(plan).splitlines() if line.startswith("chat "))
        assert decided.split()[:2] == ["chat", "west"]
        assert "76" in decided.split()
        typed(blocks(6)[0], url)
    registered = yaml.safe_load(Path("app-latency/manifests/dynamicscorer.yaml").read_text())
    assert registered["spec"]["scoreDimensionFormat"] == "${app};${device}"
