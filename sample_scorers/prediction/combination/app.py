# SPDX-License-Identifier: Apache-2.0
"""The combination as an HTTP application, with metrics of how good its forecasts were."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import FastAPI, Header
from prometheus_client import CollectorRegistry

from ...scoring_service import application
from ...scoring_service.wire import (
    CPU_CORES_BY_POD,
    PROMETHEUS_URL,
    ScorerConfig,
    ScoringRequest,
    ScoringResponse,
)
from ..score import STEP_SECONDS, WINDOW_SECONDS
from ..score import config as template_config
from .past_forecasts import PastForecasts
from .score import DEFAULT_MEANING, ScoreMeaning, predictions

AskingCluster = Annotated[
    str,
    Header(alias="Dynamic-Scoring-Cluster", description="The managed cluster whose agent asks."),
]


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
    """Return `/config`: that of the template, and which quantile the score is.

    The chance of exceeding a threshold has no truth in the unit of the scores.
    """
    meaning = settings.meaning
    found = template_config(
        settings.prometheus_url, settings.query, settings.window, settings.step, meaning.horizon
    )
    if found.forecast and meaning.threshold is None:
        quantile = found.forecast.model_copy(update={"quantile": meaning.quantile})
        return found.model_copy(update={"forecast": quantile})
    return found.model_copy(update={"forecast": None})


def create_app(settings: PredictionSettings = DEFAULT_SETTINGS) -> FastAPI:
    """Return the application, with its own memory of past forecasts."""
    served, registry = config(settings), CollectorRegistry()
    past = PastForecasts(registry)
    app = application.bare_app(served.name, registry=registry)
    application.add_config(app, served)

    # Not async: FastAPI then calls it in a thread, and /healthz keeps answering.
    @app.post(served.scoring.path)
    def scoring(request: ScoringRequest, cluster: AskingCluster = "") -> ScoringResponse:
        found = predictions(request.data, settings.meaning)
        past.learn(cluster, request.data, found)
        return ScoringResponse(results=[one.result for one in found])

    return app
