# SPDX-License-Identifier: Apache-2.0
"""The LLM forecast scorer as an HTTP application.

It has its own `/scoring` and `/healthz` because a request to a model is I/O that can fail.
"""

import re
from typing import Annotated

from fastapi import FastAPI, Header
from fastapi.responses import JSONResponse, Response

from ...scoring_service import application
from ...scoring_service.bearer_token import read_token
from ...scoring_service.problem_details import problem
from ...scoring_service.wire import ScoreResult, ScoringRequest, ScoringResponse
from ..score import config
from .completion_api import ForecastFailure
from .forecaster import FALLBACK_META, Forecast, Forecaster
from .model_client import ForecastSettings, ModelHealth

_BEARER = re.compile(r"Bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)  # RFC 6750, section 2.1


def create_app(settings: ForecastSettings) -> FastAPI:
    """Return the application, which uses the model that `settings` name."""
    app = application.bare_app("llm-forecast-scorer", health=_health(settings))
    application.add_config(app, config(settings.prometheus_url))
    forecaster = Forecaster(settings)

    @app.post("/scoring", response_model=ScoringResponse)
    async def scoring(
        request: ScoringRequest, authorization: Annotated[str | None, Header()] = None
    ) -> ScoringResponse | Response:
        """Forecast each series; pass a bearer token on to the model's server."""
        bearer = _BEARER.fullmatch(authorization or "")
        if authorization and not bearer:
            return problem(400, "the Authorization header must be: Bearer <token>")
        token = bearer[1] if bearer else None
        if settings.model_token_file:
            token = read_token(settings.model_token_file)
        return await _score(request, token, forecaster, settings.max_series)

    return app


def _health(settings: ForecastSettings) -> application.HealthEndpoint:
    health = ModelHealth(settings)

    async def healthz() -> Response:
        trouble = await health.trouble()
        if trouble and not settings.fallback:
            return problem(503, trouble)
        status, model = ("degraded", trouble) if trouble else ("ok", "answers")
        return JSONResponse({"status": status, "model": model})

    return healthz


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
        return _failed(forecasts)
    scored = zip(asked, forecasts, strict=True)
    return ScoringResponse(results=[_result(metric, forecast) for (metric, _), forecast in scored])


def _result(metric: dict[str, str], forecast: Forecast) -> ScoreResult:
    labels = metric if forecast.by_model else {**metric, "meta": FALLBACK_META}
    return ScoreResult(metric=labels, score=forecast.value)


def _failed(failure: ForecastFailure) -> Response:
    """Return a problem; 503 with Retry-After if it is known when to ask again."""
    if failure.retry_after is None:
        return problem(502, failure.message)
    return problem(503, failure.message, headers={"Retry-After": str(failure.retry_after)})
