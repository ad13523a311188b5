"""The agent's side of source type OpenTelemetry: what was received, ready to be scored."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from dsf.agent.failure import Failure
from dsf.agent.otlp.memory.compiled_selectors import compiled
from dsf.agent.otlp.memory.data_points import points
from dsf.agent.otlp.memory.sample_windows import TAKEN, MemoryBounds, SampleWindow, SampleWindows
from dsf.agent.schedule import scorer_selection
from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.api.crd.dynamic_scorer import DEFAULT_STEP_SECONDS
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring import series_selector
from dsf.api.scoring.scorer_summary import ScorerSummary

if TYPE_CHECKING:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
    )

PART = 1000
"""Points that are taken at a time."""

SOURCE_TYPE = "opentelemetry"


class ReceivedMetrics:
    """Received series per scorer; `now` returns unix seconds."""

    def __init__(self, now: Callable[[], float], bounds: MemoryBounds | None = None) -> None:
        self._now = now
        self._windows = SampleWindows(bounds or MemoryBounds())
        self._problems: dict[str, InvalidInput] = {}
        self._refused = Counter[str]()
        self.configured = False

    def configure(self, text: str) -> None:
        """Keep what the scorers in the text of `data.summaries` want; invalid text does nothing."""
        read = scorer_selection.parse(text)
        if isinstance(read, InvalidInput):
            return
        self._problems = {}
        self._windows.configure(self._wanted(read.summaries))
        self.configured = True

    def add(self, request: "ExportMetricsServiceRequest") -> dict[str, int]:
        """Take an export and return how many points were refused, by reason."""
        return dict(sum(self.adding(request), Counter[str]()))

    def adding(self, request: "ExportMetricsServiceRequest") -> Iterator[Counter[str]]:
        """Take an export in parts, so that others may go on in between; yield what was refused."""
        found = points(request, self._windows.takes_name)
        while part := list(islice(found, PART)):
            refused = self._windows.add(part, self._now())
            self._refused += refused
            yield refused

    @property
    def outcomes(self) -> dict[str, int]:
        """How many points have been taken, and refused by reason."""
        return {TAKEN: self._windows.taken, **self._refused}

    @property
    def held(self) -> tuple[int, int]:
        """How many series and samples are held."""
        return self._windows.series_held, self._windows.samples_held

    def fetch(self, summary: ScorerSummary, now: float) -> FetchedSeries | Failure:
        """Return the series of a scorer as of `now` (unix seconds).

        Nothing received is a failure: right after a start it does not mean that there is nothing.
        """
        problem = self._problems.get(summary.name)
        if problem:
            return Failure("source", problem.reason, problem.message)
        series = self._windows.fetch(summary.name, now)
        if not series:
            message = (
                "no data point that the query selects has been received for its range: does the"
                " sender reach this agent, and are the query's names and attributes right?"
            )
            return Failure("source", "NothingReceived", message)
        return FetchedSeries(tuple(series))

    def _wanted(self, summaries: tuple[ScorerSummary, ...]) -> Iterator[tuple[str, SampleWindow]]:
        for summary in summaries:
            if summary.source_type.strip().lower() != SOURCE_TYPE:
                continue
            window = _window(summary)
            if isinstance(window, InvalidInput):
                self._problems[summary.name] = window
            else:
                yield summary.name, window


def _window(summary: ScorerSummary) -> SampleWindow | InvalidInput:
    selectors = series_selector.parse(summary.source_query)
    takes = selectors if isinstance(selectors, InvalidInput) else compiled(selectors)
    if isinstance(takes, InvalidInput):
        return takes
    step = summary.source_step if summary.source_step > 0 else DEFAULT_STEP_SECONDS
    return SampleWindow(summary.source_query, max(summary.source_range, 0), step, takes)
