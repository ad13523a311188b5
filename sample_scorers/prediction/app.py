"""The prediction scorer as an HTTP application."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import FastAPI, Header
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from .. import service
from ..wire import (
    CPU_CORES_BY_POD,
    PROMETHEUS_URL,
    DeclaredForecast,
    PrometheusSource,
    RangeQuery,
    ScorerConfig,
    Scoring,
    ScoringParams,
    ScoringRequest,
    TruthQuery,
)
from .score import DEFAULT_MEANING, PastForecasts, PredictedScore, ScoreMeaning, predictions

WINDOW_SECONDS = 3600
STEP_SECONDS = 30

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

AskingCluster = Annotated[
    str,
    Header(alias="Dynamic-Scoring-Cluster", description="The managed cluster whose agent asks."),
]


class PredictionResponse(BaseModel):
    """The response of POST /scoring."""

    results: list[PredictedScore]


@dataclass(frozen=True, slots=True)
class PredictionSettings:
    """What is forecast: a query on a Prometheus, its window and step in seconds, and the score."""

    prometheus_url: str = PROMETHEUS_URL
    query: str = CPU_CORES_BY_POD
    window: int = WINDOW_SECONDS
    step: int = STEP_SECONDS
    meaning: ScoreMeaning = DEFAULT_MEANING


DEFAULT_SETTINGS = PredictionSettings()


def config(settings: PredictionSettings = DEFAULT_SETTINGS) -> ScorerConfig:
    """Return `/config`: the query that the agent runs, and what the scores forecast.

    The chance of exceeding a threshold has no truth in the unit of the scores.
    """
    meaning = settings.meaning
    truth = f"avg_over_time(({settings.query})[{meaning.horizon}s:{settings.step}s])"
    return ScorerConfig(
        name="simple-prediction-scorer",
        description="A simple prediction score for time series data",
        source=PrometheusSource(
            host=settings.prometheus_url,
            params=RangeQuery(query=settings.query, range=settings.window, step=settings.step),
        ),
        scoring=Scoring(params=ScoringParams(name="simple_prediction_score", interval=30)),
        forecast=None
        if meaning.threshold is not None
        else DeclaredForecast(
            horizon=meaning.horizon, truth=TruthQuery(query=truth), quantile=meaning.quantile
        ),
    )


def create_app(settings: PredictionSettings = DEFAULT_SETTINGS) -> FastAPI:
    """Return the application, with its own memory of past forecasts."""
    served, past = config(settings), PastForecasts()
    app = service.bare_app(served.name)
    service.add_config(app, served)

    # Not async: FastAPI then calls it in a thread, and /healthz keeps answering.
    @app.post(served.scoring.path, response_model_exclude_none=True)
    def scoring(request: ScoringRequest, cluster: AskingCluster = "") -> PredictionResponse:
        found = predictions(request.data, settings.meaning)
        past.learn(cluster, request.data, found)
        return PredictionResponse(results=[one.result for one in found])

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(past.metrics(), media_type=METRICS_TYPE)

    return app
