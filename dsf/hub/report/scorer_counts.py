"""On how many managed clusters each scorer is in place, scores or fails."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dsf.api import names
from dsf.api.scoring.score_conditions import Adjustments
from dsf.hub.distribute.audience import ClusterShare
from dsf.hub.distribute.rendered_summaries import RenderedSummaries, parts_of
from dsf.hub.snapshot.hub_snapshot import HubSnapshot, PublishedScore
from dsf.hub.snapshot.managed_cluster import (
    CLUSTER_UNAVAILABLE,
    AddOn,
    ClusterFailure,
    ManagedCluster,
    NamespacedName,
)
from dsf.hub.snapshot.summaries_work import SummariesWork


@dataclass(slots=True)
class ScorerCounts:
    """How many managed clusters are in which state for one scorer, and why which of them fail.

    `desired` counts the clusters that should score, `scoring` those with fresh scores, `defaulted`
    those of them whose scores are the default, because there is nothing to score, `unanswered`
    those whose agent got none from the API in its last round. `reached` has the names of those
    whose agent did, `unreached` of those whose agent could not connect to it. Of those with fresh
    scores, `trusted` counts those whose forecasts beat the last value; `untrusted` has the names
    of those whose forecasts do not; `adjusted` says what the agents' rules did to their results.
    """

    desired: int = 0
    scoring: int = 0
    defaulted: int = 0
    unanswered: int = 0
    reached: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    failing: dict[str, ClusterFailure] = field(default_factory=dict)
    trusted: int = 0
    untrusted: list[str] = field(default_factory=list)
    adjusted: dict[str, Adjustments] = field(default_factory=dict)

    @property
    def answered(self) -> int:
        """Managed clusters whose agent got scores from the API in its last round."""
        return len(self.reached)

    @property
    def waiting(self) -> int:
        """Managed clusters whose agents have not reported anything yet."""
        return self.desired - self.scoring - len(self.failing)


@dataclass(frozen=True, slots=True)
class FleetCounts:
    """The counts by score name, and the orphaned scores: those that no agent should publish."""

    by_score_name: Mapping[str, ScorerCounts]
    orphans: tuple[NamespacedName, ...] = ()


def count_scores(
    snapshot: HubSnapshot,
    shares: Mapping[str, ClusterShare],
    score_names: Iterable[str],
    *,
    now: str,
) -> FleetCounts:
    """Return the counts of the distributed scores; `now` is an RFC 3339 time in UTC.

    Passes once over the scores, because there may be 100,000 of them.
    """
    masked = {cluster: share.masked for cluster, share in shares.items()}
    masks = [each for each in masked.values() if each]
    counts = {
        name: ScorerCounts(len(shares) - sum(name in each for each in masks))
        for name in score_names
    }
    by_object = {names.score_object_name(name): (name, each) for name, each in counts.items()}
    cut_off = _cut_off(snapshot, shares)
    orphans = []
    silent = {name: set(cut_off) for name in counts}
    for key, score in snapshot.scores.items():
        cluster, object_name = key
        counted = by_object.get(object_name)
        hidden = masked.get(cluster)
        if counted is None or hidden is None or counted[0] in hidden:
            orphans.append(key)
            continue
        name, of_scorer = counted
        silent[name].discard(cluster)
        _count(of_scorer, cluster, score, cut_off.get(cluster), now)
    for name, clusters in silent.items():
        for cluster in clusters:
            if name not in masked[cluster]:
                counts[name].failing[cluster] = cut_off[cluster]
    return FleetCounts(counts, tuple(orphans))


def _count(
    counts: ScorerCounts,
    cluster: str,
    score: PublishedScore,
    cut_off: ClusterFailure | None,
    now: str,
) -> None:
    """Count a cluster; the agent's own report wins unless OCM lost contact with the cluster."""
    fresh = score.valid_until > now
    if fresh and score.answered:
        counts.reached.append(cluster)
    if score.unreached:
        counts.unreached.append(cluster)
    counts.unanswered += score.failure is not None and not score.answered
    counts.trusted += fresh and score.trusted == "True"
    if fresh and score.trusted == "False":
        counts.untrusted.append(cluster)
    if score.adjustments and fresh:
        counts.adjusted[cluster] = score.adjustments
    if score.failure is None and fresh:
        counts.scoring += 1
        counts.defaulted += score.defaulted
    elif cut_off is not None and (score.failure is None or cut_off.reason == CLUSTER_UNAVAILABLE):
        counts.failing[cluster] = cut_off
    elif score.failure is not None:
        counts.failing[cluster] = score.failure
    elif score.valid_until:
        message = "the agent has stopped renewing this score: read its log on the managed cluster"
        counts.failing[cluster] = ClusterFailure("ScoreExpired", message, score.valid_until)


def _cut_off(
    snapshot: HubSnapshot, shares: Mapping[str, ClusterShare]
) -> dict[str, ClusterFailure]:
    """Return the clusters from which no scores can come, and why."""
    failures = {
        cluster: _first(
            snapshot.clusters.get(cluster),
            snapshot.works.get(cluster),
            snapshot.add_ons.get(cluster),
        )
        for cluster in shares
    }
    return {cluster: failure for cluster, failure in failures.items() if failure}


def _first(*parts: ManagedCluster | SummariesWork | AddOn | None) -> ClusterFailure | None:
    return next((part.failure for part in parts if part and part.failure), None)


@dataclass(frozen=True, slots=True)
class Rollout:
    """How many ManifestWorks should carry a scorer's current summary, and how many do."""

    desired: int = 0
    in_place: int = 0


def rollouts(
    desired: Mapping[str, RenderedSummaries], works: Mapping[str, SummariesWork]
) -> dict[str, Rollout]:
    """Return the rollout of each desired scorer by name; both arguments are by managed cluster.

    Compares parts only in works that differ from what is desired.
    """
    total = Counter[str]()
    for scorers, count in Counter(each.names for each in desired.values()).items():
        total.update(dict.fromkeys(scorers, count))
    missing = _missing(desired, works)
    return {name: Rollout(count, count - missing[name]) for name, count in total.items()}


def _missing(
    desired: Mapping[str, RenderedSummaries], works: Mapping[str, SummariesWork]
) -> Counter[str]:
    """Return by scorer how many works lack its current summary."""
    differing = Counter(
        (each, text)
        for cluster, each in desired.items()
        if (text := _text(works.get(cluster))) != each.text
    )
    present = {text: parts_of(text) for _, text in differing}
    missing = Counter[str]()
    for (each, text), count in differing.items():
        lacking = (name for name, part in each.parts().items() if part not in present[text])
        missing.update(dict.fromkeys(lacking, count))
    return missing


def _text(work: SummariesWork | None) -> str:
    """Return what a work carries; empty if somebody else has changed it."""
    return "" if work is None or work.drifted else work.text
