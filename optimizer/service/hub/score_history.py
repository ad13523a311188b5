"""A score of a managed cluster over time, as series of points that a page draws.

A Prometheus is asked for it, within limits of time, bytes and calls.
"""

import asyncio
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallDeadline, OutboundRequest, exchange
from dsf.agent.wire.prometheus_answer import FetchedSeries, parse_query_answer
from dsf.agent.wire.prometheus_query import build_query, on_server
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.crd.scorer_source import DEFAULT_SOURCE_PATH
from optimizer.wire.base import Name, ResultPart, Sentence
from optimizer.wire.request_problem import ProblemKind, RequestProblem

MAX_SERIES = 50
"""Series of one answer: more lines than a picture tells apart."""

POINTS = 240
"""Points of one series: about one for each two pixels of a phone."""

FLEET_POINTS = 96
"""Points of one series over all clusters, of which Prometheus reads thousands for each point."""

MIN_STEP_SECONDS = 60
"""Agents publish every minute or less often."""

BAND = {"p10": 0.1, "p50": 0.5, "p90": 0.9}
"""The quantiles over clusters that a band and its middle show."""

Point = tuple[int, float | None]
Labels = dict[str, str]

_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")
"""What `ds_meta` is of an entry that is a quantile of a forecast, such as p90."""


class HistorySeries(ResultPart):
    """The values of an app on a device: points of Unix seconds and value.

    `low` and `high` are the edges of a band around them, and their names; they are empty if there
    is none. Of one cluster they are the lowest and the highest quantile that the scorer publishes.
    """

    name: Name = Field(description="App, device and meta; empty if the score has none of them.")
    app: Name
    device: Name
    points: tuple[Point, ...] = Field(description="A null between points: there was no value.")
    low: tuple[Point, ...] = ()
    high: tuple[Point, ...] = ()
    low_name: Name = ""
    high_name: Name = ""


class ScoreHistory(ResultPart):
    """The response of GET /scores/history."""

    score: Name
    cluster: Name = Field(description="Empty: all. Then points are the median over the clusters.")
    hours: int
    until: int = Field(description="Unix seconds at which the time asked for ends.")
    step_seconds: int
    series: tuple[HistorySeries, ...] = Field(description="By app and device.")
    omitted_series: int
    warnings: tuple[Sentence, ...] = Field((), description="What Prometheus says of its answer.")


