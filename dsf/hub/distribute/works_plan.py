"""Which ManifestWorks with scorer summaries to write, and which orphaned scores to delete.

An agent deletes its scores itself as soon as its summaries change. The hub deletes only what has
expired, which the scores of a working agent never do. The deletion names the version that had
expired, so a score that an agent publishes again meanwhile stays. So the two never undo each
other's work, and scores disappear even if the agent was removed first.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from dsf.api import names
from dsf.api.times import rfc3339
from dsf.hub.distribute.rendered_summaries import RenderedSummaries
from dsf.hub.snapshot.hub_snapshot import HubSnapshot, PublishedScore
from dsf.hub.snapshot.managed_cluster import NamespacedName
from dsf.hub.snapshot.summaries_work import ROOM_BYTES, SummariesWork, is_too_large, summaries_work
from dsf.kube.changes import Change, Create, Delete, Patch, merge_patch
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, MANIFEST_WORK


def plan_works(
    desired: Mapping[str, RenderedSummaries], snapshot: HubSnapshot, agent_namespace: str
) -> list[Change]:
    """Return the changes of works; a work that OCM would refuse as too large stays as it is."""
    changes: list[Change] = []
    for cluster, rendered in desired.items():
        work = snapshot.works.get(cluster)
        wanted = (rendered.text, rendered.secrets)
        as_desired = work and work.drifted is None and (work.text, work.secrets) == wanted
        if as_desired or (work and work.being_deleted) or is_too_large(work_bytes(rendered)):
            continue
        changes.append(_write(cluster, rendered, work, agent_namespace))
    return changes + [
        Delete(MANIFEST_WORK, names.MANIFEST_WORK, cluster, work.uid or None)
        for cluster, work in snapshot.works.items()
        if cluster not in desired and not work.being_deleted
    ]


def _write(
    cluster: str, rendered: RenderedSummaries, work: SummariesWork | None, agent_namespace: str
) -> Change:
    desired = summaries_work(cluster, rendered.text, agent_namespace, rendered.secrets)
    if work is None:
        return Create(MANIFEST_WORK, desired)
    observed = work.drifted or summaries_work(cluster, work.text, agent_namespace, work.secrets)
    versioned = {**desired["metadata"], "resourceVersion": work.version}
    body = merge_patch(observed, {**desired, "metadata": versioned})
    return Patch(MANIFEST_WORK, names.MANIFEST_WORK, cluster, body)


def work_bytes(rendered: RenderedSummaries) -> int:
    """Return an upper bound on the size of a ManifestWork with these summaries, in bytes."""
    of_secrets = sum(len(json.dumps(name)) + len(",") for name in rendered.secrets)
    return rendered.bytes + ROOM_BYTES + of_secrets


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
