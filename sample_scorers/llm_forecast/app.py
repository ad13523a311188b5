"""The LLM forecast scorer as an HTTP application.

It has its own `/scoring` because a request to a model is I/O that can fail.
"""

import re
from typing import Annotated

from fastapi import FastAPI, Header
from fastapi.responses import Response

from .. import service
from ..problem_details import problem
from ..wire import (
    CPU_CORES_BY_POD,
    PROMETHEUS_URL,
    PrometheusSource,
    RangeQuery,
    ScorerConfig,
    ScoreResult,
    Scoring,
    ScoringParams,
    ScoringRequest,
    ScoringResponse,
)
from .forecaster import Forecaster
from .model_client import ForecastFailure
from .settings import ForecastSettings

_BEARER = re.compile(r"Bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)  # RFC 6750, section 2.1


def config(prometheus_url: str = PROMETHEUS_URL) -> ScorerConfig:
    """Return `/config`: the query that the agent runs, and how often it asks for scores."""
    return ScorerConfig(
        name="llm-forecast-scorer",
        description="A sample score for time series data with vLLM",
        source=PrometheusSource(
            host=prometheus_url, params=RangeQuery(query=CPU_CORES_BY_POD, range=3600, step=60)
        ),
        scoring=Scoring(params=ScoringParams(name="llm_forecast_score", interval=60)),
    )


def create_app(settings: ForecastSettings) -> FastAPI:
    """Return the application, which uses the model that `settings` name."""
    app = service.bare_app("llm-forecast-scorer")
    service.add_config(app, config(settings.prometheus_url))
    forecaster = Forecaster(settings)

    @app.post("/scoring", response_model=ScoringResponse)
    async def scoring(
        request: ScoringRequest, authorization: Annotated[str | None, Header()] = None
    ) -> ScoringResponse | Response:
        """Forecast each series; pass a bearer token on to the model's server."""
        bearer = _BEARER.fullmatch(authorization or "")
        if authorization and not bearer:
            return problem(400, "the Authorization header must be: Bearer <token>")
        return await _score(request, bearer[1] if bearer else None, forecaster, settings.max_series)

    return app


async def _score(
    request: ScoringRequest, token: str | None, forecaster: Forecaster, max_series: int
) -> ScoringResponse | Response:
    asked = [(each.metric, points) for each in request.data if (points := each.finite())]
    if len(asked) > max_series:
        detail = (
            f"{len(asked)} series are more than the {max_series} of one request; "
            "aggregate more in the query, or raise --max-series"
        )
        return problem(422, detail, [{"pointer": "#/data", "detail": detail}])
    forecasts = await forecaster.forecast([points for _, points in asked], token)
    if isinstance(forecasts, ForecastFailure):
        return problem(502, forecasts.message)
    scored = zip(asked, forecasts, strict=True)
    return ScoringResponse(
        results=[ScoreResult(metric=metric, score=score) for (metric, _), score in scored]
    )
