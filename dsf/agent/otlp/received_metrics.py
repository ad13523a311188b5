"""Received series for scorers with source type OpenTelemetry: what a query selects, for its range.

If several points of a series fall into one step, the last is kept. Deltas are added up from the
first one, so that they read like counters scraped by Prometheus. RE2 matches the regular
expressions of a query in linear time.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
import re2

from dsf.agent.failure import Failure
from dsf.agent.otlp.data_points import EXPONENTIAL, DataPoint, points
from dsf.agent.scorer_selection import read_scorers
from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.agent.wire.series_buffer import Labels, MemoryBounds, SeriesBuffer
from dsf.api.crd.scorer_source import DEFAULT_STEP_SECONDS
from dsf.api.scoring import series_selector
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.series_selector import NAME, Matcher, SeriesSelector
from dsf.api.untrusted_text import InvalidInput

if TYPE_CHECKING:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )


MEMORY_BYTES = 1 << 20
"""Memory limit of one regular expression with its automaton."""


class CompiledSelectors:
    """Several selectors; a series is selected if any of them matches."""

    def __init__(self, selectors: Iterable[SeriesSelector]) -> None:
        self._selectors = [[_test(matcher) for matcher in one.matchers] for one in selectors]

    def takes(self, labels: Labels) -> bool:
        """Tell whether any selector selects a series with these labels."""
        found = dict(labels)
        return any(all(test(found) for test in selector) for selector in self._selectors)

    def takes_name(self, name: str) -> bool:
        """Tell whether any selector may select a series with this name."""
        found = {NAME: name}
        return any(
            all(test(found) for test in selector if test.matcher.label == NAME)
            for selector in self._selectors
        )


def compile_selectors(selectors: Iterable[SeriesSelector]) -> CompiledSelectors | InvalidInput:
    """Return the selectors, ready to match; InvalidInput if RE2 rejects an expression."""
    try:
        return CompiledSelectors(selectors)
    except re2.error as error:
        return InvalidInput("InvalidSelector", f"a regular expression of the query: {_why(error)}")


def _test(matcher: Matcher) -> "_CompiledMatcher":
    if matcher.operator in {"=", "!="}:
        return _CompiledMatcher(matcher, None)
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES
    return _CompiledMatcher(matcher, re2.compile(matcher.value, options))


@dataclass(frozen=True, slots=True)
class _CompiledMatcher:
    """One matcher, and its regular expression if it has one."""

    matcher: Matcher
    pattern: "re2._Regexp | None"

    def __call__(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.matcher.label, "")
        if self.pattern is None:
            same = value == self.matcher.value
        else:
            same = self.pattern.fullmatch(value) is not None
        return same is (self.matcher.operator in {"=", "=~"})


def _why(error: re2.error) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


INSTANT_SECONDS = 300.0
"""Maximum age of the latest point for a range of 0: Prometheus' lookback delta."""

FUTURE_SECONDS = 300.0
"""How far the clock of a sender may be ahead."""

TAKEN, UNWANTED = "taken", ""
STALE = "older than a point of its series that was already received"
AHEAD = "more than 300 s ahead of the agent's clock"
TOO_MANY_SERIES = "more series than the agent keeps"
TOO_MANY_SAMPLES = "more samples than the agent keeps"
LABELS_LIMIT = 4096
"""Characters of the labels of one series: `MemoryBounds` counts on short ones."""

LABELS_TOO_LONG = f"labels of more than {LABELS_LIMIT} characters"


@dataclass(slots=True)
class SampleWindow:
    """The series of one scorer; `range_` and `step` are seconds, range 0 means the latest point.

    Windows with the same query, range and step are equal.
    """

    query: str
    range_: float
    step: float
    selectors: CompiledSelectors = field(compare=False)
    tracks: dict[Labels, SeriesBuffer] = field(default_factory=dict, compare=False)

    @property
    def kept(self) -> float:
        """The seconds for which a sample is kept."""
        return max(self.range_, INSTANT_SECONDS)

    def series(self, now: float) -> tuple[EncodedSeries, ...]:
        """Return the series to send to the scorer, as of `now` (unix seconds)."""
        since = now - (self.range_ or INSTANT_SECONDS)
        return tuple(
            EncodedSeries(
                msgspec.json.encode(dict(labels)), track.samples(self._first(track, since))
            )
            for labels, track in self.tracks.items()
            if track.times and track.times[-1] >= since
        )

    def _first(self, track: SeriesBuffer, since: float) -> int:
        return bisect_left(track.times, since) if self.range_ else len(track.times) - 1


