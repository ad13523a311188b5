"""How each scorer fares on the managed clusters, from what their agents publish."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dsf.api import names
from dsf.hub.distribute.audience import ClusterShare
from dsf.hub.snapshot.hub_snapshot import HubSnapshot
from dsf.hub.snapshot.managed_cluster import (
    CLUSTER_UNAVAILABLE,
    AddOn,
    ClusterFailure,
    ManagedCluster,
    NamespacedName,
)
from dsf.hub.snapshot.published_score import PublishedScore
from dsf.hub.snapshot.summaries_work import SummariesWork


@dataclass(slots=True)
class ScorerCounts:
    """Managed clusters on which a scorer fails, and how many there are of the others.

    `desired` counts those that should score, `scoring` those with fresh scores, `answered` those
    whose agent got scores from the API in its last round, `refused` those whose agent did not.
    """

    desired: int = 0
    scoring: int = 0
    answered: int = 0
    refused: int = 0
    failing: dict[str, ClusterFailure] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """Managed clusters that have not said anything yet."""
        return self.desired - self.scoring - len(self.failing)


@dataclass(frozen=True, slots=True)
class FleetCounts:
    """The tallies by score name, and the scores that nobody is told to publish."""

    tallies: Mapping[str, ScorerCounts]
    orphans: tuple[NamespacedName, ...] = ()


def count_scores(
    snapshot: HubSnapshot,
    shares: Mapping[str, ClusterShare],
    score_names: Iterable[str],
    *,
    now: str,
) -> FleetCounts:
    """Return how the scores that are distributed fare; `now` is RFC 3339 in UTC.

    One pass over the scores: there may be 100,000 of them.
    """
    hidden = {cluster: share.hidden for cluster, share in shares.items()}
    masked = [each for each in hidden.values() if each]
    tallies = {
        name: ScorerCounts(len(shares) - sum(name in each for each in masked))
        for name in score_names
    }
    by_object = {names.score_object_name(name): (name, tally) for name, tally in tallies.items()}
    troubled = _troubled(snapshot, shares)
    orphans = []
    silent = {name: set(troubled) for name in tallies}
    for key, score in snapshot.scores.items():
        cluster, object_name = key
        found = by_object.get(object_name)
        where = hidden.get(cluster)
        if found is None or where is None or found[0] in where:
            orphans.append(key)
            continue
        name, tally = found
        silent[name].discard(cluster)
        _count(tally, cluster, score, troubled.get(cluster), now)
    for name, clusters in silent.items():
        for cluster in clusters:
            if name not in hidden[cluster]:
                tallies[name].failing[cluster] = troubled[cluster]
    return FleetCounts(tallies, tuple(orphans))


def _count(
    tally: ScorerCounts,
    cluster: str,
    score: PublishedScore,
    beyond: ClusterFailure | None,
    now: str,
) -> None:
    """Count a cluster; the agent's word counts unless OCM has lost touch with the cluster."""
    fresh = score.valid_until > now
    tally.answered += fresh and score.answered
    tally.refused += score.failure is not None and not score.answered
    if score.failure is None and fresh:
        tally.scoring += 1
    elif beyond is not None and (score.failure is None or beyond.reason == CLUSTER_UNAVAILABLE):
        tally.failing[cluster] = beyond
    elif score.failure is not None:
        tally.failing[cluster] = score.failure
    elif score.valid_until:
        message = "the agent renews this score no more: look at its log on the managed cluster"
        tally.failing[cluster] = ClusterFailure("ScoreExpired", message, score.valid_until)


def _troubled(
    snapshot: HubSnapshot, shares: Mapping[str, ClusterShare]
) -> dict[str, ClusterFailure]:
    """Return the clusters from which nothing can come, and why."""
    found = {
        cluster: _first(
            snapshot.clusters.get(cluster),
            snapshot.works.get(cluster),
            snapshot.add_ons.get(cluster),
        )
        for cluster in shares
    }
    return {cluster: trouble for cluster, trouble in found.items() if trouble}


def _first(*parts: ManagedCluster | SummariesWork | AddOn | None) -> ClusterFailure | None:
    return next((part.failure for part in parts if part and part.failure), None)
