"""The static scorers as one HTTP application, each under its own path."""

from collections.abc import Sequence

from fastapi import FastAPI

from .. import service
from ..wire import NoSource, ScorerConfig, ScoreResult, Scoring, ScoringParams, Series
from .score import StaticScoreTable, score
from .scores_file import shipped


def config(table: StaticScoreTable) -> ScorerConfig:
    """Return `/config`: no source, and the path of the scores."""
    return ScorerConfig(
        name=table.name,
        description=table.description,
        source=NoSource(),
        scoring=Scoring(
            path=f"{table.path}/scoring",
            params=ScoringParams(name=table.score_name, interval=table.interval),
        ),
    )


def create_app(tables: Sequence[StaticScoreTable] | None = None) -> FastAPI:
    """Return the application; without tables it serves those of this folder."""
    return service.create_app(*map(_scorer, shipped() if tables is None else tables))


def _scorer(table: StaticScoreTable) -> service.ServedScorer:
    results = score(table)

    def constant(_series: Sequence[Series]) -> list[ScoreResult]:
        return results

    return service.ServedScorer(config(table), constant, base_path=table.path)
