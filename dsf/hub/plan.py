"""The controller's decision: which changes the hub needs, given a snapshot of it.

The reconciler, a dry run and a unit test make the same call.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsf.api import names
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.assess.config_resolution import Resolved
from dsf.hub.assess.scorer_assessment import ScorerAssessment, assess
from dsf.hub.distribute.audience import Audience, asked_keys, audience
from dsf.hub.distribute.rendered_summaries import RenderedSummaries, SummariesRenderer
from dsf.hub.distribute.works_plan import delete_orphaned_scores, plan_works, work_bytes
from dsf.hub.report.config_status import (
    FleetProgress,
    config_status,
    invalid_config_status,
    misplaced_status,
)
from dsf.hub.report.scorer_conditions import lacking_keys, with_health_from_agents
from dsf.hub.report.scorer_counts import FleetCounts, Rollout, ScorerCounts, count_scores, rollouts
from dsf.hub.report.scorer_status import ScorerProgress, scorer_status
from dsf.hub.snapshot.distribution_rules import DistributionRules, ScoringConfig, unmatched
from dsf.hub.snapshot.hub_snapshot import HubSnapshot
from dsf.hub.snapshot.summaries_work import WARNING_BYTES, is_too_large
from dsf.kube.changes import Change, Patch, merge_patch, status_patch
from dsf.kube.kinds import DYNAMIC_SCORER, DYNAMIC_SCORING_CONFIG, Kind
from dsf.kube.port import Object


def plan(
    snapshot: HubSnapshot,
    *,
    now: str,
    agent_namespace: str = names.AGENT_NAMESPACE,
    hub_namespace: str = names.HUB_NAMESPACE,
    renderer: SummariesRenderer | None = None,
) -> list[Change]:
    """Return the changes that bring the hub to what its DynamicScorers and config ask for.

    `now` is an RFC 3339 time for conditions that change and for scores that expire. Every patch
    carries the observed resource version, so a plan made from an old snapshot overwrites nothing.
    A work that is being deleted is written again only once it is gone. Without a
    DynamicScoringConfig nothing is distributed. `renderer` caches texts from one plan to the next.
    """
    config = snapshot.config if snapshot.config and not snapshot.config.being_deleted else None
    rules = config.rules if config else DistributionRules()
    assessments = assess(snapshot.scorers, snapshot.probes, snapshot.manifests)
    misplaced = _misplaced_statuses(snapshot.misplaced, hub_namespace, now=now)
    if isinstance(rules, InvalidInput):
        return [*_invalid_config(config, rules, assessments, now=now), *misplaced]
    recorded = _recorded_summaries(snapshot)
    score_names = _score_names(assessments, recorded.values())
    chosen = Audience({})
    if config:
        asked = asked_keys(recorded.values())
        chosen = audience(rules, snapshot.clusters, snapshot.add_ons, score_names, asked)
    rendered = (renderer or SummariesRenderer()).render(recorded.values(), chosen.shares)
    works = plan_works(rendered, snapshot, agent_namespace)
    counts = count_scores(snapshot, chosen.shares, score_names, now=now)
    known = {name for assessment in assessments for name in assessment.score_names}
    distribution = _Distribution(
        config, chosen, recorded, rollouts(rendered, snapshot.works), counts
    )
    waiting = snapshot.held
    if not recorded and any(assessment.summary for assessment in assessments):
        # The first summaries are being recorded: do not create empty works just before them.
        waiting |= rendered.keys() - snapshot.works.keys()
    return [
        *_finalizer(snapshot.config, works),
        *(work for work in works if work.namespace not in waiting),
        *_scorer_statuses(assessments, distribution, now),
        *_config_status(
            config,
            _progress(chosen, rendered, works, snapshot, len(recorded)),
            unmatched(rules, snapshot.clusters, known, _source_names(assessments)),
            now=now,
        ),
        *delete_orphaned_scores(counts.orphans, snapshot.scores, now=now),
        *misplaced,
    ]


@dataclass(frozen=True, slots=True)
class _Distribution:
    """What is distributed to whom, and how far it has come; mappings are by scorer's name."""

    config: ScoringConfig | None
    chosen: Audience
    recorded: Mapping[str, ScorerSummary]
    rolled_out: Mapping[str, Rollout]
    counts: FleetCounts

    def progress(self, assessment: ScorerAssessment) -> ScorerProgress:
        """Return how far a scorer has come; a summary that is not recorded yet is nowhere."""
        summary, name = assessment.summary, assessment.scorer.name
        counts = self.counts.by_score_name[summary.score_name] if summary else ScorerCounts()
        rollout = self.rolled_out.get(name, Rollout())
        if summary != self.recorded.get(name):
            rollout = Rollout(counts.desired, 0)
        return ScorerProgress(
            rollout=rollout,
            counts=counts,
            has_config=self.config is not None,
            no_clusters_because=self.chosen.empty_because,
            lacking=lacking_keys(summary, self.chosen.shares.values()) if summary else {},
        )


