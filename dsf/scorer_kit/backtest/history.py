"""The past of series at equal steps: windows, and what came true after them."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.scoring.dimension_format import PLACEHOLDERS
from dsf.scorer_kit.series_file import Labels, Samples, at_steps, labels_of, span, why_not_apart

START = 1_700_000_000
"""Unix seconds of the first step of a recording: equal runs send equal requests."""

Values = Sequence[float | None]
"""A value for each step, None for a hole."""


class UnusableHistory(Exception):
    """A backtest can't be made of a history; the message says why."""


@dataclass(frozen=True)
class PastSeries:
    """One series: its labels, and its values, None for a hole.

    `truth` has at each step what a forecast of that step is compared with. Without it that is the
    mean of the values over the horizon.
    """

    metric: Mapping[str, str]
    values: Values
    truth: Values | None = None

    @cached_property
    def measured(self) -> "PastSeries":
        """The series of what is forecast: the truth if there is one, else the values."""
        return self if self.truth is None else PastSeries(self.metric, self.truth)

    def came_true(self, end: int, ahead: int) -> float | None:
        """Return the truth of a forecast for `ahead` steps from `end` on; None without one."""
        if self.truth is None:
            return self.mean(end, end + ahead)
        return self.truth[end + ahead - 1]

    @cached_property
    def labels(self) -> Labels:
        """The labels by which a result is matched."""
        return labels_of(self.metric)

    @cached_property
    def scale(self) -> float:
        """The mean change of what is forecast from step to step, the unit of scaled errors."""
        known = [value for value in self.measured.values if value is not None]
        changes = [abs(after - before) for before, after in pairwise(known)]
        return math.fsum(changes) / len(changes) if changes else 0.0

    def mean(self, start: int, end: int) -> float | None:
        """Return the mean of the steps from `start` to before `end`; None without half of them."""
        start = max(start, 0)
        totals, counts = self._sums
        count = counts[end] - counts[start]
        return (totals[end] - totals[start]) / count if 2 * count >= end - start > 0 else None

    def last(self, end: int) -> float | None:
        """Return the newest value before the step `end`."""
        newest = (self.values[step] for step in range(end - 1, -1, -1))
        return next((value for value in newest if value is not None), None)

    @cached_property
    def _sums(self) -> tuple[list[float], list[int]]:
        """Return the sum and the number of the values before each step."""
        zeros = [value or 0.0 for value in self.values]
        known = [int(value is not None) for value in self.values]
        return [0.0, *accumulate(zeros)], [0, *accumulate(known)]


@dataclass(frozen=True)
class History:
    """Series of equal length; `step` and `start` are in (unix) seconds."""

    step: int
    series: tuple[PastSeries, ...]
    start: int = START

    def __len__(self) -> int:
        return len(self.series[0].values) if self.series else 0

    @property
    def holes(self) -> int:
        """The number of steps without a sample, of all series."""
        return sum(value is None for one in self.series for value in one.values)

    @property
    def measured(self) -> bool:
        """Whether the series have a truth of their own."""
        return any(one.truth is not None for one in self.series)

    def time(self, step: int) -> int:
        """Return the time of a step in unix seconds."""
        return self.start + step * self.step

    def window(self, start: int, end: int) -> list[EncodedSeries]:
        """Return what a source would answer for the steps from `start` to before `end`.

        A hole is left out, and so is a series without a sample.
        """
        found = []
        for one, samples in zip(self.series, self._samples, strict=True):
            text = [sample for sample in samples[start:end] if sample]
            if text:
                metric = json.dumps(dict(one.metric)).encode()
                found.append(EncodedSeries(metric, f"[{','.join(text)}]".encode()))
        return found

    def coarser(self, step: int) -> "History":
        """Return every n-th value, as a source would with that step. Raises UnusableHistory."""
        if step % self.step:
            raise UnusableHistory(
                f"the step of {step} s is not a multiple of the history's step of {self.step} s:"
                f" set --step to such a multiple, for example {self.step}"
            )
        every = step // self.step
        series = tuple(
            PastSeries(one.metric, one.values[::every], one.truth and one.truth[::every])
            for one in self.series
        )
        return History(step, series, self.start)

    @cached_property
    def _samples(self) -> list[list[str]]:
        """Return the JSON of each sample, empty for a hole."""
        return [
            [
                "" if value is None else f'[{self.time(index)},"{value!r}"]'
                for index, value in enumerate(one.values)
            ]
            for one in self.series
        ]


def named_apart(series: Sequence[PastSeries]) -> tuple[PastSeries, ...]:
    """Return the series. Raises UnusableHistory if two have the same labels."""
    if why := why_not_apart(one.metric for one in series):
        raise UnusableHistory(why)
    return tuple(series)


def from_samples(series: Samples, step: int) -> History:
    """Return the history of samples, each moved to the nearest step.

    Numbers that are not finite are holes. Raises UnusableHistory if there is none, or too much.
    """
    found = span(series, step)
    if isinstance(found, str):
        raise UnusableHistory(f"the history can't be used: {found}")
    start, length = found
    return History(step, past_series(series, step, start, length), round(start))


def past_series(series: Samples, step: int, start: float, length: int) -> tuple[PastSeries, ...]:
    """Return series with each sample at the nearest of the steps from `start` on."""
    return named_apart(
        [PastSeries(metric, at_steps(samples, step, start, length)) for metric, samples in series]
    )


class SeriesIndex:
    """Finds the series of a result: by all labels, or by those that name an entry."""

    def __init__(self, series: Sequence[PastSeries]) -> None:
        self._all = {one.labels for one in series}
        naming = [(_naming(dict(one.labels)), one.labels) for one in series]
        counts = Counter(name for name, _ in naming)
        self._named = {name: labels for name, labels in naming if counts[name] == 1 and name}

    def find(self, metric: Mapping[str, str]) -> Labels | None:
        """Return the labels of the series; None if there is none, or more than one."""
        labels = labels_of(metric)
        return labels if labels in self._all else self._named.get(_naming(metric))


def _naming(metric: Mapping[str, str]) -> Labels:
    return frozenset(
        (name, metric[name]) for name in PLACEHOLDERS if name != "meta" and name in metric
    )


Quantiles = tuple[tuple[float, float], ...]
"""Pairs of a probability and a value, ascending."""


@dataclass(frozen=True, slots=True)
class Said:
    """The score of one series, and the quantiles of its forecast, empty without any."""

    score: float
    quantiles: Quantiles = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer: the scores by the labels of their series, after the step before `end`.

    `strange` is the number of results with other labels than those of a series.
    """

    end: int
    said: dict[Labels, Said]
    strange: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """A score and what came true, of one series after the step before `end`."""

    end: int
    series: PastSeries
    said: Said
    truth: float


def judged(answers: Sequence[Answered], series: Sequence[PastSeries], ahead: int) -> list[Judged]:
    """Return each score that has a truth, `ahead` steps after its window."""
    found = list[Judged]()
    for answer in answers:
        for one in series:
            said = answer.said.get(one.labels)
            truth = one.came_true(answer.end, ahead)
            if said is not None and truth is not None:
                found.append(Judged(answer.end, one, said, truth))
    return found
