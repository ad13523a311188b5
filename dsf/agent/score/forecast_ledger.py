"""Which forecasts of a scorer wait for their truth, and when each is to be compared with it.

Only the agent's memory has them: after a restart forecasts start anew, and the record of earlier
ones is read back from the AddOnPlacementScore.
"""

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self
from zlib import crc32

from dsf.agent.score.forecast_error import JudgedRound, with_round
from dsf.api.scoring.track_record import TrackRecord

TRACKED_ENTRIES = 256
"""Entries of one score whose forecasts are kept: always the same ones, chosen by their names' hash.

A share of errors needs no more; 10,000 entries would take 40 times the memory and the truth."""

PENDING_ROUNDS = 64
"""Rounds of one score whose forecasts wait: 16,384 forecasts, about 2 MiB at most."""

CLOCK_TOLERANCE = 10.0
"""Seconds by which the time of day may drift against the steady clock while a forecast waits."""

_ROUNDING = 0.001


@dataclass(frozen=True, slots=True)
class Instant:
    """A moment on two clocks: the time of day in unix seconds, and one that is never set."""

    unix: float
    steady: float


@dataclass(frozen=True, slots=True)
class IssuedForecasts:
    """The forecasts of one round by entry, in the scorer's own units."""

    at: Instant
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ForecastLedger:
    """The forecasts that wait for their truth, oldest first, and the record of the judged ones."""

    record: TrackRecord
    pending: tuple[IssuedForecasts, ...] = ()

    def with_forecasts(self, issued: IssuedForecasts) -> Self:
        """Return the ledger with the forecasts of a round, or without where it has enough of them.

        Rounds are kept so far apart that a horizon never has more than PENDING_ROUNDS of them. If
        truths are missing for longer, the oldest forecasts are left out.
        """
        apart = self.record.horizon / PENDING_ROUNDS
        newest = self.pending[-1].at.steady if self.pending else -math.inf
        if not issued.values or issued.at.steady - newest < apart - _ROUNDING:
            return self
        chosen = heapq.nsmallest(TRACKED_ENTRIES, issued.values, key=_rank)
        kept = IssuedForecasts(issued.at, {name: issued.values[name] for name in chosen})
        return replace(self, pending=(*self.pending, kept)[-PENDING_ROUNDS:])

    def without_jumps(self, now: Instant) -> Self:
        """Return the ledger without forecasts since which the time of day was set.

        Their truth is at another time than was meant. A record that ends later than `now` starts
        anew, because nothing could be added to it.
        """
        kept = tuple(one for one in self.pending if _in_step(one.at, now))
        record = self.record
        if record.until > now.unix + CLOCK_TOLERANCE:
            record = TrackRecord(record.horizon)
        return replace(self, pending=kept, record=record)

    def due(self, now: Instant) -> tuple[IssuedForecasts, ...]:
        """Return the forecasts whose truth can be known, oldest first."""
        return tuple(one for one in self.pending if self.forecast_time(one) <= now.unix)

    def forecast_time(self, issued: IssuedForecasts) -> float:
        """Return the time that was forecast, in unix seconds."""
        return issued.at.unix + self.record.horizon

    def judged(self, issued: IssuedForecasts, found: JudgedRound) -> Self:
        """Return the ledger after a truth was compared with its forecasts."""
        left = tuple(one for one in self.pending if one is not issued)
        return replace(
            self, pending=left, record=with_round(self.record, found, self.forecast_time(issued))
        )


def _rank(name: str) -> tuple[int, str]:
    return crc32(name.encode(errors="replace")), name


def _in_step(then: Instant, now: Instant) -> bool:
    return abs((now.unix - then.unix) - (now.steady - then.steady)) <= CLOCK_TOLERANCE
