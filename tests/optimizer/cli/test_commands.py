"""`dsf plan` and `dsf optimizer`."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from importlib import resources
from pathlib import Path

import httpx
import pytest
import yaml
from click.testing import CliRunner, Result

from optimizer.cli.commands import optimizer
from optimizer.cli.model_options import settings_of
from optimizer.cli.planning import plan
from optimizer.domain.settings import DEFAULTS

SCENARIO = Path(str(resources.files("dsf.sim") / "scenario"))
FOLDERS = [f"-f{SCENARIO / part}" for part in ("manifests", "clusters", "scores")]
REQUEST = f"--request={SCENARIO / 'params.json'}"
SCORE_HEAD = (
    "apiVersion: cluster.open-cluster-management.io/v1alpha1, kind: AddOnPlacementScore,"
    " metadata: {name: s, namespace: worker01}"
)
HANGS_SECONDS = 60
POWER = "example-powerconsumption-score"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(plan, arguments)


def test_an_option_bounds_the_scores_that_are_kept() -> None:
    [option] = [item for item in optimizer.params if "--watched-score-entries" in item.opts]
    assert settings_of({option.name or "": 5}).watched_score_entries == 5
    assert option.default == DEFAULTS.watched_score_entries


def failure(*arguments: str) -> str:
    """Run what must fail; return its one line."""
    result = run(*arguments)
    assert result.exit_code == 1
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("Error: ")
    return line


@pytest.fixture
def power(tmp_path: Path) -> str:
    request = json.loads((SCENARIO / "params.json").read_text())
    request["preference"]["addonPlacementScore"] = POWER
    path = tmp_path / "power.yaml"
    path.write_text(yaml.safe_dump(request))
    return f"--request={path}"


def test_the_guides_scenario_for_performance() -> None:
    result = run(*FOLDERS, REQUEST)
    assert result.exit_code == 0
    assert result.stdout.startswith("Optimal: objective 115 ")
    assert re.search(
        r"mwrs-app01 +worker01 +3g.48gb +policy-enable-mig-3g-worker01 +60", result.stdout
    )
    assert re.search(
        r"mwrs-app02 +worker02 +3g.48gb +policy-enable-mig-3g-worker02 +55", result.stdout
    )


def test_the_guides_scenario_for_power(power: str) -> None:
    answer = json.loads(run(*FOLDERS, power, "-o", "json").stdout)
    assert (answer["status"], answer["objective_value"]) == ("Optimal", 170.0)
    assert answer["policies"] == {
        "worker01": "policy-enable-mig-2g-worker01",
        "worker02": "policy-enable-mig-2g-worker02",
    }


def test_yaml_says_the_same_as_json() -> None:
    as_json = json.loads(run(*FOLDERS, REQUEST, "-o", "json").stdout)
    as_yaml = yaml.safe_load(run(*FOLDERS, REQUEST, "-o", "yaml").stdout)
    assert {**as_yaml, "seconds": 0} == {**as_json, "seconds": 0}


def test_manifests_are_the_generated_objects_alone() -> None:
    found = list(yaml.safe_load_all(run(*FOLDERS, REQUEST, "-o", "manifests").stdout))
    assert sorted(item["kind"] for item in found) == ["Placement"] * 4 + ["PlacementBinding"] * 2


def test_a_whole_folder_is_enough_and_what_is_not_read_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "scenario"
    shutil.copytree(SCENARIO, folder)
    (folder / "other.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
    (folder / "more.yaml").write_text("[1, 2]")
    result = run(f"-f{folder}")
    assert result.exit_code == 0
    ignored = [line for line in result.stderr.splitlines() if line.startswith("Ignored: ")]
    assert len(ignored) == 2
    assert "ConfigMap x" in result.stderr


def test_without_a_request_it_says_how_to_give_one() -> None:
    assert "--request" in failure(*FOLDERS)


def test_several_requests_are_named(power: str) -> None:
    path = power.removeprefix("--request=")
    line = failure(*FOLDERS, f"-f{path}", f"-f{SCENARIO / 'params.json'}")
    assert "params.json" in line
    assert "power.yaml" in line


def test_names_that_do_not_exist_are_named_with_what_does() -> None:
    line = failure(f"-f{SCENARIO / 'manifests'}", f"-f{SCENARIO / 'clusters'}", REQUEST)
    assert "example-performance-score" in line


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{apiVersion: policy.open-cluster-management.io/v1, kind: Policy}", "metadata.name"),
        (
            "{" + SCORE_HEAD + ", status: {scores: [{name: a, value: 1.5}]}}",
            "status.scores[0].value",
        ),
        ("{" + SCORE_HEAD + ", statuss: {}}", "statuss"),
        ("a: [", "line 1"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    line = failure(*FOLDERS, REQUEST, f"-f{path}")
    assert str(path) in line
    assert named in line


def test_a_plan_that_places_nothing_fails_and_says_why(tmp_path: Path) -> None:
    scores = tmp_path / "scores"
    shutil.copytree(SCENARIO / "scores", scores)
    for path in scores.iterdir():
        path.write_text(
            path.read_text().replace("status:", "status:\n  validUntil: 2020-01-01T00:00:00Z")
        )
    result = run(*FOLDERS[:2], f"-f{scores}", REQUEST)
    assert result.exit_code == 1
    assert result.stdout.startswith("Infeasible")
    assert "ExpiredScore" in result.stdout


def test_a_score_of_which_a_file_says_that_lower_is_better_is_not_maximised(tmp_path: Path) -> None:
    path = tmp_path / "scorer.yaml"
    path.write_text(
        "apiVersion: dynamic-scoring.open-cluster-management.io/v1alpha1, kind: DynamicScorer,"
        " metadata: {name: s, namespace: open-cluster-management}, spec: {description: d,"
        " configURL: 'http://h/config', direction: lowerIsBetter,"
        " scoring: {params: {name: example_performance_score}}}".join("{}")
    )
    line = failure(*FOLDERS, f"-f{path}", REQUEST)
    assert "lower values of the score example-performance-score are better" in line


def test_a_missing_score_can_have_a_value() -> None:
    result = run(*FOLDERS, REQUEST, "--missing-score", "much")
    assert result.exit_code == 2
    assert "neither 'forbid' nor a number" in result.stderr


def test_a_request_of_too_many_places_is_refused() -> None:
    line = failure(*FOLDERS, REQUEST, "--max-places=11")
    assert "2 workloads on 6 devices and kinds of clusters are 12 places, and at most 11" in line


def test_a_request_that_is_no_object_is_not_told_a_content_type(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("[]")
    assert failure(*FOLDERS, f"--request={path}") == f"Error: {path}: body: must be an object"


@pytest.mark.parametrize("option", ["--time-limit", "--gap"])
def test_what_is_no_number_is_in_no_range(option: str) -> None:
    result = run(*FOLDERS, REQUEST, option, "nan")
    assert result.exit_code == 2
    assert f"Invalid value for '{option}': 'nan' is not a number." in result.stderr


def test_a_used_port_is_one_line_that_says_how_to_choose_another() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(optimizer, [f"--port={port}"])
    assert result.exit_code == 1
    expected = f"Error: port {port} of 127.0.0.1 is in use; choose another with --port"
    assert result.stderr.splitlines()[-1] == expected


@pytest.mark.exhaustive
def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                "current-context": "c",
            }
        )
    )
    command = [sys.executable, "-m", "dsf", "optimizer", "--port=0", f"--kubeconfig={kubeconfig}"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    ) as process:
        assert process.stderr is not None
        try:
            lines = iter(process.stderr.readline, "")
            found = next(match for line in lines if (match := re.search(r"url=(\S+)", line)))
            answer = httpx.get(f"{found[1]}/openapi.json", trust_env=False, timeout=HANGS_SECONDS)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=HANGS_SECONDS)
        finally:
            process.kill()
    assert "/optimize" in answer.json()["paths"]
    assert process.returncode == 0
