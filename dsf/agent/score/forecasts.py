"""Forecasts of scorers: which wait for their truth, what the truth is, and how far they were wrong.

Only the agent's memory has the forecasts: after a restart they start anew, and the record of
earlier ones is read back from the AddOnPlacementScore.

The error of one forecast is the quantile (pinball) loss, half the absolute error for the median:
R. Koenker, G. Bassett, "Regression quantiles", Econometrica 46 (1978). The comparison with the last
value is a skill score: A. H. Murphy, "Skill scores based on the mean square error", Monthly Weather
Review 116 (1988). Taking the share of both errors, not their quotient, bounds what one round can
do: an outlier of any size counts as much as any other round.
"""

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self
from zlib import crc32

import msgspec

from dsf.agent.score.result_rules import ConversionSettings, entry_of
from dsf.agent.wire.foreign_text import decode_labels
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.scoring.score_conditions import TrackRecord
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import Sample
from dsf.kube.redaction import NO_SPELLINGS

CALM = 0.02
"""Of the size of the truth: a round in which the errors together are that small weighs half.

A truth that hardly moves says little about a forecast: last value is nearly perfect then.
"""

NOISE = 1e-9
"""Errors of this size are those of floating point, in whatever unit."""

LARGEST = 1e300
"""Larger errors count as this one, so that their sums stay finite."""


@dataclass(frozen=True, slots=True)
class JudgedRound:
    """What the truth says about the forecasts of one round.

    `share`: the scorer's error divided by the sum of both errors, from 0 to 1. `weight`: how much
    that says, from 0 (neither erred) to nearly 1. `judged` and `gaps` count entries with and
    without a truth.
    """

    share: float
    weight: float
    judged: int
    gaps: int


def judge_round(
    forecasts: Mapping[str, float],
    before: Mapping[str, float],
    truth: Mapping[str, float],
    quantile: float,
) -> JudgedRound:
    """Return how the forecasts of a round fared, entry by entry in the scorer's own units.

    `before` has the truth at the time of the scoring, which is the last value's forecast, `truth`
    that of the time that was forecast. An entry that lacks a finite value of either is a gap.
    Errors are averaged over entries without scaling them, because the entries of a score are
    compared with each other in one unit.
    """
    known = [
        (forecast, before[name], truth[name])
        for name, forecast in forecasts.items()
        if math.isfinite(before.get(name, math.nan)) and math.isfinite(truth.get(name, math.nan))
    ]
    gaps = len(forecasts) - len(known)
    if not known:
        return JudgedRound(0.0, 0.0, 0, gaps)
    count = len(known)
    own = sum(quantile_loss(quantile, came, forecast) / count for forecast, _, came in known)
    last = sum(quantile_loss(quantile, came, value) / count for _, value, came in known)
    size = sum(min(abs(came), LARGEST) / count for _, _, came in known)
    both = own + last
    if not both:
        return JudgedRound(0.0, 0.0, count, gaps)
    return JudgedRound(own / both, both / (both + CALM * size + NOISE), count, gaps)


def quantile_loss(quantile: float, truth: float, forecast: float) -> float:
    """Return the loss of a forecast of a quantile of the truth; at most LARGEST."""
    miss = truth - forecast
    return min(quantile * miss if miss >= 0 else (quantile - 1) * miss, LARGEST)


def with_round(record: TrackRecord, found: JudgedRound, until: float) -> TrackRecord:
    """Return the record with a round that forecast the time `until` (unix seconds).

    Rounds closer than a horizon overlap, so a round weighs as much as the part of a horizon that
    has passed since the one before it.
    """
    elapsed = min(1.0, (until - record.until) / record.horizon)
    weight = elapsed * found.weight
    if weight <= 0:
        return record
    old = record.aged(until).evidence
    share = (old * record.share + weight * found.share) / (old + weight)
    return replace(record, share=share, evidence=old + weight, until=until)


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


_SAMPLES = msgspec.json.Decoder(list[Sample])
_SAMPLE = msgspec.json.Decoder(Sample)


@dataclass(frozen=True, slots=True)
class TruthValues:
    """The truth of entries at the time of a scoring (`before`) and at the time it forecast."""

    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)


def truth_question(summary: ScorerSummary) -> ScorerSummary:
    """Return a summary with the truth's query as that of its (first) source, at one instant.

    Range queries would not do: the query frontends of Thanos and Mimir may move their times to
    multiples of the step. Raises ValueError if the scorer declares no forecast.
    """
    if summary.forecast is None:
        raise ValueError(f"scorer {summary.name} declares no forecast")
    update = {"source_query": summary.forecast.truth.query, "source_range": 0, "sources": ()}
    return summary.single_sources[0].model_copy(update=update)


def read_truth(series: Iterable[EncodedSeries], form: ConversionSettings) -> dict[str, float]:
    """Return the newest value of each series by the entry that its labels name.

    An entry that several series name has no truth: NaN.
    """
    found = dict[str, float]()
    for one in series:
        name = entry_of(decode_labels(msgspec.Raw(one.metric), NO_SPELLINGS), form)
        samples = [_SAMPLE.decode(one.values)] if one.instant else _SAMPLES.decode(one.values)
        if samples:
            found[name] = math.nan if name in found else _number(samples[-1][1])
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
