"""A score of a managed cluster over time, as series of points that a page draws.

A Prometheus is asked for it, within limits of time, bytes and calls.
"""

import asyncio
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallDeadline, OutboundRequest, exchange
from dsf.agent.wire.prometheus_answer import parse_query_answer
from dsf.agent.wire.prometheus_query import build_query, on_server
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.crd.scorer_source import DEFAULT_SOURCE_PATH
from optimizer.wire.base import Name, ResultPart
from optimizer.wire.request_problem import NOT_FOUND, UNAVAILABLE, RequestProblem

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
    series = sorted(
        (_series(question, one) for one in found), key=lambda one: (one.app, one.device)
    )
    return ScoreHistory(
        score=question.score,
        cluster=question.cluster,
        hours=question.hours,
        step_seconds=question.step,
        series=tuple(series[:MAX_SERIES]),
        omitted_series=max(0, len(series) - MAX_SERIES),
    )


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


CALL_SECONDS = 10.0
"""Seconds that Prometheus may take: a person waits for the answer."""

MAX_BYTES = 4 << 20
"""Bytes of an answer: twice what MAX_READ series of the longest question have."""

MAX_READ = 500
"""Series of an answer, those that are not shown included."""

MAX_CALLS = 4
"""Calls at once; others wait, so that callers can't take Prometheus or this process."""

NOT_CONFIGURED = RequestProblem(
    status=NOT_FOUND,
    reason="HistoryNotConfigured",
    title="The optimizer knows no Prometheus",
    detail="start it with --prometheus-url (chart: prometheusURL), the URL of the Prometheus that"
    " scrapes the agents; scores are published there as dynamic_score",
)


class PrometheusHistory:
    """The history that the Prometheus at a URL has; without a URL, there is none."""

    def __init__(self, url: str = "") -> None:
        self._url = url
        self._calls = asyncio.Semaphore(MAX_CALLS)

    async def read(self, question: HistoryQuestion) -> ScoreHistory | RequestProblem:
        """Return the history, or why there is none."""
        if not self._url:
            return NOT_CONFIGURED
        async with self._calls:
            return await self._read(question)

    async def _read(self, question: HistoryQuestion) -> ScoreHistory | RequestProblem:
        call = build_query(
            on_server(DEFAULT_SOURCE_PATH, self._url),
            question.query,
            range_=question.seconds,
            step=question.step,
            now=question.now,
        )
        async with http_client() as client:
            answer = await exchange(
                client,
                OutboundRequest("GET", f"{call.url}?{call.encoded}"),
                stage="source",
                deadline=CallDeadline.within(CALL_SECONDS),
                max_bytes=MAX_BYTES,
            )
        if isinstance(answer, Failure):
            return _unavailable(answer)
        found = await asyncio.to_thread(parse_query_answer, call.url, answer, MAX_READ, call.asked)
        if isinstance(found, Failure):
            return _unavailable(found)
        return await asyncio.to_thread(score_history, question, found.series)


def _unavailable(failure: Failure) -> RequestProblem:
    return RequestProblem(
        status=UNAVAILABLE,
        reason="HistoryUnavailable",
        title="Prometheus did not give the history",
        detail=f"the server of --prometheus-url: {failure.reason}: {failure.message}",
    )
