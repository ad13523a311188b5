"""What is remembered of scores: their average, their variation, and what was there last.

The average is exponential in time: three time constants are a stabilization window, so that it has
made 95% of a lasting change within one. A score moves it at most as if it differed by OUTLIER
points, or by three times its variation, so that one outlier is not a change.

The variation is a robust mean of successive differences: of how far the average went in four
windows, less what all places of an app have in common, because that moves no workload. Noise that
lasts for some windows counts so; slow swings, such as those of a day, hardly do, and a lasting
change counts once. The steps of both are limited, as in Huber's estimators: P. J. Huber, "Robust
estimation of a location parameter", Annals of Mathematical Statistics 35 (1964).

It is four numbers for each score. It is not stored: after a restart nothing moves for a better
score until a window has passed.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

import numpy as np

from optimizer.domain.arrays import Bools, Floats, Ints
from optimizer.domain.score_matrix import ClusterDevice, ScoreMatrix

Name = TypeVar("Name", bound=Hashable)

OUTLIER = 10.0
"""Points by which a score may differ from its average until it is an outlier."""

_LIMITING_MULTIPLE = 3.0
_LEAST_DIFFERENCE = 2.0
"""Points that a difference may have at least: without variation the first one has to count."""

_LAG_WINDOWS = 4
"""Windows between two averages that are compared; the first difference is that of one window."""

_REMEMBERED_DIFFERENCES = 36
"""Differences over which the variation is averaged: half a day with windows of five minutes."""

_CONSTANTS_PER_WINDOW = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class ScoreAverages:
    """Of one named score [apps, places]: average, average at the window's start, variation, age.

    `level` is NaN for what never had a score. `seconds`: how long each was observed.
    """

    apps: Mapping[str, int]
    places: Mapping[ClusterDevice, int]
    level: Floats
    start: Floats
    variation: Floats
    seconds: Floats

    def aligned(
        self, apps: Mapping[str, int], places: Mapping[ClusterDevice, int]
    ) -> "ScoreAverages":
        """Return the same for other apps and places; what is not among them is forgotten."""
        if self.apps == apps and self.places == places:
            return self
        rows, columns = _numbers(self.apps, apps), _numbers(self.places, places)
        known = np.ix_(rows >= 0, columns >= 0)
        old = np.ix_(rows[rows >= 0], columns[columns >= 0])

        def moved(array: Floats, missing: float) -> Floats:
            found = np.full((len(rows), len(columns)), missing)
            found[known] = array[old]
            return found

        return ScoreAverages(
            apps,
            places,
            moved(self.level, np.nan),
            moved(self.start, np.nan),
            moved(self.variation, 0.0),
            moved(self.seconds, 0.0),
        )


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMemory:
    """What is remembered of each named score, until when, and since when a difference is taken.

    `differences`: how many were taken.
    """

    window_seconds: float
    scores: Mapping[str, ScoreAverages] = field(default_factory=dict)
    at: datetime | None = None
    start: datetime | None = None
    differences: int = 0

    def observed(self, scores: Mapping[str, ScoreMatrix], now: datetime) -> "ScoreMemory":
        """Return the memory after scores were read; what has none now keeps its last average.

        A clock that went back counts as no time, one that jumped ahead as a window at most.
        """
        elapsed = 0.0 if self.at is None else (now - self.at).total_seconds()
        passed = min(max(elapsed, 0.0), self.window_seconds)
        start = now if self.start is None else min(self.start, now)
        length = self.window_seconds * (_LAG_WINDOWS if self.differences else 1)
        ends = self.at is not None and (now - start).total_seconds() >= length
        return ScoreMemory(
            self.window_seconds,
            {
                key: self._observed(self.scores.get(key), matrix, passed, ends=ends)
                for key, matrix in scores.items()
            },
            now,
            now if ends else start,
            self.differences + ends,
        )

    def _observed(
        self, known: ScoreAverages | None, matrix: ScoreMatrix, passed: float, *, ends: bool
    ) -> ScoreAverages:
        values = np.asarray(matrix.table, dtype=np.float64)
        if known is None:
            return ScoreAverages(
                matrix.apps, matrix.places, values, values, 0 * values, np.zeros(values.shape)
            )
        known = known.aligned(matrix.apps, matrix.places)
        there, new = ~np.isnan(values), np.isnan(known.level)
        most = np.maximum(OUTLIER, _LIMITING_MULTIPLE * np.nan_to_num(known.variation))
        step = np.clip(values - known.level, -most, most)
        if self.window_seconds:
            step *= 1 - math.exp(-_CONSTANTS_PER_WINDOW * passed / self.window_seconds)
        else:
            step = values - known.level
        level = np.where(new, values, known.level + np.where(there, step, 0.0))
        start = np.where(new, values, known.start)
        seconds = np.where(there & ~new, known.seconds + passed, known.seconds)
        variation = np.where(np.isnan(known.variation), 0.0, known.variation)
        if ends:
            variation = self._varied(variation, level - start, seconds)
            start = level
        return ScoreAverages(matrix.apps, matrix.places, level, start, variation, seconds)

    def _varied(self, variation: Floats, went: Floats, seconds: Floats) -> Floats:
        """Return the variation after averages went so far, `seconds` after the first ones."""
        own = np.abs(went - _common(went))
        limited = np.minimum(own, _LIMITING_MULTIPLE * variation + _LEAST_DIFFERENCE)
        lag = _LAG_WINDOWS * self.window_seconds
        taken = seconds / lag if lag else np.full(own.shape, float(self.differences))
        share = 1 / np.clip(taken + 1, 1.0, _REMEMBERED_DIFFERENCES)
        return np.where(np.isnan(own), variation, variation + share * (limited - variation))

    def settled(self, known: ScoreAverages) -> Bools:
        """Return which averages are of a whole window [apps, places]."""
        return ~np.isnan(known.level) & (known.seconds >= self.window_seconds)

    def settled_at(self, scores: Mapping[str, ScoreMatrix]) -> datetime | None:
        """Return when averages of the scores that were just observed are of a whole window.

        None if they all are.
        """
        left = 0.0
        for key, matrix in scores.items():
            known = self.scores[key]
            young = ~np.isnan(matrix.table) & ~self.settled(known)
            rest = self.window_seconds - known.seconds
            left = max(left, float(np.max(rest, where=young, initial=0.0)))
        waits = timedelta(milliseconds=math.ceil(1000 * left))
        return self.at + waits if self.at and waits else None

    def knows_more_than(self, since: "ScoreMemory") -> bool:
        """Return whether there is a score of an app and a place that had none before."""
        for key, known in self.scores.items():
            before = since.scores.get(key)
            missing = np.isnan(before.aligned(known.apps, known.places).level) if before else True
            if (~np.isnan(known.level) & missing).any():
                return True
        return False

    def largest_change(self, since: "ScoreMemory") -> float:
        """Return by how many points an average differs at most from an earlier memory's.

        Infinite if one is of a whole window that was not before. Others do not count.
        """
        most = 0.0
        for key, known in self.scores.items():
            now, before = self.settled(known), since.scores.get(key)
            if before is None:
                most = math.inf if now.any() else most
                continue
            old = before.aligned(known.apps, known.places)
            if (now & ~since.settled(old)).any():
                return math.inf
            change = np.abs(known.level - old.level)
            most = max(most, float(np.max(change, where=now, initial=0.0)))
        return most


def _common(went: Floats) -> Floats:
    """Return the median of each row, 0 where there is none: [apps, 1]."""
    found = np.zeros((len(went), 1))
    for row, values in enumerate(went):
        known = values[~np.isnan(values)]
        found[row] = np.median(known) if len(known) else 0.0
    return found


def _numbers(old: Mapping[Name, int], new: Mapping[Name, int]) -> Ints:
    """Return the old number of each new name, -1 where it had none."""
    return np.array([old.get(name, -1) for name in new], dtype=np.int64)
