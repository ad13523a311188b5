"""docs/how-to/scoring-from-manifests.md: its scorer, its objects, and what its commands print."""

import json
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dsf.cli.root import root
from dsf.hub.assess.context_completion import CONTEXT_BYTES
from tests.command_line import invoked
from tests.dsf.scorer_kit.test_contract_page import answers
from tests.eventually import until
from tests.repository import ROOT

TEXT = (ROOT / "docs/how-to/scoring-from-manifests.md").read_text()
CODE = dict(re.findall(r"```(python|json)\n(.*?)\n```", TEXT, re.DOTALL))
OBJECTS = re.findall(r"```yaml\n(.*?)\n```", TEXT, re.DOTALL)[0]
LINES = [
    line
    for code in re.findall(r"```bash\n(.*?)\n```", TEXT, re.DOTALL)
    for line in code.splitlines()
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manifests")
    (folder / "scorer.py").write_text(CODE["python"])
    (folder / "objects.yaml").write_text(OBJECTS)
    (folder / "request.json").write_text(CODE["json"])
    return folder


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    start = [sys.executable, "scorer.py", port]
    with subprocess.Popen(start, cwd=folder, stderr=subprocess.DEVNULL) as process:
        until("the scorer listens", lambda: answers(f"http://127.0.0.1:{port}/healthz"))
        yield f"http://127.0.0.1:{port}"
        process.terminate()


def typed(url: str, line: str) -> str:
    """Run a command of the page in the test's process; return its output."""
    command, _, target = line.replace("http://localhost:8000", url).partition(" > ")
    code, out, err = invoked(root, *shlex.split(command)[1:])
    assert code == 0, err
    if target:
        Path(target).write_text(out)
    return out


def test_the_scores_of_the_page_decide_a_placement(
    url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert LINES[0] == "python3 scorer.py 8000"
    check, explain, save, plan, describe = LINES[1:]
    assert " 0 failed" in typed(url, check)
    assert "AddOnPlacementScore worker01/fit: 2 of 2 results" in typed(url, explain)
    scores = yaml.safe_load(typed(url, save))["status"]["scores"]
    assert {each["name"]: each["value"] for each in scores} == {
        "chat;2g.24gb": 78,
        "chat;3g.48gb": 36,
    }
    for each in scores:
        assert f"`{each['name']}` with {each['value']}" in TEXT
    found = json.loads(typed(url, f"{plan} -o json"))
    assert found["objective_value"] == 78
    assert "name: policy-2g" in found["output_yaml"]
    assert describe.startswith("kubectl describe dynamicscorer fit-scorer")


def test_the_limit_is_that_of_the_code() -> None:
    assert f"More than {CONTEXT_BYTES >> 10} KiB" in TEXT
