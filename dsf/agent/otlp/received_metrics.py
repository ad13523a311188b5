"""Received series for scorers with source type OpenTelemetry."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from dsf.agent.failure import Failure
from dsf.agent.otlp.data_points import points
from dsf.agent.otlp.sample_windows import (
    TAKEN,
    SampleWindow,
    SampleWindows,
    compile_selectors,
)
from dsf.agent.round_schedule import read_scorers
from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.agent.wire.series_buffer import MemoryBounds
from dsf.api.crd.scorer_source import DEFAULT_STEP_SECONDS
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring import series_selector
from dsf.api.scoring.scorer_summary import ScorerSummary

if TYPE_CHECKING:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )


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