def _recorded_summaries(snapshot: HubSnapshot) -> dict[str, ScorerSummary]:
    """Return by scorer the summary that follows from its spec and its status, without any probe.

    Only these are distributed. A new config or health is first recorded in the status, and then
    distributed from there. So a controller that restarts or takes over, which knows of no probe,
    distributes the same and never something older.
    """
    assessments = assess(snapshot.scorers, {}, snapshot.manifests)
    summaries = ((each.scorer.name, each.summary) for each in assessments)
    return {name: summary for name, summary in summaries if summary}


def _score_names(
    assessments: Iterable[ScorerAssessment], recorded: Iterable[ScorerSummary]
) -> list[str]:
    current = (assessment.summary for assessment in assessments)
    score_names = [summary.score_name for summary in (*recorded, *current) if summary]
    return list(dict.fromkeys(score_names))


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


def _source_names(assessments: Iterable[ScorerAssessment]) -> frozenset[str]:
    """Return the names of sources of scorers with several, Inactive ones included."""
    resolved = [each.resolution for each in assessments if isinstance(each.resolution, Resolved)]
    return frozenset(source.name for each in resolved for source in each.summary.sources)


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
    lagging |= {cluster for cluster, work in snapshot.works.items() if work.being_deleted}
    lagging |= {cluster for cluster, size in sizes.items() if is_too_large(size)}
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
    if config.being_deleted:
        desired = present if works else others
    else:
        ours = len(others) < len(present)
        desired = present if ours else [*present, names.SCORING_CONFIG_FINALIZER]
    body = merge_patch(config.obj, _guarded({"metadata": {"finalizers": desired}}, config.obj))
    if not body:
        return []
    return [Patch(DYNAMIC_SCORING_CONFIG, names.SCORING_CONFIG, metadata["namespace"], body)]


def _scorer_statuses(
    assessments: Iterable[ScorerAssessment], distribution: _Distribution, now: str
) -> list[Change]:
    """Return the status changes of all scorers that have been probed; the others keep theirs."""
    changes: list[Change] = []
    for assessment in assessments:
        if assessment.probed:
            progress = distribution.progress(assessment)
            judged = with_health_from_agents(assessment, progress.counts)
            status = scorer_status(judged, progress, now=now)
            changes += _status(DYNAMIC_SCORER, assessment.scorer.obj, status)
    return changes


def _misplaced_statuses(scorers: Iterable[Object], hub_namespace: str, *, now: str) -> list[Change]:
    statuses = ((obj, misplaced_status(obj, hub_namespace, now=now)) for obj in scorers)
    return [change for obj, status in statuses for change in _status(DYNAMIC_SCORER, obj, status)]


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
    version = observed["metadata"]["resourceVersion"]
    return {**desired, "metadata": {**desired["metadata"], "resourceVersion": version}}
