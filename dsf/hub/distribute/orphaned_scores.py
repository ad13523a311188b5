"""Scores that nobody publishes any more: the agents' to delete, and the hub's where none does.

An agent deletes the scores that it is no longer told to publish as soon as it is told. The hub
deletes only what has expired, which is what a working agent's scores never do: so the two never
undo each other's work, and a score goes away even where the agent has gone before it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from dsf.api.times import rfc3339
from dsf.hub.snapshot.managed_cluster import NamespacedName
from dsf.hub.snapshot.published_score import PublishedScore
from dsf.kube.changes import Delete
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE

LONGEST_FIRST_ROUND = timedelta(minutes=5)
"""After this time an object without any score is nobody's: an agent writes to it at once."""


def delete_orphaned_scores(
    orphans: Iterable[NamespacedName], scores: Mapping[NamespacedName, PublishedScore], *, now: str
) -> list[Delete]:
    """Return what to delete of the scores that nobody is told to publish; `now` is RFC 3339."""
    oldest = rfc3339(datetime.fromisoformat(now) - LONGEST_FIRST_ROUND)
    return [
        Delete(ADD_ON_PLACEMENT_SCORE, name, cluster, scores[cluster, name].uid or None)
        for cluster, name in sorted(orphans)
        if _is_dead(scores[cluster, name], now, oldest)
    ]


def _is_dead(score: PublishedScore, now: str, oldest: str) -> bool:
    if not score.score_label:
        return False
    return score.valid_until <= now if score.valid_until else score.created <= oldest
