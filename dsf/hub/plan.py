"""The controller's decision: what has to change on the hub, given what is observed.

The same call is the reconciler, the dry run and the unit test.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsf.api import names
from dsf.api.invalid import Invalid
from dsf.hub.assess.scorer_assessment import ScorerAssessment, assess
from dsf.hub.distribute.audience import Audience, audience
from dsf.hub.distribute.orphaned_scores import delete_orphaned_scores
from dsf.hub.distribute.rendered_summaries import RenderedSummaries, SummariesRenderer
from dsf.hub.distribute.works_plan import plan_works, work_bytes
from dsf.hub.report import statuses as report
from dsf.hub.report.health_from_agents import with_health_from_agents
from dsf.hub.report.rollout import Rollout, rollouts
from dsf.hub.report.scorer_counts import FleetCounts, ScorerCounts, count_scores
from dsf.hub.report.statuses import FleetProgress, ScorerProgress
from dsf.hub.snapshot.distribution_rules import DistributionRules, ScoringConfig, unmatched
from dsf.hub.snapshot.hub_snapshot import HubSnapshot
from dsf.hub.snapshot.summaries_work import (
    LIMIT_BYTES,
    WARNING_BYTES,
)
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
    carries the resource version observed, so a plan made from an old snapshot overwrites nothing.
    Works that are being deleted are waited for. Without a DynamicScoringConfig nothing is
    distributed. `renderer` remembers from one plan to the next what it rendered.
    """
    config = snapshot.config if snapshot.config and not snapshot.config.leaving else None
    rules = config.rules if config else DistributionRules()
    standings = assess(snapshot.scorers, snapshot.probes)
    if isinstance(rules, Invalid):
        return _invalid_config(config, rules, standings, now=now)
    summaries = [standing.summary for standing in standings if standing.summary]
    score_names = [summary.score_name for summary in summaries]
    told = Audience({})
    if config:
        told = audience(rules, snapshot.clusters, snapshot.add_ons, score_names)
    rendered = (renderer or SummariesRenderer()).render(summaries, told.shares)
    works = plan_works(rendered, snapshot, agent_namespace)
    scores = count_scores(snapshot, told.shares, score_names, now=now)
    known = {name for standing in standings for name in standing.score_names}
    return [
        *_finalizer(snapshot.config, works),
        *(work for work in works if work.namespace not in snapshot.held),
        *_scorer_statuses(standings, config, told, rollouts(rendered, snapshot.works), scores, now),
        *_config_status(
            config,
            _progress(told, rendered, works, snapshot, len(summaries)),
            unmatched(rules, snapshot.clusters, known),
            now=now,
        ),
        *delete_orphaned_scores(scores.orphans, snapshot.scores, now=now),
    ]


def _invalid_config(
    config: ScoringConfig | None,
    invalid: Invalid,
    standings: Iterable[ScorerAssessment],
    *,
    now: str,
) -> list[Change]:
    """Return statuses alone; an API that only the agents can judge keeps what they said of it."""
    if config is None:
        return []
    status = report.invalid_config_status(config.obj, invalid, now=now)
    changes = _status(DYNAMIC_SCORING_CONFIG, config.obj, status)
    for standing in standings:
        if standing.probed and not standing.health.judged_by_agents:
            status = report.scorer_status(standing, None, now=now)
            changes += _status(DYNAMIC_SCORER, standing.scorer.obj, status)
    return changes


def _progress(
    told: Audience,
    rendered: Mapping[str, RenderedSummaries],
    works: Iterable[Change],
    snapshot: HubSnapshot,
    scorers: int,
) -> FleetProgress:
    sizes = {
        c: work_bytes(each) for c, each in rendered.items() if work_bytes(each) > WARNING_BYTES
    }
    late = {str(change.namespace) for change in works}
    late |= {cluster for cluster, work in snapshot.works.items() if work.leaving}
    late |= {cluster for cluster, size in sizes.items() if size > LIMIT_BYTES}
    return FleetProgress(
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
    standings: Iterable[ScorerAssessment],
    config: ScoringConfig | None,
    told: Audience,
    reached: Mapping[str, Rollout],
    scores: FleetCounts,
    now: str,
) -> list[Change]:
    """Return the status changes of all scorers that have been probed; the others keep theirs."""
    changes: list[Change] = []
    for standing in standings:
        if not standing.probed:
            continue
        summary = standing.summary
        tally = scores.tallies[summary.score_name] if summary else ScorerCounts()
        spread = ScorerProgress(
            reach=reached.get(standing.scorer.name, Rollout()),
            tally=tally,
            has_config=config is not None,
            nobody=told.empty_because,
        )
        status = report.scorer_status(with_health_from_agents(standing, tally), spread, now=now)
        changes += _status(DYNAMIC_SCORER, standing.scorer.obj, status)
    return changes


def _config_status(
    config: ScoringConfig | None, progress: FleetProgress, useless: Sequence[str], *, now: str
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