@dataclass(slots=True)
class SampleWindows:
    """The windows of an agent by scorer name."""

    bounds: MemoryBounds = field(default_factory=MemoryBounds)
    windows: dict[str, SampleWindow] = field(default_factory=dict)
    taken: int = 0
    series_held: int = 0
    samples_held: int = 0
    _routes: dict[Labels, tuple[SampleWindow, ...]] = field(default_factory=dict)

    def configure(self, windows: Iterable[tuple[str, SampleWindow]]) -> None:
        """Set the windows by scorer name; a window equal to the previous one keeps its series."""
        before = self.windows
        self.windows = {
            name: before[name] if before.get(name) == window else window for name, window in windows
        }
        self._routes.clear()
        tracks = [track for window in self.windows.values() for track in window.tracks.values()]
        self.series_held = len(tracks)
        self.samples_held = sum(len(track.times) for track in tracks)

    def takes_name(self, name: str) -> bool:
        """Tell whether any window may select a series with this name."""
        return any(window.selectors.takes_name(name) for window in self.windows.values())

    def add(self, points: Iterable[DataPoint], now: float) -> Counter[str]:
        """Add points and return how many were refused, by reason; unselected ones are dropped."""
        outcomes = Counter(self._take(point, now) for point in points)
        del outcomes[UNWANTED]
        self.taken += outcomes.pop(TAKEN, 0)
        return outcomes

    def fetch(self, scorer: str, now: float) -> Sequence[EncodedSeries]:
        """Return the series of a scorer as of `now`, and drop samples that are too old."""
        window = self.windows.get(scorer)
        if window is None:
            return ()
        for labels, track in list(window.tracks.items()):
            self.samples_held -= track.drop_before(now - window.kept)
            if not track.times:
                del window.tracks[labels]
                self.series_held -= 1
        return window.series(now)

    def _take(self, point: DataPoint, now: float) -> str:
        windows = self._route(point.labels)
        if point.problem:
            return UNWANTED if point.problem == EXPONENTIAL and not windows else point.problem
        if not windows:
            return UNWANTED
        timed = point if point.seconds else point._replace(seconds=round(now, 3))
        if timed.seconds > now + FUTURE_SECONDS:
            return AHEAD
        problems = [self._keep(window, timed, now) for window in windows]
        return TAKEN if TAKEN in problems else problems[0]

    def _route(self, labels: Labels) -> tuple[SampleWindow, ...]:
        """Return the windows that select a series, from a cache by its labels."""
        found = self._routes.get(labels)
        if found is None:
            if len(self._routes) >= 2 * self.bounds.series:
                self._routes.clear()
            found = tuple(
                window for window in self.windows.values() if window.selectors.takes(labels)
            )
            if not _too_long(labels):
                self._routes[labels] = found
        return found

    def _keep(self, window: SampleWindow, point: DataPoint, now: float) -> str:
        if point.seconds < now - window.kept:
            return UNWANTED
        track = window.tracks.get(point.labels)
        if track is None:
            if _too_long(point.labels):
                return LABELS_TOO_LONG
            if self.series_held >= self.bounds.series:
                return TOO_MANY_SERIES
            track = window.tracks[point.labels] = SeriesBuffer()
            self.series_held += 1
        if self.samples_held >= self.bounds.samples:
            return TOO_MANY_SAMPLES
        added = track.add(point.seconds, point.value, window.step, delta=point.delta)
        self.samples_held += added or 0
        return STALE if added is None else TAKEN


def _too_long(labels: Labels) -> bool:
    return sum(len(name) + len(value) for name, value in labels) > LABELS_LIMIT


PART = 1000
"""Points that are added at a time: between two parts the event loop serves rounds."""

SOURCE_TYPE = "opentelemetry"


class ReceivedMetrics:
    """Keeps the received series that each scorer's query selects; `now` returns unix seconds."""

    def __init__(self, now: Callable[[], float], bounds: MemoryBounds | None = None) -> None:
        self._now = now
        self._windows = SampleWindows(bounds or MemoryBounds())
        self._problems: dict[str, InvalidInput] = {}
        self._refused = Counter[str]()
        self.configured = False

    def configure(self, text: str) -> None:
        """Keep the series for the scorers in the text of `data.summaries`; ignore invalid text."""
        read = read_scorers(text)
        if isinstance(read, InvalidInput):
            return
        self._problems = {}
        self._windows.configure(self._selected(read.summaries))
        self.configured = True

    def adding(self, request: "ExportMetricsServiceRequest") -> Iterator[Counter[str]]:
        """Add an export in parts; yield after each how many points were refused, by reason."""
        found = points(request, self._windows.takes_name)
        while part := list(islice(found, PART)):
            refused = self._windows.add(part, self._now())
            self._refused += refused
            yield refused

    @property
    def outcomes(self) -> dict[str, int]:
        """The number of points taken so far, and refused by reason."""
        return {TAKEN: self._windows.taken, **self._refused}

    @property
    def held(self) -> tuple[int, int]:
        """The number of series and samples in memory."""
        return self._windows.series_held, self._windows.samples_held

    def fetch(self, summary: ScorerSummary, now: float) -> FetchedSeries | Failure:
        """Return the series of a scorer as of `now` (unix seconds).

        If nothing was received, that is a failure: after a restart it does not mean "no series".
        """
        key = _window_name(summary)
        problem = self._problems.get(key)
        if problem:
            return Failure("source", problem.reason, problem.message)
        series = self._windows.fetch(key, now)
        if not series:
            message = (
                "no data point that the query selects was received within its range: check that the"
                " sender reaches this agent, and the names and attributes in the query"
            )
            return Failure("source", "NothingReceived", message)
        return FetchedSeries(tuple(series))

    def _selected(self, summaries: tuple[ScorerSummary, ...]) -> Iterator[tuple[str, SampleWindow]]:
        for summary in (one for each in summaries for one in each.single_sources):
            if summary.source_type.strip().lower() != SOURCE_TYPE:
                continue
            window = _window(summary)
            if isinstance(window, InvalidInput):
                self._problems[_window_name(summary)] = window
            else:
                yield _window_name(summary), window


def _window_name(summary: ScorerSummary) -> str:
    """Return a name for the window of a scorer's source; no DynamicScorer's name has a slash."""
    return f"{summary.name}/{summary.source_name}" if summary.source_name else summary.name


def _window(summary: ScorerSummary) -> SampleWindow | InvalidInput:
    selectors = series_selector.parse(summary.source_query)
    takes = selectors if isinstance(selectors, InvalidInput) else compile_selectors(selectors)
    if isinstance(takes, InvalidInput):
        return takes
    step = summary.source_step if summary.source_step > 0 else DEFAULT_STEP_SECONDS
    return SampleWindow(summary.source_query, max(summary.source_range, 0), step, takes)
