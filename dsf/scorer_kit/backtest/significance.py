"""Whether one method's errors are really smaller than another's: the test of Diebold and Mariano.

Sources: Diebold and Mariano, "Comparing predictive accuracy" (1995). The correction for small
samples and the t distribution are those of Harvey, Leybourne and Newbold, "Testing the equality of
prediction mean squared errors" (1997). The weights of the autocovariances are those of Newey and
West (1987), with which the variance can't be negative.
"""

import math
from collections.abc import Sequence

FEWEST_HORIZONS = 4
"""Horizons that do not overlap, below which a test says nothing."""


def smaller_loss(differences: Sequence[float], overlap: int) -> float | None:
    """Return the p-value of "the expected difference is not negative"; None with too little data.

    `differences` are losses of the one minus losses of the other, in the order of time. `overlap`
    is the number of consecutive ones whose horizons overlap, at least 1.
    """
    count = len(differences)
    if count < FEWEST_HORIZONS * overlap or count <= 1:
        return None
    mean = math.fsum(differences) / count
    centred = [value - mean for value in differences]
    variance = _covariance(centred, 0) + 2 * math.fsum(
        (1 - lag / overlap) * _covariance(centred, lag) for lag in range(1, overlap)
    )
    if variance <= 0:
        return 0.5 if mean == 0 else float(mean > 0)
    small = (count + 1 - 2 * overlap + overlap * (overlap - 1) / count) / count
    statistic = mean / math.sqrt(variance / count) * math.sqrt(max(small, 0.0))
    return student_t(statistic, count - 1)


def student_t(value: float, freedom: int) -> float:
    """Return the probability that Student's t is at most `value`."""
    tail = _incomplete_beta(freedom / (freedom + value * value), freedom / 2, 0.5) / 2
    return tail if value < 0 else 1 - tail


def _covariance(centred: Sequence[float], lag: int) -> float:
    pairs = zip(centred[lag:], centred, strict=False)
    return math.fsum(after * before for after, before in pairs) / len(centred)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function, by its continued fraction.

    Source: NIST Digital Library of Mathematical Functions, 8.17.22, https://dlmf.nist.gov/8.17
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logarithm + a * math.log(x) + b * math.log1p(-x)) / a
    fraction = 0.0
    for term in range(_TERMS, 0, -1):
        half = term // 2
        numerator = (
            -(a + half) * (a + b + half) * x / ((a + term - 1) * (a + term))
            if term % 2
            else half * (b - half) * x / ((a + term - 1) * (a + term))
        )
        fraction = numerator / (1 + fraction)
    return front / (1 + fraction)


_TERMS = 400
"""Terms of the fraction: enough for the tail of Student's t with 10,000 degrees of freedom."""
