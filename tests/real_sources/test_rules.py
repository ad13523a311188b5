"""promtool and vmalert read the rules of the charts; promtool decides what they say of series."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.monitoring.rules_and_dashboards import EXAMPLES, RULE_FILES, alerts
from tests.real_sources.programs import PROMTOOL, VMALERT

CASES = Path(__file__).parent / "rules"
SUMMARY = "cluster-resource-summary.yaml"


def promtool(*words: str | Path) -> None:
    ended = subprocess.run(
        [PROMTOOL.find(), *words], capture_output=True, text=True, check=False, cwd=CASES
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def summary_rules(cluster: str) -> str:
    """The rules of the example as `envsubst` and the Prometheus operator hand them on."""
    text = (EXAMPLES / SUMMARY).read_text(encoding="utf-8").replace("${CLUSTER_NAME}", cluster)
    return yaml.safe_dump(yaml.safe_load(text)["spec"])


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.name)
def test_both_servers_accept_the_rules(path: Path) -> None:
    promtool("check", "rules", path)
    subprocess.run([VMALERT.find(), "-dryRun", f"-rule={path}"], capture_output=True, check=True)


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.name)
def test_rules_say_what_they_should(path: Path) -> None:
    promtool("test", "rules", CASES / path.name)


def test_each_alert_fires_in_some_case() -> None:
    expected = [
        sample["labels"]
        for path in RULE_FILES
        for case in _cases(CASES / path.name)["tests"]
        for query in case["promql_expr_test"]
        for sample in query["exp_samples"]
    ]
    assert [name for name in alerts() if f'alertname="{name}"' not in " ".join(expected)] == []


def test_the_summary_of_a_cluster_adds_up(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(summary_rules("worker01"), encoding="utf-8")
    cases = _cases(CASES / SUMMARY) | {"rule_files": ["rules.yaml"]}
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(cases), encoding="utf-8")
    promtool("test", "rules", tmp_path / "cases.yaml")


def _cases(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))
