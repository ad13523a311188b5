"""How often the truth was where a scorer's quantiles said."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from dsf.scorer_kit.backtest.accuracy import mean
from dsf.scorer_kit.backtest.outcome import Judged

_TOUCHING = 1e-9
"""Relative distance within which a truth counts as on a bound: rounding in JSON and sums."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A central interval: the share it promises, the share it held, and its mean width."""

    level: float
    coverage: float
    width: float
    count: int


@dataclass(frozen=True, slots=True)
class QuantileShare:
    """A probability, and the share of the truths that were not above that quantile."""

    probability: float
    below: float
    count: int


def quantile_shares(outcomes: Sequence[Judged]) -> list[QuantileShare]:
    """Return the share of the truths at or below each quantile; a calibrated one has its own."""
    below = defaultdict[float, list[bool]](list)
    for one in outcomes:
        for probability, value in one.said.quantiles:
            below[probability].append(one.truth <= value + _margin(value, one.truth))
    return [
        QuantileShare(probability, mean(below[probability]), len(below[probability]))
        for probability in sorted(below)
    ]


def intervals(outcomes: Sequence[Judged]) -> list[Interval]:
    """Return the intervals between quantiles p and 1 - p, the widest first."""
    found = defaultdict[float, list[tuple[bool, float]]](list)
    for one in outcomes:
        values = {round(probability, 6): value for probability, value in one.said.quantiles}
        for lower, low in values.items():
            high = values.get(round(1 - lower, 6))
            if lower < 1 / 2 and high is not None:
                inside = (
                    low - _margin(low, one.truth) <= one.truth <= high + _margin(high, one.truth)
                )
                found[round(1 - 2 * lower, 6)].append((inside, high - low))
    return [
        Interval(
            level,
            mean([inside for inside, _ in found[level]]),
            mean([width for _, width in found[level]]),
            len(found[level]),
        )
        for level in sorted(found, reverse=True)
    ]


def _margin(bound: float, truth: float) -> float:
    return _TOUCHING * max(abs(bound), abs(truth))
