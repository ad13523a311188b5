# SPDX-License-Identifier: Apache-2.0
"""The static scorers as one HTTP application, each under its own path."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import FastAPI, Header

from ..scoring_service import application
from ..scoring_service.wire import (
    NoSource,
    ScorerConfig,
    Scoring,
    ScoringParams,
    ScoringRequest,
    ScoringResponse,
)
from .score import StaticScoreTable, score, shipped

NAME = "static-scorer"

Tables = dict[str, StaticScoreTable]
"""The tables by path, which may be replaced while the application runs."""

AskingCluster = Annotated[
    str | None,
    Header(alias="Dynamic-Scoring-Cluster", description="The managed cluster whose agent asks."),
]


def config(table: StaticScoreTable) -> ScorerConfig:
    """Return `/config`: no source, and the path of the scores."""
    return ScorerConfig(
        name=table.name,
        description=table.description,
        display_name=table.display_name,
        unit=table.unit,
        direction=table.direction,
        source=NoSource(),
        scoring=Scoring(
            path=f"{table.path}/scoring",
            params=ScoringParams(name=table.score_name, interval=table.interval),
            normalize=table.normalize,
        ),
    )


def create_app(tables: Sequence[StaticScoreTable] | None = None) -> FastAPI:
    """Return the application; without tables it serves those of this folder."""
    app = application.bare_app(NAME)
    current: Tables = {table.path: table for table in (shipped() if tables is None else tables)}
    app.state.tables = current
    for path, table in current.items():
        application.add_config(app, config(table), path)
        _add_scoring(app, current, path)
    return app


def _add_scoring(app: FastAPI, tables: Tables, path: str) -> None:
    @app.post(f"{path}/scoring")
    async def scoring(_request: ScoringRequest, cluster: AskingCluster = None) -> ScoringResponse:
        return ScoringResponse(results=score(tables[path], cluster))
