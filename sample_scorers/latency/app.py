"""The latency scorer as an HTTP application."""

from fastapi import FastAPI

from .. import service
from ..wire import (
    PROMETHEUS_URL,
    Normalize,
    PrometheusSource,
    RangeQuery,
    ScoreRange,
    ScorerConfig,
    Scoring,
    ScoringParams,
)
from .score import LIMIT_MS, SUCCESS, score

PROBES = (
    "max by (__name__, app, instance) (probe_duration_seconds);"
    f"min by (__name__, app, instance) ({SUCCESS})"
)
"""PromQL for the duration and the success of each probe of the blackbox exporter: two queries."""


def config(prometheus_url: str = PROMETHEUS_URL, query: str = PROBES) -> ScorerConfig:
    """Return `/config`: lower is better, so the agent turns the scores round."""
    return ScorerConfig(
        name="latency-scorer",
        description="The 95th percentile of probes over the last 15 minutes",
        display_name="Latency",
        unit="ms",
        direction="LowerIsBetter",
        range=ScoreRange(min=0, max=LIMIT_MS),
        source=PrometheusSource(
            host=prometheus_url, params=RangeQuery(query=query, range=900, step=30)
        ),
        scoring=Scoring(
            params=ScoringParams(name="latency_score", interval=30),
            # LIMIT_MS becomes -100, the least that OCM allows.
            normalize=Normalize(min=0, max=LIMIT_MS / 2, invert=True),
        ),
    )


def create_app(prometheus_url: str = PROMETHEUS_URL, query: str = PROBES) -> FastAPI:
    """Return the application; agents run the query on `prometheus_url`."""
    return service.create_app(service.ServedScorer(config(prometheus_url, query), score))
