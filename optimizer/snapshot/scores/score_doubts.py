"""The trust that agents tell of one score, and what doubted entries count instead."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from dsf.api.scoring.score_conditions import read_record, read_trust
from dsf.api.untrusted_text import counted, listed
from dsf.kube.port import Object
from optimizer.domain.arrays import Floats
from optimizer.domain.issue import Issue

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


SHOWN_CLUSTERS = 5
"""Clusters of unknown trust that an issue names; it counts the others."""


class ScoreDoubts:
    """What is doubted of one score, cluster by cluster, under the rule of a request."""

    def __init__(self, rule: TrustRule, score_name: str) -> None:
        self._rule = rule
        self._score_name = score_name
        self._trust: dict[str, float | None] = {}
        self._errors: dict[str, float] = {}
        self._means: dict[str, ClusterMean] = {}
        self._doubted: dict[str, Sequence[Floats]] = {}

    def refuse(self, cluster: str, obj: Object) -> Issue | None:
        """Read the trust of a cluster's AddOnPlacementScore; return why it is not used at all.

        What was read before of the cluster is forgotten.
        """
        for kept in (self._trust, self._means, self._doubted):
            kept.pop(cluster, None)
        trust = self._trust[cluster] = read_trust(obj)
        record = read_record(obj)
        self._errors[cluster] = record.error if record else 0.0
        if trust is None or self._weight(cluster) == 1 or self._rule.untrusted == "Weigh":
            return None
        return self._untrusted(cluster, trust, "is refused and counts as missing")

    def note(self, cluster: str, columns: Sequence[Floats]) -> None:
        """Keep what the scores of a cluster add to the mean, and the scores if they are doubted.

        NaN is a missing score.
        """
        weight, every = self._weight(cluster), np.concatenate([*columns, np.empty(0)])
        known = every[~np.isnan(every)]
        if len(known):
            self._means[cluster] = ClusterMean(float(known.mean()), len(known), weight)
        if weight < 1:
            self._doubted[cluster] = columns

    def weighed(self) -> Iterator[tuple[str, list[Floats]]]:
        """Yield the doubted clusters with the scores that count; NaN is a missing score."""
        neutral = self._neutral
        for cluster, columns in self._doubted.items():
            weight = self._weight(cluster)
            yield cluster, [weighed(own, weight, neutral) for own in columns]

    def issues(self) -> Mapping[str, partial[Issue]]:
        """Return, by cluster, why its scores count for less; the issues are made on demand."""
        neutral = self._neutral
        return {
            cluster: partial(self._weighed, cluster, trust, neutral)
            for cluster, trust in self._trust.items()
            if trust is not None and cluster in self._doubted
        }

    def unknown(self, clusters: Iterable[str]) -> Iterator[partial[Issue]]:
        """Yield one issue about those of the clusters whose trust is unknown, if there are any."""
        found = [cluster for cluster in clusters if self._trust.get(cluster, 1.0) is None]
        if found:
            yield partial(self._unknown, found)

    def _weight(self, cluster: str) -> float:
        return trust_weight(self._trust[cluster], self._rule.minimum)

    @property
    def _neutral(self) -> float:
        return neutral_score(self._means.values())

    def _weighed(self, cluster: str, trust: float, neutral: float) -> Issue:
        part = f"counts {self._weight(cluster):.0%}"
        return self._untrusted(
            cluster, trust, f"{part}, and for the rest {neutral:.1f}, the mean of the score"
        )

    def _untrusted(self, cluster: str, trust: float, consequence: str) -> Issue:
        message = (
            f"cluster {cluster}: AddOnPlacementScore {self._score_name} has trust {trust:.3f}, less"
            f" than minimumTrust {self._rule.minimum:g}, because the error of its forecasts is"
            f" {self._errors[cluster]:g} times last value's: it {consequence}"
        )
        return Issue(reason="UntrustedScore", message=message, cluster=cluster)

    def _unknown(self, clusters: Sequence[str]) -> Issue:
        named = listed(clusters, SHOWN_CLUSTERS)
        message = (
            f"AddOnPlacementScore {self._score_name} does not tell how far it can be trusted on"
            f" {counted(len(clusters), 'cluster')} ({named}), so it counts in full there: its"
            " condition Trusted is missing or Unknown"
        )
        return Issue(reason="UnknownTrust", message=message)
