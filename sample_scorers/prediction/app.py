"""The prediction scorer as an HTTP application."""

from fastapi import FastAPI

from .. import service
from ..wire import (
    CPU_CORES_BY_POD,
    PROMETHEUS_URL,
    PrometheusSource,
    RangeQuery,
    ScorerConfig,
    Scoring,
    ScoringParams,
)
from .score import score


def config(prometheus_url: str = PROMETHEUS_URL) -> ScorerConfig:
    """Return `/config`: the query that the agent runs, and how often it asks for scores."""
    return ScorerConfig(
        name="simple-prediction-scorer",
        description="A simple prediction score for time series data",
        source=PrometheusSource(
            host=prometheus_url, params=RangeQuery(query=CPU_CORES_BY_POD, range=3600, step=30)
        ),
        scoring=Scoring(params=ScoringParams(name="simple_prediction_score", interval=30)),
    )


def create_app(prometheus_url: str = PROMETHEUS_URL) -> FastAPI:
    """Return the application; agents run the query on `prometheus_url`."""
    return service.create_app(service.ServedScorer(config(prometheus_url), score))
