"""What scores count by the trust that their agents tell: the weight, and what replaces the rest."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np

from optimizer.domain.arrays import Floats

OnDistrust = Literal["Weigh", "Refuse"]
"""What becomes of a score with less than the minimum trust."""


class TrustRule(NamedTuple):
    """The least trust, from 0 to 1, with which a score counts in full, and what becomes of less."""

    minimum: float
    untrusted: OnDistrust = "Weigh"


class ClusterMean(NamedTuple):
    """The mean of a cluster's entries, how many there are, and the weight that they have."""

    mean: float
    entries: int
    weight: float


def trust_weight(trust: float | None, minimum: float) -> float:
    """Return min(1, trust / minimum): the part of a score that counts, from 0 to 1.

    1 where trust is unknown, or the minimum is 0.
    """
    return 1.0 if trust is None or trust >= minimum else trust / minimum


def neutral_score(clusters: Iterable[ClusterMean]) -> float:
    """Return the score that favours no cluster: the mean of all entries, weighted by trust.

    If no cluster has any weight, all entries weigh the same. 0 where there is no entry.
    """
    found = list(clusters)
    weights = [one.entries * one.weight for one in found]
    if not sum(weights):
        weights = [float(one.entries) for one in found]
    total = sum(weights)
    return (
        sum(one.mean * part for one, part in zip(found, weights, strict=True)) / total
        if total
        else 0.0
    )


def weighed(scores: Floats, weight: float, neutral: float) -> Floats:
    """Return weight * score + (1 - weight) * neutral; NaN stays NaN.

    With weight 0 all scores of a cluster are equal, so they decide nothing.
    """
    return np.asarray(weight * scores + (1 - weight) * neutral)
