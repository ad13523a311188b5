"""The static scorers as one HTTP application."""

from collections.abc import Sequence

from fastapi import FastAPI

from .. import service
from ..wire import Config, NoSource, Result, Scoring, ScoringParams, Series
from .score import Table, score
from .tables import shipped


def config(table: Table) -> Config:
    """Say that there is nothing to fetch, and where the scores are."""
    return Config(
        name=table.name,
        description=table.description,
        source=NoSource(),
        scoring=Scoring(
            path=f"{table.path}/scoring",
            params=ScoringParams(name=table.score_name, interval=table.interval),
        ),
    )


def create_app(tables: Sequence[Table] | None = None) -> FastAPI:
    """Build the application; without tables it serves the shipped ones."""
    return service.create_app(*map(_scorer, shipped() if tables is None else tables))


def _scorer(table: Table) -> service.Scorer:
    results = score(table)

    def constant(_series: Sequence[Series]) -> list[Result]:
        return results

    return service.Scorer(config(table), constant, base_path=table.path)
