"""A table of scores, and its results: pure."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveInt, model_validator

from ..wire import Direction, Normalize, ScoreResult

Text = Annotated[str, Field(min_length=1)]
ByDevice = Mapping[Text, FiniteFloat]


class StaticScoreTable(BaseModel):
    """One scorer of the scores file: `scores` by app and device, or `clusters` by managed cluster.

    A row of `clusters` is one number, or a number for each device. `default` is the row of clusters
    that `clusters` does not name, and of requests that do not say which cluster asks.
    """

    model_config = ConfigDict(extra="forbid")

    path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._~-]+)+$")]
    name: Text
    description: Text
    display_name: Text | None = Field(default=None, alias="displayName")
    unit: Text | None = None
    direction: Direction | None = None
    score_name: Text = Field(alias="scoreName")
    interval: PositiveInt
    normalize: Normalize | None = None
    scores: Mapping[Text, ByDevice] | None = None
    clusters: Mapping[Text, ByDevice | FiniteFloat] | None = None
    default: ByDevice | FiniteFloat | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.scores is None) == (self.clusters is None):
            raise ValueError("a table has either scores or clusters")
        if self.scores is not None and self.default is not None:
            raise ValueError("only a table with clusters has a default")
        return self


def score(table: StaticScoreTable, cluster: str | None = None) -> list[ScoreResult]:
    """Return the table's scores for a managed cluster; None if it is not known.

    Results have the labels `app` and `device`, or `device`, or none.
    """
    if table.scores is not None:
        return [
            ScoreResult(metric={"app": app, "device": device}, score=value)
            for app, by_device in table.scores.items()
            for device, value in by_device.items()
        ]
    row = (table.clusters or {}).get(cluster or "", table.default)
    if row is None:
        return []
    if isinstance(row, float):
        return [ScoreResult(metric={}, score=row)]
    return [ScoreResult(metric={"device": device}, score=value) for device, value in row.items()]
