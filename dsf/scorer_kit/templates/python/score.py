# SPDX-License-Identifier: Apache-2.0
"""The score: what this scorer asks for, and a function of the series. Change this file."""

import math
import os
from typing import Any

CONFIG = {
    "name": "my-scorer",
    "description": "CPU cores that a pod used over the last hour",
    "unit": "cores",
    "source": {
        "type": "Prometheus",
        "host": os.environ.get(
            "PROMETHEUS_URL", "http://kube-prometheus-kube-prome-prometheus.monitoring.svc:9090"
        ),
        "path": "/api/v1/query_range",
        "params": {
            "query": "sum by (node, namespace, pod) "
            '(rate(container_cpu_usage_seconds_total{container!="", pod!=""}[1m]))',
            "range": 3600,
            "step": 60,
        },
    },
    "scoring": {
        "path": "/scoring",
        "params": {"name": "my_scorer", "interval": 30},
        "normalize": {"min": 0, "max": 2},
    },
}


def score(data: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean of the finite samples of each series; a series without any has no result.

    A series has its labels in `metric`, and `values`, its samples as [unix seconds, text]. If the
    config has several `sources`, the label `__source__` is the name of the one it is from.
    """
    results = []
    for series in data:
        values = [float(text) for _, text in series["values"]]
        finite = [value for value in values if math.isfinite(value)]
        if finite:
            mean = math.fsum(value / len(finite) for value in finite)
            results.append({"metric": series["metric"], "score": mean})
    return results
