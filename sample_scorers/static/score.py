"""A table of scores, and its results: pure."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveInt

from ..wire import ScoreResult

Text = Annotated[str, Field(min_length=1)]


class StaticScoreTable(BaseModel):
    """One scorer of the scores file: `scores` by app and device."""

    model_config = ConfigDict(extra="forbid")

    path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._~-]+)+$")]
    name: Text
    description: Text
    score_name: Text = Field(alias="scoreName")
    interval: PositiveInt
    scores: Mapping[Text, Mapping[Text, FiniteFloat]]


def score(table: StaticScoreTable) -> list[ScoreResult]:
    """Return the table's scores with the labels `app` and `device`."""
    return [
        ScoreResult(metric={"app": app, "device": device}, score=value)
        for app, by_device in table.scores.items()
        for device, value in by_device.items()
    ]
