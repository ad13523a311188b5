# SPDX-License-Identifier: Apache-2.0
"""The AI workload scorers as one HTTP application, each under its own path."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fastapi import FastAPI

from ..scoring_service import application
from ..scoring_service.wire import (
    PROMETHEUS_URL,
    Normalize,
    PrometheusSource,
    RangeQuery,
    ScoreRange,
    ScorerConfig,
    ScoreResult,
    Scoring,
    ScoringParams,
    Series,
)
from .score import AppOf, efficiency, idle, performance, power
from .signals import (
    EFFICIENCY_QUERIES,
    PERFORMANCE_QUERIES,
    POWER_QUERIES,
    RESERVED_IDLE_QUERIES,
    AppPattern,
    app_of,
)


@dataclass(frozen=True)
class AiWorkloadSettings:
    """Where agents read, what is published as 100 and 0, and which pods belong to which app.

    The scale is that of an NVIDIA H100 with a model of some billion parameters;
    `max_tokens_for_money` is in million tokens for a unit of money.
    """

    prometheus_url: str = PROMETHEUS_URL
    max_tokens_per_second: float = 2000.0
    max_watts: float = 700.0
    max_tokens_for_money: float = 10.0
    apps: Sequence[AppPattern] = ()


def performance_config(settings: AiWorkloadSettings) -> ScorerConfig:
    """Return `/performance/config`."""
    return ScorerConfig(
        name="ai-workload-perf-scorer",
        description="Tokens per second of a busy replica",
        display_name="Token rate",
        unit="tokens/s",
        direction="HigherIsBetter",
        range=ScoreRange(min=0),
        source=_source(settings, PERFORMANCE_QUERIES),
        scoring=Scoring(
            path="/performance/scoring",
            params=ScoringParams(name="ai_workload_perf_score", interval=30),
            normalize=Normalize(min=0, max=settings.max_tokens_per_second),
        ),
    )


def power_config(settings: AiWorkloadSettings) -> ScorerConfig:
    """Return `/power/config`: lower is better, so the agent turns the scores round."""
    return ScorerConfig(
        name="ai-workload-power-scorer",
        description="Watts of a replica",
        display_name="Power",
        unit="W",
        direction="LowerIsBetter",
        range=ScoreRange(min=0),
        source=_source(settings, POWER_QUERIES),
        scoring=Scoring(
            path="/power/scoring",
            params=ScoringParams(name="ai_workload_power_score", interval=30),
            normalize=Normalize(min=0, max=settings.max_watts, invert=True),
        ),
    )


def efficiency_config(settings: AiWorkloadSettings) -> ScorerConfig:
    """Return `/efficiency/config`."""
    return ScorerConfig(
        name="ai-workload-efficiency-scorer",
        description="Million tokens of a busy replica for a unit of money, energy included",
        display_name="Efficiency",
        unit="Mtokens per unit of money",
        direction="HigherIsBetter",
        range=ScoreRange(min=0),
        source=_source(settings, EFFICIENCY_QUERIES),
        scoring=Scoring(
            path="/efficiency/scoring",
            params=ScoringParams(name="ai_workload_efficiency_score", interval=30),
            normalize=Normalize(min=0, max=settings.max_tokens_for_money),
        ),
    )


def idle_config(settings: AiWorkloadSettings) -> ScorerConfig:
    """Return `/idle/config`: the score has the name by which the optimizer knows it."""
    day = RangeQuery(query=RESERVED_IDLE_QUERIES, range=86400, step=300)
    return ScorerConfig(
        name="gpu-idle-scorer",
        description="Share of the last day in which GPUs that pods had were idle",
        display_name="Reserved but idle",
        unit="%",
        direction="LowerIsBetter",
        range=ScoreRange(min=0, max=100),
        source=PrometheusSource(host=settings.prometheus_url, params=day),
        scoring=Scoring(path="/idle/scoring", params=ScoringParams(name="gpu_idle", interval=300)),
    )


def create_app(settings: AiWorkloadSettings | None = None) -> FastAPI:
    """Return the application with all four scorers."""
    chosen = settings or AiWorkloadSettings()
    named = partial(app_of, patterns=chosen.apps)
    return application.create_app(
        application.ServedScorer(
            performance_config(chosen), _with_apps(performance, named), "/performance"
        ),
        application.ServedScorer(power_config(chosen), _with_apps(power, named), "/power"),
        application.ServedScorer(
            efficiency_config(chosen), _with_apps(efficiency, named), "/efficiency"
        ),
        application.ServedScorer(idle_config(chosen), idle, "/idle"),
    )


def _source(settings: AiWorkloadSettings, queries: str) -> PrometheusSource:
    return PrometheusSource(
        host=settings.prometheus_url, params=RangeQuery(query=queries, range=3600, step=60)
    )


def _with_apps(
    score: Callable[[Sequence[Series], AppOf], list[ScoreResult]], app_of: AppOf
) -> Callable[[Sequence[Series]], list[ScoreResult]]:
    return lambda series: score(series, app_of)
