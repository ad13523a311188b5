"""Rules and dashboards query what the product exposes, and alerts have a runbook.

tests/real_sources evaluates all of them on real servers.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.monitoring.exposed_metrics import exposed_metrics
from tests.monitoring.rules_and_dashboards import (
    ALERTS_PAGE,
    DASHBOARDS,
    EXAMPLES,
    alerts,
    dashboard,
    queries,
    recorded,
    rules,
)
from tests.repository import ROOT

EXPOSED = {
    series: metric.queried_labels
    for metrics in exposed_metrics().values()
    for metric in metrics
    for series in metric.series
}
OURS = re.compile(
    r"\b(?:[a-z_]+:)?(?:dynamic_scor|dsf_|leader_election_|policy_watcher_)[a-z0-9_:]*(?=[\s{\[),]|$)"
)
OF_THE_SCRAPE = {"cluster"}
"""Labels that Prometheus adds: the external label of a managed cluster."""


@pytest.mark.parametrize(("where", "query"), list(queries()))
def test_queries_use_metrics_and_labels_that_exist(where: str, query: str) -> None:
    bare = re.sub(r'"[^"]*"', '""', query)
    names = OURS.findall(bare)
    assert names, where
    assert set(names) <= EXPOSED.keys() | recorded().keys()
    allowed = OF_THE_SCRAPE.union(*(EXPOSED.get(name, ()) for name in names))
    selected = re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)\"\"", bare)
    grouped = re.findall(r"\bby \(([^)]*)\)", bare)
    used = {*selected, *(name for group in grouped for name in re.split(r",\s*", group))}
    assert used <= allowed


def test_labels_in_texts_of_alerts_are_those_of_their_queries() -> None:
    for name, rule in alerts().items():
        text = " ".join(rule["annotations"].values())
        used = set(re.findall(r"\$labels\.(\w+)", text))
        grouped = {
            label
            for group in re.findall(r"\bby \(([^)]*)\)", rule["expr"])
            for label in re.split(r",\s*", group)
        }
        assert used <= grouped, name


@pytest.mark.parametrize("rule", alerts().values(), ids=alerts())
def test_an_alert_has_a_severity_and_a_runbook(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    page, anchor = rule["annotations"]["runbook"].split("#")
    assert (page, anchor) == ("docs/reference/alerts.md", rule["alert"].lower())
    section = ALERTS_PAGE.read_text(encoding="utf-8").split(f"\n### {rule['alert']}\n")
    assert len(section) == 2
    assert f"**{rule['labels']['severity']}**" in section[1].split("\n### ")[0]


def test_the_page_has_no_other_alert() -> None:
    named = re.findall(r"^### (\w+)$", ALERTS_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert Counter(named) == Counter(list(alerts()))


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_a_dashboard_can_be_imported(path: Path) -> None:
    board = dashboard(path)
    assert board["uid"] == path.stem
    assert len(board["uid"]) <= 40
    variables = {variable["name"] for variable in board["templating"]["list"]}
    cells = Counter[tuple[int, int]]()
    for panel in board["panels"]:
        assert panel["type"] in {"stat", "timeseries"}
        assert panel["title"]
        assert panel["description"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells.update(
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        )
        for target in panel["targets"]:
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
            assert used <= variables
    assert set(cells.values()) == {1}
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_dashboards_have_names_of_their_own() -> None:
    titles = [dashboard(path)["title"] for path in DASHBOARDS]
    assert len(set(titles)) == len(titles) == 3


def test_the_rules_for_managed_clusters_are_those_of_the_chart() -> None:
    chart = ROOT / "charts/dynamic-scoring-framework/files/rules/agent.yaml"
    assert rules(EXAMPLES / "agent-rules.yaml") == rules(chart)
