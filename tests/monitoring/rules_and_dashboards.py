"""The rules and dashboards of the charts, and the queries in them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.repository import ROOT

RULE_FILES = tuple(sorted(ROOT.glob("charts/*/files/rules/*.yaml")))
DASHBOARDS = tuple(sorted(ROOT.glob("charts/*/files/dashboards/*.json")))
EXAMPLES = ROOT / "docs/examples/prometheus"
ALERTS_PAGE = ROOT / "docs/reference/alerts.md"

_GRAFANA = {"$__rate_interval": "1m", "$cluster": ".*", "$score": ".*"}
"""What Grafana puts in place of its variables."""


def rules(path: Path) -> list[dict[str, Any]]:
    """The rules of a file in Prometheus' own format, or of a PrometheusRule."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    groups = document.get("spec", document)["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    """All alerts by name."""
    return {rule["alert"]: rule for path in RULE_FILES for rule in rules(path) if "alert" in rule}


def recorded() -> dict[str, dict[str, Any]]:
    """The recording rules of the charts by name."""
    return {rule["record"]: rule for path in RULE_FILES for rule in rules(path) if "record" in rule}


def dashboard(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def queries() -> Iterator[tuple[str, str]]:
    """Where each query of a rule or a panel stands, and the query without Grafana's variables."""
    for path in RULE_FILES:
        for rule in rules(path):
            yield f"{path.name}: {rule.get('alert') or rule['record']}", rule["expr"]
    for path in DASHBOARDS:
        for panel in dashboard(path)["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", filled_in(target["expr"])


def filled_in(query: str) -> str:
    """Return a query as Grafana sends it."""
    return re.sub("|".join(map(re.escape, _GRAFANA)), lambda found: _GRAFANA[found[0]], query)
