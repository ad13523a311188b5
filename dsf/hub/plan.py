"""The controller's decision: what has to change on the hub, given what is observed.

The same call is the reconciler, the dry run and the unit test.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsf.api import names
from dsf.api.invalid import Invalid
from dsf.api.scoring_config import Mask
from dsf.hub import distribution, report
from dsf.hub.distribution import Reach
from dsf.hub.registration import is_leaving
from dsf.hub.report import Progress
from dsf.hub.snapshot import Object, Snapshot
from dsf.hub.standing import Standing, judge
from dsf.hub.work import manifest_work
from dsf.kube.changes import Change, Patch, diff, merge_patch, status_patch
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, MANIFEST_WORK, Kind


def plan(
    snapshot: Snapshot, *, now: str, agent_namespace: str = names.AGENT_NAMESPACE
) -> list[Change]:
    """Return the changes that bring the hub to what its DynamicScorers and config ask for.

    `now` is an RFC 3339 time for conditions that change. Every patch carries the resource version
    observed, so a plan made from an old snapshot overwrites nothing. Works that are being deleted
    are waited for. Without a DynamicScoringConfig nothing is distributed.
    """
    config = snapshot.config if snapshot.config and not is_leaving(snapshot.config) else None
    masks = distribution.masks(config) if config else ()
    if isinstance(masks, Invalid):
        return _invalid_config(config or {}, masks, now=now)
    standings = judge(snapshot.scorers, snapshot.probes)
    summaries = [standing.summary for standing in standings if standing.summary]
    clusters = distribution.accepted(snapshot.clusters) if config else []
    texts = distribution.texts(summaries, clusters, masks)
    works = _works(texts, snapshot.works, agent_namespace)
    reach = distribution.reach(texts, snapshot.works)
    lagging = frozenset(clusters) & _touched(works, snapshot.works)
    progress = Progress(len(summaries), len(clusters), lagging, snapshot.refusals)
    return [
        *_finalizer(snapshot.config, works),
        *works,
        *_scorer_statuses(standings, config, reach, now=now),
        *_config_status(config, progress, _unmatched(masks, standings, snapshot), now=now),
    ]


def _invalid_config(config: Object, invalid: Invalid, *, now: str) -> list[Change]:
    status = report.invalid_config_status(config, invalid, now=now)
    return _status(DYNAMIC_SCORING_CONFIG, config, status)


def _works(
    texts: Mapping[str, str], observed: Iterable[Object], agent_namespace: str
) -> list[Change]:
    standing = {work["metadata"]["namespace"]: work for work in observed}
    leaving = {cluster for cluster, work in standing.items() if is_leaving(work)}
    desired = [
        _guarded(manifest_work(cluster, text, agent_namespace), standing.get(cluster))
        for cluster, text in texts.items()
        if cluster not in leaving
    ]
    return diff(MANIFEST_WORK, desired, [dict(work) for work in standing.values()])


def _touched(changes: Iterable[Change], works: Iterable[Object]) -> frozenset[str]:
    """Return the clusters whose work is not as desired: to be written, or still being deleted."""
    leaving = {str(work["metadata"]["namespace"]) for work in works if is_leaving(work)}
    return frozenset(leaving | {str(change.namespace) for change in changes})


def _finalizer(config: Object | None, works: Sequence[Change]) -> list[Change]:
    """Keep our finalizer on the config while it exists, and drop it once no work is left to delete.

    A work that is being deleted counts as gone: OCM removes it when its cluster answers, and a
    cluster that never does must not hold the config.
    """
    if config is None:
        return []
    present = list(config["metadata"].get("finalizers") or [])
    others = [name for name in present if name != names.SCORING_CONFIG_FINALIZER]
    if not is_leaving(config):
        wanted = (
            present if len(others) < len(present) else [*present, names.SCORING_CONFIG_FINALIZER]
        )
    else:
        wanted = present if works else others
    body = merge_patch(config, _guarded({"metadata": {"finalizers": wanted}}, config))
    if not body:
        return []
    name, namespace = names.SCORING_CONFIG, config["metadata"]["namespace"]
    return [Patch(DYNAMIC_SCORING_CONFIG, name, namespace, body)]


def _scorer_statuses(
    standings: Iterable[Standing], config: Object | None, reach: Mapping[str, Reach], *, now: str
) -> list[Change]:
    """Return the status changes of all scorers that have been probed; the others keep theirs."""
    changes: list[Change] = []
    for standing in standings:
        if standing.probed:
            reached = reach.get(standing.scorer.name, Reach())
            distributed = report.distributed(standing, config, reached)
            status = report.scorer_status(standing, distributed, now=now)
            changes += _status(DYNAMIC_SCORER, standing.scorer.obj, status)
    return changes


def _config_status(
    config: Object | None, progress: Progress, unmatched: Sequence[str], *, now: str
) -> list[Change]:
    """Return the status change of the config, once our finalizer is on it."""
    if not config or names.SCORING_CONFIG_FINALIZER not in config["metadata"].get("finalizers", ()):
        return []
    status = report.config_status(config, progress, unmatched, now=now)
    return _status(DYNAMIC_SCORING_CONFIG, config, status)


def _unmatched(
    masks: Sequence[Mask], standings: Iterable[Standing], snapshot: Snapshot
) -> list[str]:
    score_names = {name for standing in standings for name in standing.score_names}
    return distribution.unmatched(masks, snapshot.clusters, score_names)


def _status(kind: Kind, obj: Object, status: Mapping[str, Any]) -> list[Change]:
    body = status_patch(obj, _guarded({"metadata": {}, "status": status}, obj))
    metadata = obj["metadata"]
    return [Patch(kind, metadata["name"], metadata["namespace"], body, "status")] if body else []


def _guarded(desired: dict[str, Any], observed: Object | None) -> dict[str, Any]:
    """Return the desired object with the observed resource version as a precondition."""
    version = observed["metadata"].get("resourceVersion") if observed else None
    if version is None:
        return desired
    return {**desired, "metadata": {**desired["metadata"], "resourceVersion": version}}
