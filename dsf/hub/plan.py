"""The controller's decision: which changes the hub needs, given a snapshot of it.

The reconciler, a dry run and a unit test make the same call.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsf.api import names
from dsf.api.invalid_input import InvalidInput
from dsf.hub.assess.scorer_assessment import ScorerAssessment, assess
from dsf.hub.distribute.audience import Audience, audience
from dsf.hub.distribute.orphaned_scores import delete_orphaned_scores
from dsf.hub.distribute.rendered_summaries import RenderedSummaries, SummariesRenderer
from dsf.hub.distribute.works_plan import plan_works, work_bytes
from dsf.hub.report.config_status import FleetProgress, config_status, invalid_config_status
from dsf.hub.report.health_from_agents import with_health_from_agents
from dsf.hub.report.rollout import Rollout, rollouts
from dsf.hub.report.scorer_counts import FleetCounts, ScorerCounts, count_scores
from dsf.hub.report.scorer_status import ScorerProgress, scorer_status
from dsf.hub.snapshot.distribution_rules import DistributionRules, ScoringConfig, unmatched
from dsf.hub.snapshot.hub_snapshot import HubSnapshot
from dsf.hub.snapshot.summaries_work import LIMIT_BYTES, WARNING_BYTES
from dsf.kube.changes import Change, Patch, merge_patch, status_patch
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, Kind
from dsf.kube.port import Object


def plan(
    snapshot: HubSnapshot,
    *,
    now: str,
    agent_namespace: str = names.AGENT_NAMESPACE,
    renderer: SummariesRenderer | None = None,
) -> list[Change]:
    """Return the changes that bring the hub to what its DynamicScorers and config ask for.

    `now` is an RFC 3339 time for conditions that change and for scores that expire. Every patch
    carries the observed resource version, so a plan made from an old snapshot overwrites nothing.
    A work that is being deleted is written again only once it is gone. Without a
    DynamicScoringConfig nothing is distributed. `renderer` caches texts from one plan to the next.
    """
    config = snapshot.config if snapshot.config and not snapshot.config.leaving else None
    rules = config.rules if config else DistributionRules()
    assessments = assess(snapshot.scorers, snapshot.probes)
    if isinstance(rules, InvalidInput):
        return _invalid_config(config, rules, assessments, now=now)
    summaries = [assessment.summary for assessment in assessments if assessment.summary]
    score_names = [summary.score_name for summary in summaries]
    chosen = Audience({})
    if config:
        chosen = audience(rules, snapshot.clusters, snapshot.add_ons, score_names)
    rendered = (renderer or SummariesRenderer()).render(summaries, chosen.shares)
    works = plan_works(rendered, snapshot, agent_namespace)
    counts = count_scores(snapshot, chosen.shares, score_names, now=now)
    known = {name for assessment in assessments for name in assessment.score_names}
    rolled_out = rollouts(rendered, snapshot.works)
    return [
        *_finalizer(snapshot.config, works),
        *(work for work in works if work.namespace not in snapshot.held),
        *_scorer_statuses(assessments, config, chosen, rolled_out, counts, now),
        *_config_status(
            config,
            _progress(chosen, rendered, works, snapshot, len(summaries)),
            unmatched(rules, snapshot.clusters, known),
            now=now,
        ),
        *delete_orphaned_scores(counts.orphans, snapshot.scores, now=now),
    ]


def _invalid_config(
    config: ScoringConfig | None,
    invalid: InvalidInput,
    assessments: Iterable[ScorerAssessment],
    *,
    now: str,
) -> list[Change]:
    """Return only statuses; a health that the agents' reports determined stays as it is."""
    if config is None:
        return []
    status = invalid_config_status(config.obj, invalid, now=now)
    changes = _status(DYNAMIC_SCORING_CONFIG, config.obj, status)
    for assessment in assessments:
        if assessment.probed and not assessment.health.judged_by_agents:
            status = scorer_status(assessment, None, now=now)
            changes += _status(DYNAMIC_SCORER, assessment.scorer.obj, status)
    return changes


def _progress(
    chosen: Audience,
    rendered: Mapping[str, RenderedSummaries],
    works: Iterable[Change],
    snapshot: HubSnapshot,
    scorers: int,
) -> FleetProgress:
    sizes = {
        cluster: size
        for cluster, each in rendered.items()
        if (size := work_bytes(each)) > WARNING_BYTES
    }
    lagging = {str(change.namespace) for change in works}
    lagging |= {cluster for cluster, work in snapshot.works.items() if work.leaving}
    lagging |= {cluster for cluster, size in sizes.items() if size > LIMIT_BYTES}
    return FleetProgress(
        scorers=scorers,
        clusters=len(chosen.shares),
        no_clusters_because=chosen.empty_because,
        lagging=frozenset(lagging & chosen.shares.keys()),
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
    if config.leaving:
        desired = present if works else others
    else:
        ours = len(others) < len(present)
        desired = present if ours else [*present, names.SCORING_CONFIG_FINALIZER]
    body = merge_patch(config.obj, _guarded({"metadata": {"finalizers": desired}}, config.obj))
    if not body:
        return []
    return [Patch(DYNAMIC_SCORING_CONFIG, names.SCORING_CONFIG, metadata["namespace"], body)]


def _scorer_statuses(
    assessments: Iterable[ScorerAssessment],
    config: ScoringConfig | None,
    chosen: Audience,
    rolled_out: Mapping[str, Rollout],
    counts: FleetCounts,
    now: str,
) -> list[Change]:
    """Return the status changes of all scorers that have been probed; the others keep theirs."""
    changes: list[Change] = []
    for assessment in assessments:
        if not assessment.probed:
            continue
        summary = assessment.summary
        of_scorer = counts.by_score_name[summary.score_name] if summary else ScorerCounts()
        progress = ScorerProgress(
            rollout=rolled_out.get(assessment.scorer.name, Rollout()),
            counts=of_scorer,
            has_config=config is not None,
            no_clusters_because=chosen.empty_because,
        )
        judged = with_health_from_agents(assessment, of_scorer)
        status = scorer_status(judged, progress, now=now)
        changes += _status(DYNAMIC_SCORER, assessment.scorer.obj, status)
    return changes


def _config_status(
    config: ScoringConfig | None, progress: FleetProgress, unused: Sequence[str], *, now: str
) -> list[Change]:
    """Return the status change of the config, once our finalizer is on it."""
    finalizers = config.obj["metadata"].get("finalizers") or () if config else ()
    if not config or names.SCORING_CONFIG_FINALIZER not in finalizers:
        return []
    status = config_status(config.obj, progress, unused, now=now)
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
