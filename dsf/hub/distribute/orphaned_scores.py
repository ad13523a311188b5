"""Deletes the scores that no agent should publish any more.

An agent deletes them itself as soon as its summaries change. The hub deletes only what has expired,
which the scores of a working agent never do. The deletion names the version that had expired, so a
score that an agent publishes again meanwhile stays. So the two never undo each other's work, and
scores disappear even if the agent was removed first.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from dsf.api.times import rfc3339
from dsf.hub.snapshot.managed_cluster import NamespacedName
from dsf.hub.snapshot.published_score import PublishedScore
from dsf.kube.changes import Delete
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE

LONGEST_FIRST_ROUND = timedelta(minutes=5)
"""An object without scores is orphaned after this time: an agent fills it within seconds."""


def delete_orphaned_scores(
    orphans: Iterable[NamespacedName], scores: Mapping[NamespacedName, PublishedScore], *, now: str
) -> list[Delete]:
    """Return the deletions of orphaned scores that have expired; `now` is RFC 3339 in UTC."""
    oldest = rfc3339(datetime.fromisoformat(now) - LONGEST_FIRST_ROUND)
    return [
        Delete(
            ADD_ON_PLACEMENT_SCORE,
            name,
            cluster,
            scores[cluster, name].uid or None,
            scores[cluster, name].resource_version or None,
        )
        for cluster, name in sorted(orphans)
        if _is_dead(scores[cluster, name], now, oldest)
    ]


def _is_dead(score: PublishedScore, now: str, oldest: str) -> bool:
    if not score.score_label:
        return False
    return score.valid_until <= now if score.valid_until else score.created <= oldest
