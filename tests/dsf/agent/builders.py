"""Summaries and objects, as the hub writes them."""

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.agent.wire.scoring_answer import ScoringResult
from dsf.agent.wire.scoring_request import ScoringRequestBody
from dsf.api.scoring.scorer_summary import ScorerSummary


def summary(name: str = "sample-scorer", **changes: Any) -> ScorerSummary:
    fields: dict[str, Any] = {
        "name": name,
        "score_name": "sample_my_score" if name == "sample-scorer" else f"{name}_score",
        "source_type": "Prometheus",
        "source_endpoint": "http://prometheus.monitoring.svc:9090/api/v1/query_range",
        "source_query": "up",
        "source_range": 3600,
        "source_step": 60,
        "scoring_endpoint": "http://scorer.example:8000/scoring",
        "scoring_interval": 30,
        "score_dimension_format": "${node};${namespace};${pod}",
    }
    return ScorerSummary(**(fields | changes))


def sent(found: FetchedSeries) -> Any:
    """Return the series as a scorer gets them."""
    document = ScoringRequestBody(found.series)
    body = b"".join(document)
    assert len(document) == len(body)
    return json.loads(body)["data"]


def scoring_result(score: float, metric: Mapping[str, str]) -> ScoringResult:
    return ScoringResult(Raw(json.dumps(metric).encode()), score)
