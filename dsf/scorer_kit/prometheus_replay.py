"""A server with the Prometheus HTTP API that replays a recording.

It evaluates no PromQL. It serves the recorded answers of the recorded queries at `query_range` and
`query`. `replaying` repeats them without end, by the time that is asked. `PausedReplay` stands at
one step of the recording, whatever time it is.

Source: https://prometheus.io/docs/prometheus/latest/querying/api/
"""

import asyncio
import json
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from dsf.api.untrusted_text import listed
from dsf.runtime.endpoints import serving

MAX_POINTS = 11_000
"""Points of one series in a range query; Prometheus refuses more, too."""

ANY_QUERY = ""
"""Stands for each query that has no answer of its own."""

Matrix = list[dict[str, Any]]
"""Series with their samples, as Prometheus answers a range query."""


@dataclass(frozen=True, slots=True)
class RecordedSeries:
    """One recorded series: its labels and one value per step, None where there was no sample."""

    metric: dict[str, str]
    values: tuple[float | None, ...]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read a series; a hole is null. Raises KeyError, TypeError, ValueError."""
        metric, values = document["metric"], tuple(document["values"])
        if not isinstance(metric, dict) or not all(isinstance(one, str) for one in metric.values()):
            raise TypeError("metric: labels are texts")
        if not values or not all(value is None or math.isfinite(value) for value in values):
            raise ValueError("values: at least one is needed, each a finite number or null")
        return cls(metric, values)


@dataclass(frozen=True, slots=True)
class Recording:
    """The recorded answers by query; `step` is the number of seconds between two values.

    The answer to ANY_QUERY is that to each query without another. The first value is of the time
    `start` in unix seconds, None if nobody knows.
    """

    step: int
    queries: Mapping[str, tuple[RecordedSeries, ...]]
    start: int | None = None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a recording from a JSON file. Raises OSError, KeyError, TypeError, ValueError."""
        document = json.loads(path.read_text(encoding="utf-8"))
        queries = {
            item["query"]: tuple(map(RecordedSeries.read, item["series"]))
            for item in document["queries"]
        }
        if not document["step"] >= 1:
            raise ValueError("step: a whole number of seconds is needed")
        return cls(int(document["step"]), queries)

    @property
    def length(self) -> int:
        """The number of steps of which each series has a value or a hole, at least 1."""
        return min(len(one.values) for series in self.queries.values() for one in series)

    def moment(self, step: int) -> datetime | None:
        """Return when a step was, in UTC; None if the recording has no times."""
        if self.start is None:
            return None
        return datetime.fromtimestamp(self.start + step * self.step, UTC)

    def answer(self, query: str) -> tuple[RecordedSeries, ...] | None:
        """Return the answer to a query; None if it is not recorded."""
        return self.queries.get(query, self.queries.get(ANY_QUERY))


@dataclass(frozen=True, slots=True)
class Repeated:
    """A recording that repeats without end.

    `labels` are added to series that lack them. `shift` moves it by that number of steps, so that
    clusters with the same recording have different values.
    """

    recording: Recording
    labels: Mapping[str, str] = field(default_factory=dict)
    shift: int = 0

    def samples(self, query: str, times: Iterable[float]) -> Matrix | None:
        """Return the answer to a query in matrix form; None if it is not recorded."""
        found, recording = self.recording.answer(query), self.recording
        if found is None:
            return None
        series = [RecordedSeries({**self.labels, **one.metric}, one.values) for one in found]
        start, step = recording.start or 0, recording.step
        return matrix(series, times, step=step, shift=self.shift, start=start)


