"""docs/reference/scoring-api.md: each example runs, and each limit is that of the code."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.fetch.scoring_call import BYTES_PER_SERIES, PROBE_SECONDS, RESULTS_PER_SERIES
from dsf.agent.score.result_rules import (
    MAX_SERIES,
    OBJECT_BYTES,
    ConversionSettings,
    RoundScores,
    convert,
)
from dsf.agent.wire.foreign_text import LABELS_BYTES
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.prometheus_answer import SERIES_LIMIT
from dsf.agent.wire.scoring_answer import NUMBER_BYTES, parse_scoring_answer
from dsf.api.crd.score_rules import HIGHEST, LOWEST
from dsf.api.crd.scoring_params import AskedContext
from dsf.api.scoring.dimension_format import PLACEHOLDERS, DimensionFormat
from dsf.api.scoring.score_conditions import LABEL_LIMIT
from dsf.api.scoring.scoring_api import ConfiguredScoring, ConfiguredSource, ScorerConfig
from dsf.api.untrusted_text import InvalidInput
from dsf.cli.root import root
from dsf.hub.assess.context_completion import CONTEXT_BYTES
from dsf.hub.observe.prober import ProbeLimits
from tests.command_line import invoked
from tests.eventually import until
from tests.repository import ROOT
from tests.sample_scorers.serving import run

PAGE = (ROOT / "docs/reference/scoring-api.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)\n```", PAGE, re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def published(results: Any, form: str) -> RoundScores:
    answer = HttpAnswer(200, "application/json", json.dumps(results).encode())
    found = parse_scoring_answer("http://scorer", answer, 100)
    dimension = DimensionFormat.parse(form)
    assert isinstance(found, list)
    assert not isinstance(dimension, InvalidInput)
    return convert(found, ConversionSettings("worker01", "mean_score", dimension))


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.ConnectError:
        return False


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("scorer")
    (folder / "scorer.py").write_text(blocks("python")[0])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    start = blocks("bash")[0].replace("python3", sys.executable).replace("8000", port)
    with subprocess.Popen(start.split(), cwd=folder, stderr=subprocess.DEVNULL) as process:
        url = f"http://127.0.0.1:{port}"
        until("the scorer listens", lambda: answers(f"{url}/healthz"))
        yield url
        process.terminate()


@pytest.mark.parametrize("number", [1, 2], ids=["config", "scoring"])
def test_a_command_has_the_answer_shown(scorer: str, number: int) -> None:
    command = blocks("bash")[number].replace("http://localhost:8000", scorer)
    answer = run("bash", "-c", command)
    assert json.loads(answer.stdout) == json.loads(blocks("json")[number - 1])


def test_the_scorer_of_the_page_passes_the_check(scorer: str) -> None:
    code, out, _ = invoked(root, "scorer", "check", scorer, "--series", "20", "--samples", "5")
    assert code == 0, out


@pytest.mark.parametrize(("form", "labels", "entry"), rows("From labels to entries"))
def test_a_row_of_the_format_table_is_true(form: str, labels: str, entry: str) -> None:
    results = {"results": [{"metric": json.loads(labels.strip("`")), "score": 1}]}
    assert [one.name for one in published(results, form.strip("`")).entries] == [entry.strip("`")]


def test_the_page_names_every_placeholder() -> None:
    assert [name for name in PLACEHOLDERS if f"`${{{name}}}`" not in PAGE] == []


def test_the_example_of_rules_is_true() -> None:
    _, _, results, entries, _ = map(json.loads, blocks("json"))
    scores = published(results, "${node}")
    assert [{"name": one.name, "value": one.value} for one in scores.entries] == entries
    told = ", ".join(f"`{rule}` {count}" for rule, count in scores.adjusted.items())
    assert f"counted: {told}." in PAGE.replace("\n", " ")


def test_the_labels_decide_a_placement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "objects.yaml").write_text(blocks("yaml")[0])
    (tmp_path / "request.json").write_text(blocks("json")[-1])
    monkeypatch.chdir(tmp_path)
    code, out, err = invoked(root, *blocks("bash")[-1].split()[1:])
    assert code == 0, err
    assert json.loads(out)["objective_value"] == 70


def fields(model: type[BaseModel], path: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"`{path}{field.alias or name}`"


OBJECTS = {"`source`", "`scoring`", "`forecast`", "`context`"}
"""Fields of the config whose own fields are described."""


@pytest.mark.parametrize(
    "field",
    [
        *(name for name in fields(ScorerConfig, "") if name not in OBJECTS),
        *(name for name in fields(ConfiguredSource, "source.") if "params" not in name),
        *(name for name in fields(ConfiguredScoring, "scoring.") if "params" not in name),
        *(f"`source.params.{name}`" for name in ("query", "range", "step")),
        *(f"`scoring.params.{name}`" for name in ("name", "interval")),
        *(f"`forecast.{name}`" for name in ("horizon", "truth.query", "quantile")),
        *fields(AskedContext, "context."),
    ],
)
def test_a_field_of_the_config_is_described(field: str) -> None:
    assert any(field in row[0] for row in rows("The config"))


def test_the_limits_are_those_of_the_code() -> None:
    calls, probe = CallLimits(), ProbeLimits()
    table = dict(row[:2] for row in rows("Limits"))
    assert table == {
        "request: series; bytes of the source's answers": (
            f"{SERIES_LIMIT:,}; {calls.max_bytes >> 20} MiB"
        ),
        "request: workloads and devices of `context`": f"{CONTEXT_BYTES >> 10} KiB as JSON",
        "response: bytes; results": (
            f"{MAX_SERIES * BYTES_PER_SERIES / 1e6:.0f} MB; {MAX_SERIES * RESULTS_PER_SERIES:,}"
        ),
        "labels of one result": f"{LABELS_BYTES >> 10} KiB, all text",
        "one label": f"{LABEL_LIMIT} characters",
        "one score": f"{NUMBER_BYTES} bytes",
        "label sets of a score": f"{MAX_SERIES:,} (`--max-series`)",
        "entries of one object": f"{OBJECT_BYTES >> 20} MiB",
        "value of an entry": f"{LOWEST} to {HIGHEST}",
    }
    times = f"at least {calls.min_seconds:.0f} s and at most {calls.max_seconds:.0f} s"
    assert times in PAGE
    assert PROBE_SECONDS == probe.seconds == 5
    assert f"{probe.bytes >> 10} KiB" in PAGE
