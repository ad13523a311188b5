"""A score of a managed cluster over time, as series of points that a page draws."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from dsf.agent.wire.scoring_request import EncodedSeries
from optimizer.wire.base import Name, ResultPart

MAX_SERIES = 50
"""Series of one answer: more lines than a picture tells apart."""

POINTS = 240
"""Points of one series: about one for each two pixels of a phone."""

MIN_STEP_SECONDS = 60
"""Agents publish every minute or less often."""

Point = tuple[int, float | None]


class HistorySeries(ResultPart):
    """The values of an app on a device: points of Unix seconds and value."""

    name: Annotated[Name, Field(description="App and device; empty if the score has neither.")]
    app: Name
    device: Name
    points: Annotated[
        tuple[Point, ...], Field(description="A null between points: there was no value.")
    ]


class ScoreHistory(ResultPart):
    """The response of GET /scores/history."""

    score: Name
    cluster: Name
    hours: int
    step_seconds: int
    series: Annotated[tuple[HistorySeries, ...], Field(description="By app and device.")]
    omitted_series: int


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    """A score of a cluster over the last `hours` until `now` (Unix seconds).

    `score` and `cluster` are names of Kubernetes objects.
    """

    score: str
    cluster: str
    hours: int
    now: float

    @property
    def seconds(self) -> int:
        """The length of the time asked for."""
        return self.hours * 3600

    @property
    def step(self) -> int:
        """The seconds between two points."""
        return max(MIN_STEP_SECONDS, self.seconds // POINTS)

    @property
    def query(self) -> str:
        """The PromQL query of the agents' gauge, one series for each app and device.

        Agents publish a score by its own name, from which the object's name was made: a `-` stands
        for any character that names of objects do not have.
        """
        pattern = self.score.replace(".", "[.]").replace("-", "[^a-z0-9.]")
        return (
            "avg by (ds_app, ds_device) (dynamic_score{"
            f'ds_cluster="{self.cluster}",ds_score_name=~"(?i){pattern}"' + "})"
        )


def score_history(question: HistoryQuestion, found: Iterable[EncodedSeries]) -> ScoreHistory:
    """Return the history in the series of an answer; values that are no numbers are null."""
    series = sorted((_series(question, one) for one in found), key=_order)
    return ScoreHistory(
        score=question.score,
        cluster=question.cluster,
        hours=question.hours,
        step_seconds=question.step,
        series=tuple(series[:MAX_SERIES]),
        omitted_series=max(0, len(series) - MAX_SERIES),
    )


def _order(series: HistorySeries) -> tuple[str, str]:
    return series.app, series.device


def _series(question: HistoryQuestion, one: EncodedSeries) -> HistorySeries:
    labels: dict[str, str] = json.loads(one.labels)
    app, device = labels.get("ds_app", ""), labels.get("ds_device", "")
    read = json.loads(bytes(one.values))
    samples: Sequence[Any] = [read] if one.instant else read
    return HistorySeries(
        name=f"{app};{device}".strip(";"),
        app=app,
        device=device,
        points=tuple(_points(question, samples)),
    )


def _points(question: HistoryQuestion, samples: Sequence[Any]) -> Iterator[Point]:
    """Yield the points within the time asked for, and a null in each gap between them."""
    before, left = None, POINTS + 1
    for time, text in samples:
        if left == 0 or not 0 <= question.now - time <= question.seconds + question.step:
            continue
        if before is not None and time - before > 1.5 * question.step:
            yield int(before + question.step), None
        yield int(time), _value(text)
        before, left = time, left - 1


def _value(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
