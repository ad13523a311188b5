"""The controller's decision: what has to change on the hub, given what is observed.

The same call is the reconciler, the dry run and the unit test.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsf.api import names
from dsf.api.invalid import Invalid
from dsf.hub import report
from dsf.hub.distribution import Audience, audience
from dsf.hub.observed import Object, Work
from dsf.hub.orphans import deletions
from dsf.hub.reach import Reach, reach
from dsf.hub.render import Rendered, Renderer
from dsf.hub.report import Progress, Spread
from dsf.hub.rules import Rules, ScoringConfig, unmatched
from dsf.hub.snapshot import Snapshot
from dsf.hub.standing import Standing, heard, judge
from dsf.hub.tally import Published, Tally, published
from dsf.hub.work import LIMIT_BYTES, ROOM_BYTES, WARNING_BYTES, manifest_work
from dsf.kube.changes import Change, Create, Delete, Patch, merge_patch, status_patch
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, MANIFEST_WORK, Kind


def plan(
    snapshot: Snapshot,
    *,
    now: str,
    agent_namespace: str = names.AGENT_NAMESPACE,
    renderer: Renderer | None = None,
) -> list[Change]:
    """Return the changes that bring the hub to what its DynamicScorers and config ask for.

    `now` is an RFC 3339 time for conditions that change and for scores that expire. Every patch
    carries the resource version observed, so a plan made from an old snapshot overwrites nothing.
    Works that are being deleted are waited for. Without a DynamicScoringConfig nothing is
    distributed. `renderer` remembers from one plan to the next what it rendered.
    """
    config = snapshot.config if snapshot.config and not snapshot.config.leaving else None
    rules = config.rules if config else Rules()
    standings = judge(snapshot.scorers, snapshot.probes)
    if isinstance(rules, Invalid):
        return _invalid_config(config, rules, standings, now=now)
    summaries = [standing.summary for standing in standings if standing.summary]
    score_names = [summary.score_name for summary in summaries]
    told = Audience({})
    if config:
        told = audience(rules, snapshot.clusters, snapshot.add_ons, score_names)
    rendered = (renderer or Renderer()).render(summaries, told.shares)
    works = _works(rendered, snapshot, agent_namespace)
    scores = published(snapshot, told.shares, score_names, now=now)
    known = {name for standing in standings for name in standing.score_names}
    return [
        *_finalizer(snapshot.config, works),
        *(work for work in works if work.namespace not in snapshot.held),
        *_scorer_statuses(standings, config, told, reach(rendered, snapshot.works), scores, now),
        *_config_status(
            config,
            _progress(told, rendered, works, snapshot, len(summaries)),
            unmatched(rules, snapshot.clusters, known),
            now=now,
        ),
        *deletions(scores.orphans, snapshot.scores, now=now),
    ]


def _invalid_config(
    config: ScoringConfig | None, invalid: Invalid, standings: Iterable[Standing], *, now: str
) -> list[Change]:
    """Return statuses alone; an API that only the agents can judge keeps what they said of it."""
    if config is None:
        return []
    status = report.invalid_config_status(config.obj, invalid, now=now)
    changes = _status(DYNAMIC_SCORING_CONFIG, config.obj, status)
    for standing in standings:
        if standing.probed and not standing.health.theirs:
            status = report.scorer_status(standing, None, now=now)
            changes += _status(DYNAMIC_SCORER, standing.scorer.obj, status)
    return changes


def _works(
    desired: Mapping[str, Rendered], snapshot: Snapshot, agent_namespace: str
) -> list[Change]:
    """Return what to write of works; one that OCM would refuse for its size stays as it is."""
    changes: list[Change] = []
    for cluster, rendered in desired.items():
        work = snapshot.works.get(cluster)
        as_desired = work is not None and work.drifted is None and work.text == rendered.text
        if as_desired or (work and work.leaving) or _size(rendered) > LIMIT_BYTES:
            continue
        changes.append(_write(cluster, rendered.text, work, agent_namespace))
    return changes + [
        Delete(MANIFEST_WORK, names.MANIFEST_WORK, cluster, work.uid or None)
        for cluster, work in snapshot.works.items()
        if cluster not in desired and not work.leaving
    ]


def _write(cluster: str, text: str, work: Work | None, agent_namespace: str) -> Change:
    wanted = manifest_work(cluster, text, agent_namespace)
    if work is None:
        return Create(MANIFEST_WORK, wanted)
    observed = work.drifted or manifest_work(cluster, work.text, agent_namespace)
    versioned = {**wanted["metadata"], "resourceVersion": work.version}
    body = merge_patch(observed, {**wanted, "metadata": versioned})
    return Patch(MANIFEST_WORK, names.MANIFEST_WORK, cluster, body)


def _size(rendered: Rendered) -> int:
    return rendered.bytes + ROOM_BYTES


def _progress(
    told: Audience,
    rendered: Mapping[str, Rendered],
    works: Iterable[Change],
    snapshot: Snapshot,
    scorers: int,
) -> Progress:
    sizes = {c: _size(each) for c, each in rendered.items() if _size(each) > WARNING_BYTES}
    late = {str(change.namespace) for change in works}
    late |= {cluster for cluster, work in snapshot.works.items() if work.leaving}
    late |= {cluster for cluster, size in sizes.items() if size > LIMIT_BYTES}
    return Progress(
        scorers=scorers,
        clusters=len(told.shares),
        nobody=told.empty_because,
        lagging=frozenset(late & told.shares.keys()),
        refusals=snapshot.refusals,
        sizes=sizes,
    )


def _finalizer(config: ScoringConfig | None, works: Sequence[Change]) -> list[Change]:
    """Keep our finalizer on the config while it exists, and drop it once no work is left to delete.

    A work that is being deleted counts as gone: OCM removes it when its cluster answers, and a
    cluster that never does must not hold the config.
    """
    if config is None:
        return []
    metadata = config.obj["metadata"]
    present = list(metadata.get("finalizers") or [])
    others = [name for name in present if name != names.SCORING_CONFIG_FINALIZER]
    if not config.leaving:
        wanted = (
            present if len(others) < len(present) else [*present, names.SCORING_CONFIG_FINALIZER]
        )
    else:
        wanted = present if works else others
    body = merge_patch(config.obj, _guarded({"metadata": {"finalizers": wanted}}, config.obj))
    if not body:
        return []
    return [Patch(DYNAMIC_SCORING_CONFIG, names.SCORING_CONFIG, metadata["namespace"], body)]


def _scorer_statuses(
    standings: Iterable[Standing],
    config: ScoringConfig | None,
    told: Audience,
    reached: Mapping[str, Reach],
    scores: Published,
    now: str,
) -> list[Change]:
    """Return the status changes of all scorers that have been probed; the others keep theirs."""
    changes: list[Change] = []
    for standing in standings:
        if not standing.probed:
            continue
        summary = standing.summary
        tally = scores.tallies[summary.score_name] if summary else Tally()
        spread = Spread(
            reach=reached.get(standing.scorer.name, Reach()),
            tally=tally,
            has_config=config is not None,
            nobody=told.empty_because,
        )
        status = report.scorer_status(heard(standing, tally), spread, now=now)
        changes += _status(DYNAMIC_SCORER, standing.scorer.obj, status)
    return changes


def _config_status(
    config: ScoringConfig | None, progress: Progress, useless: Sequence[str], *, now: str
) -> list[Change]:
    """Return the status change of the config, once our finalizer is on it."""
    finalizers = config.obj["metadata"].get("finalizers") or () if config else ()
    if not config or names.SCORING_CONFIG_FINALIZER not in finalizers:
        return []
    status = report.config_status(config.obj, progress, useless, now=now)
    return _status(DYNAMIC_SCORING_CONFIG, config.obj, status)


def _status(kind: Kind, obj: Object, status: Mapping[str, Any]) -> list[Change]:
    body = status_patch(obj, _guarded({"metadata": {}, "status": status}, obj))
    metadata = obj["metadata"]
    return [Patch(kind, metadata["name"], metadata["namespace"], body, "status")] if body else []


def _guarded(desired: dict[str, Any], observed: Object) -> dict[str, Any]:
    """Return the desired object with the observed resource version as a precondition."""
    version = observed["metadata"].get("resourceVersion")
    if version is None:
        return desired
    return {**desired, "metadata": {**desired["metadata"], "resourceVersion": version}}
