"""Writes docs/reference/metrics.md from the metrics that the components register.

Run `make references` after a change of a metric.
"""

import re
from collections.abc import Iterator

from tests.monitoring.exposed_metrics import ExposedMetric, exposed_metrics
from tests.repository import ROOT

PAGE = ROOT / "docs/reference/metrics.md"

_HEAD = """# Metrics

A reference for operators, written from the code by `make references`. Each component answers
`GET /metrics` in Prometheus' text format, or in OpenMetrics if the client accepts it.
[Monitoring](../how-to/monitoring.md) says how to scrape them; [alerts](alerts.md) which of them
mean trouble.

A histogram has the series `_bucket`, `_sum` and `_count`. Each process also has `process_*` and
`python_*`. The labels of the agent's metrics have names of scores, hosts of scorers and labels of
results, which the agent limits in number. No other label has a name that a user chooses,
unless its component says so.
"""

_WHERE = {
    "agent": "Port `metrics` (8080) of the Service `dynamic-scoring-agent` on each"
    " managed cluster.",
    "hub controller": "Port `metrics` (8080) of its Pods. Of several replicas the leader works, and"
    " shows it in `leader_election_master_status`.",
    "dispatcher": "Port `metrics` (8080) of its Pods. Of several replicas the leader works, and"
    " shows it in `leader_election_master_status`.",
    "optimizer": "The port of its HTTP API (8338), with a token and the right to get the"
    " non-resource"
    " URL `/metrics`. The label `cluster` has names of managed clusters, at most 500, `resource`"
    " names of resources of their nodes. Gauges of the fleet's size and of workloads describe the"
    " latest plan of the process, dry runs included, what-if plans not; with several replicas take"
    " the maximum.",
    "policy watcher": "Port 8080 of its Pod on each managed cluster.",
}


def page() -> str:
    """Return the page."""
    return "\n".join((_HEAD, *_sections()))


def _sections() -> Iterator[str]:
    for component, metrics in exposed_metrics().items():
        yield f"## {component.capitalize()}\n\n{_WHERE[component]}\n"
        yield "| metric | type | labels | meaning |\n|---|---|---|---|"
        yield from map(_row, metrics)
        yield ""


def _row(metric: ExposedMetric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    meaning = re.sub(r"(?<![\w`])(--?[a-z-]{3,})", r"`\1`", metric.meaning.replace("|", "\\|"))
    return f"| `{metric.name}` | {metric.type} | {labels} | {meaning} |"