def matrix(
    series: Iterable[RecordedSeries],
    times: Iterable[float],
    *,
    step: int,
    shift: int,
    start: int = 0,
) -> Matrix:
    """Return the series in matrix form at the given times in unix seconds.

    They begin at `start` and repeat without end, moved by `shift` steps. Holes are left out, and
    series without a sample.
    """
    indices = [(time, int((time - start) // step) + shift) for time in times]
    found = ({"metric": one.metric, "values": _samples(one.values, indices)} for one in series)
    return [one for one in found if one["values"]]


def _samples(
    values: Sequence[float | None], indices: Iterable[tuple[float, int]]
) -> list[list[float | str]]:
    recorded = ((time, values[index % len(values)]) for time, index in indices)
    return [[time, format(value, ".6g")] for time, value in recorded if value is not None]


@asynccontextmanager
async def replaying(*repeated: Repeated, port: int = 0) -> AsyncIterator[str]:
    """Serve recordings on loopback, the first that has the query; yield the base URL."""

    def first(query: str, times: Sequence[float]) -> Matrix | None:
        answers = (one.samples(query, times) for one in repeated)
        return next((found for found in answers if found is not None), None)

    known = [query for one in repeated for query in one.recording.queries]
    async with _served(_Replay(known, first), port) as url:
        yield url


class PausedReplay:
    """A recording that stands at one step, whatever time it is: no later sample is known.

    The newest sample that a query asks for is that of the step. An earlier one is as many steps
    earlier as it is asked for.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._step = 0
        self._asked = Counter[str]()
        self._news = asyncio.Event()

    def serving(self) -> AbstractAsyncContextManager[str]:
        """Serve the recording on loopback; yield the base URL."""
        return _served(_Replay(tuple(self._recording.queries), self._latest))

    def show(self, step: int) -> None:
        """Stand at a step of the recording from now on."""
        self._step = step
        self._asked.clear()

    async def asked(self, times: int) -> None:
        """Wait until each query was asked so many times since `show`."""
        while any(self._asked[query] < times for query in self._recording.queries):
            self._news.clear()
            await self._news.wait()

    def _latest(self, query: str, times: Sequence[float]) -> Matrix | None:
        series = self._recording.answer(query)
        if series is None:
            return None
        self._asked[query] += 1
        self._news.set()
        steps = [self._step - round((times[-1] - time) / self._recording.step) for time in times]
        known = [(time, step) for time, step in zip(times, steps, strict=True) if step >= 0]
        found = ({"metric": one.metric, "values": _samples(one.values, known)} for one in series)
        return [one for one in found if one["values"]]


@asynccontextmanager
async def serving_samples(
    samples: Callable[[str, Sequence[float]], Matrix | None], warning: str
) -> AsyncIterator[str]:
    """Serve what `samples` answers at times in unix seconds, with a warning; yield the base URL."""
    async with _served(_Replay((), samples, warning)) as url:
        yield url


@asynccontextmanager
async def _served(replay: "_Replay", port: int = 0) -> AsyncIterator[str]:
    app = web.Application()
    for path, handler in (
        ("/api/v1/query_range", replay.query_range),
        ("/api/v1/query", replay.query),
    ):
        app.router.add_route("GET", path, handler)
        app.router.add_route("POST", path, handler)
    app.router.add_get("/-/ready", _ready)
    async with serving(app, f"127.0.0.1:{port}") as url:
        yield url


async def _ready(_: web.Request) -> web.Response:
    return web.Response(text="ready\n")


class _Replay:
    def __init__(
        self,
        known: Sequence[str],
        samples: Callable[[str, Sequence[float]], Matrix | None],
        warning: str = "",
    ) -> None:
        self._known = known
        self._samples = samples
        self._said = {"warnings": [warning]} if warning else {}

    async def query_range(self, request: web.Request) -> web.Response:
        parameters = await _parameters(request)
        try:
            start, end, step = (float(parameters[name]) for name in ("start", "end", "step"))
            count = int((end - start) // step) + 1
        except (KeyError, ValueError, ZeroDivisionError, OverflowError) as error:
            return _bad(f"invalid parameter: {error}")
        if not 0 < count <= MAX_POINTS:
            return _bad(f"start, end and step must ask for 1 to {MAX_POINTS} points")
        return self._answer(parameters, [start + index * step for index in range(count)])

    async def query(self, request: web.Request) -> web.Response:
        parameters = await _parameters(request)
        try:
            time = float(parameters["time"])
        except (KeyError, ValueError) as error:
            return _bad(f"invalid parameter: {error}")
        if not math.isfinite(time):
            return _bad("invalid parameter: time must be finite")
        return self._answer(parameters, [time], instant=True)

    def _answer(
        self, parameters: Mapping[str, str], times: list[float], *, instant: bool = False
    ) -> web.Response:
        query = parameters.get("query", "")
        result = self._samples(query, times)
        if result is None:
            return _bad(f"the recording has no answer to {query!r}; it has: {listed(self._known)}")
        if instant:
            result = [{"metric": one["metric"], "value": one["values"][0]} for one in result]
        data = {"resultType": "vector" if instant else "matrix", "result": result}
        return web.json_response({"status": "success", "data": data, **self._said})


async def _parameters(request: web.Request) -> dict[str, str]:
    form = await request.post() if request.method == "POST" else {}
    return {**request.query, **{key: str(value) for key, value in form.items()}}


def _bad(message: str) -> web.Response:
    body = {"status": "error", "errorType": "bad_data", "error": message}
    return web.json_response(body, status=400)