@dataclass(frozen=True, slots=True)
class HistoryWindow:
    """The last hours until `now` (Unix seconds) in so many points; 0 points: as it is now."""

    hours: int
    now: float
    points: int

    @property
    def seconds(self) -> int:
        """The length of the time asked for; 0 asks for the instant value."""
        return self.hours * 3600 if self.points else 0

    @property
    def step(self) -> int:
        """The seconds between two points."""
        return max(MIN_STEP_SECONDS, self.seconds // max(1, self.points))


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    """A score of a cluster over the last `hours` until `now` (Unix seconds).

    `score` and `cluster` are names of Kubernetes objects; without a cluster, all of them count.
    `app` is any text; empty: all apps.
    """

    score: str
    cluster: str
    hours: int
    now: float
    app: str = ""

    @property
    def window(self) -> HistoryWindow:
        """The time that is asked for."""
        return HistoryWindow(self.hours, self.now, POINTS if self.cluster else FLEET_POINTS)

    @property
    def query(self) -> str:
        """The PromQL query of the agents' gauge, one series for each app, device and meta.

        Agents publish a score by its own name, from which the object's name was made: a `-` stands
        for any character that names of objects do not have.
        """
        pattern = self.score.replace(".", "[.]").replace("-", "[^a-z0-9.]")
        chosen = f'ds_score_name=~"(?i){pattern}"'
        if self.app:
            chosen += f",ds_app={json.dumps(self.app)}"
        by = "ds_app, ds_device, ds_meta"
        if self.cluster:
            return f'avg by ({by}) (dynamic_score{{ds_cluster="{self.cluster}",{chosen}}})'
        of_clusters = f"avg by (ds_cluster, {by}) (dynamic_score{{{chosen}}})"
        return either(
            {name: f"quantile by ({by}) ({at}, {of_clusters})" for name, at in BAND.items()}
        )


def either(queries: Mapping[str, str]) -> str:
    """Return one query for several, whose series have a label `of` with the name of theirs."""
    return " or ".join(
        f'label_replace({query}, "of", "{name}", "", "")' for name, query in queries.items()
    )


def score_history(question: HistoryQuestion, found: FetchedSeries) -> ScoreHistory:
    """Return the history in the series of an answer; values that are no numbers are null."""
    kept: dict[tuple[str, str, str], dict[str, dict[str, tuple[Point, ...]]]] = {}
    for one in found.series:
        labels, points = read_series(question.window, one)
        meta = labels.get("ds_meta", "")
        other = "" if _QUANTILE.fullmatch(meta) else meta
        key = labels.get("ds_app", ""), labels.get("ds_device", ""), other
        kept.setdefault(key, {}).setdefault(meta, {})[labels.get("of", "")] = points
    series = [_line(key, metas) for key, metas in sorted(kept.items())[:MAX_SERIES]]
    return ScoreHistory(
        score=question.score,
        cluster=question.cluster,
        hours=question.hours,
        until=int(question.now),
        step_seconds=question.window.step,
        series=tuple(series),
        omitted_series=len(kept) - len(series),
        warnings=found.warnings,
    )


def _line(
    key: tuple[str, str, str], metas: Mapping[str, Mapping[str, tuple[Point, ...]]]
) -> HistorySeries:
    """Return the line of an app on a device: the score, its median or what is nearest to it."""
    share = {meta: float(found[1]) for meta in metas if (found := _QUANTILE.fullmatch(meta))}
    middle = min(metas, key=lambda meta: abs(share.get(meta, 50) - 50))
    edges = metas[middle]
    if "" in edges:
        edges = {meta: points[""] for meta, points in metas.items() if "" in points}
        low, high = (
            min(share, key=share.__getitem__, default=""),
            max(share, key=share.__getitem__, default=""),
        )
    else:
        middle, low, high = "p50", "p10", "p90"
    whole = share.get(low, 10) < share.get(middle, 50) < share.get(high, 90)
    return HistorySeries(
        name=f"{key[0]};{key[1]};{key[2]}".strip(";"),
        app=key[0],
        device=key[1],
        points=edges.get(middle, ()),
        low=edges.get(low, ()) if whole else (),
        high=edges.get(high, ()) if whole else (),
        low_name=low if whole else "",
        high_name=high if whole else "",
    )


def read_series(window: HistoryWindow, one: EncodedSeries) -> tuple[Labels, tuple[Point, ...]]:
    """Return labels and points of a series, with a null for what is no number and in each gap."""
    labels: Labels = json.loads(one.labels)
    read = json.loads(bytes(one.values))
    return labels, tuple(_points(window, [read] if one.instant else read))


def _points(window: HistoryWindow, samples: Sequence[Any]) -> Iterator[Point]:
    """Yield the points within the time asked for, and a null in each gap between them."""
    before, left = None, max(1, window.points) + 1
    for time, text in samples:
        # The last point may be later by the fraction of a millisecond that a query rounds away.
        if left == 0 or not -1 <= window.now - time <= window.seconds + window.step:
            continue
        if before is not None and time - before > 1.5 * window.step:
            yield int(before + window.step), None
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

MAX_BYTES = 8 << 20
"""Bytes of an answer: twice what MAX_READ series of a cluster have."""

MAX_READ = 1500
"""Series of an answer, those that are not shown included."""

MAX_CALLS = 4
"""Calls at once; others wait, so that callers can't take Prometheus or this process."""

NOT_CONFIGURED = ProblemKind.HISTORY_NOT_CONFIGURED.because(
    "start it with --prometheus-url (chart: prometheusURL), the URL of the Prometheus that"
    " scrapes the agents; scores are published there as dynamic_score"
)


class PrometheusHistory:
    """The history that the Prometheus at a URL has; without a URL, there is none."""

    def __init__(self, url: str = "") -> None:
        self._url = url
        self._calls = asyncio.Semaphore(MAX_CALLS)

    async def read(self, question: HistoryQuestion) -> ScoreHistory | RequestProblem:
        """Return the history of a score, or why there is none."""
        found = await self.ask(question.query, question.window)
        if isinstance(found, RequestProblem):
            return found
        return await asyncio.to_thread(score_history, question, found)

    async def ask(self, query: str, window: HistoryWindow) -> FetchedSeries | RequestProblem:
        """Return the series of a query, or why there are none."""
        if not self._url:
            return NOT_CONFIGURED
        async with self._calls:
            return await self._answer(query, window)

    async def _answer(self, query: str, window: HistoryWindow) -> FetchedSeries | RequestProblem:
        call = build_query(
            on_server(DEFAULT_SOURCE_PATH, self._url),
            query,
            range_=window.seconds,
            step=window.step,
            now=window.now,
        )
        asked = OutboundRequest("GET", f"{call.url}?{call.encoded}")
        if call.method == "POST":
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            asked = OutboundRequest("POST", call.url, call.encoded.encode(), form)
        async with http_client() as client:
            answer = await exchange(
                client,
                asked,
                stage="source",
                deadline=CallDeadline.within(CALL_SECONDS),
                max_bytes=MAX_BYTES,
            )
        if isinstance(answer, Failure):
            return _unavailable(answer)
        found = await asyncio.to_thread(parse_query_answer, call.url, answer, MAX_READ, call.asked)
        return _unavailable(found) if isinstance(found, Failure) else found


def _unavailable(failure: Failure) -> RequestProblem:
    return ProblemKind.HISTORY_UNAVAILABLE.because(
        f"the Prometheus of the optimizer: {failure.reason}: {failure.message}"
    )
