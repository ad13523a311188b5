# SPDX-License-Identifier: Apache-2.0
"""Tables of scores, the file that has them, and their results."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    PositiveInt,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from ..scoring_service.wire import Direction, Normalize, ScoreResult

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


SHIPPED = Path(__file__).with_name("scores.yaml")

_TABLES = TypeAdapter(list[StaticScoreTable])


@dataclass(frozen=True)
class InvalidScoresFile:
    """Why a scores file can't be used, in one line."""

    message: str


def shipped() -> list[StaticScoreTable]:
    """Return the tables of this folder's `scores.yaml`."""
    return _TABLES.validate_python(yaml.safe_load(SHIPPED.read_text(encoding="utf-8")))


def read(path: Path) -> list[StaticScoreTable] | InvalidScoresFile:
    """Return the tables of a YAML (or JSON) file, or why they can't be used."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return InvalidScoresFile(f"cannot read {path}: {getattr(error, 'strerror', None) or error}")
    read = parse(text)
    return (
        InvalidScoresFile(f"{path}: {read.message}")
        if isinstance(read, InvalidScoresFile)
        else read
    )


def parse(text: str) -> list[StaticScoreTable] | InvalidScoresFile:
    """Return the tables in a YAML text, or why they can't be used."""
    try:
        tables = _TABLES.validate_python(yaml.safe_load(text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        return InvalidScoresFile(f"line {line} is not YAML: {error.problem}")
    except ValidationError as error:
        return InvalidScoresFile(_first(error))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return InvalidScoresFile(f"is not YAML: {error}".splitlines()[0])
    return _without_clashes(tables)


def _without_clashes(tables: list[StaticScoreTable]) -> list[StaticScoreTable] | InvalidScoresFile:
    if not tables:
        return InvalidScoresFile("has no table")
    for key, values in (
        ("path", [table.path for table in tables]),
        ("scoreName", [table.score_name for table in tables]),
    ):
        twice = [value for value, count in Counter(values).items() if count > 1]
        if twice:
            return InvalidScoresFile(f"{key} {twice[0]} is used twice")
    return tables


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False)[0]
    where = "".join(f"[{step}]" for step in found["loc"]) or "the document"
    return f"{where}: {found['msg']}"
