"""The static scorers as one HTTP application."""

from collections.abc import Sequence

from fastapi import FastAPI

from .. import service
from ..wire import NoSource, ScorerConfig, ScoreResult, Scoring, ScoringParams, Series
from .score import StaticScoreTable, score
from .scores_file import shipped


def config(table: StaticScoreTable) -> ScorerConfig:
    """Say that there is nothing to fetch, and where the scores are."""
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
    """Build the application; without tables it serves the shipped ones."""
    return service.create_app(*map(_scorer, shipped() if tables is None else tables))


def _scorer(table: StaticScoreTable) -> service.ServedScorer:
    results = score(table)

    def constant(_series: Sequence[Series]) -> list[ScoreResult]:
        return results

    return service.ServedScorer(config(table), constant, base_path=table.path)
