"""How far forecasts were wrong, compared with the last value: one round, and the record of many.

The error of one forecast is the quantile (pinball) loss, half the absolute error for the median:
R. Koenker, G. Bassett, "Regression quantiles", Econometrica 46 (1978). The comparison with the last
value is a skill score: A. H. Murphy, "Skill scores based on the mean square error", Monthly Weather
Review 116 (1988). Taking the share of both errors, not their quotient, bounds what one round can
do: an outlier of any size counts as much as any other round.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dsf.api.scoring.track_record import TrackRecord

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
