"""Everything that a plan is made from, with what is kept of a published AddOnPlacementScore."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsf.api import names
from dsf.api.conditions import conditions_of, find
from dsf.api.scoring.placement_scores import valid_until
from dsf.api.scoring.score_conditions import TRUSTED, Adjustments, Rule
from dsf.api.times import rfc3339
from dsf.hub.snapshot import managed_cluster
from dsf.hub.snapshot.distribution_rules import ScoringConfig
from dsf.hub.snapshot.manifests import NamespaceManifests
from dsf.hub.snapshot.registered_scorer import ProbeResult, ProbeTarget, RegisteredScorer
from dsf.hub.snapshot.summaries_work import SummariesWork
from dsf.kube.port import Object

_STAGES = ("SourceFetched", "Scored", "Published")
NO_RESULTS = "NoResults"
"""The agent's reason for a round that succeeded without any result."""
DEFAULT_SCORE = "DefaultScore"
"""The agent's reason for entries that have the default score of their scorer."""
UNREACHED = ("False", "Unreachable")
"""Status and reason of the agent's condition Scored where it could not connect to the API."""
ADJUSTED = "ScoresAdjusted"
"""The agent's reason for a round whose results its rules dropped, merged, cut or clamped."""
_NO_RESULTS_MESSAGE = (
    "the scoring API returned no results: does the query match anything on this cluster? Where"
    " there is nothing to score, mask the score, or set scoring.defaultScore"
)


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """An AddOnPlacementScore that carries our label; times are RFC 3339 in UTC, or empty.

    `failure` is the first stage that failed in the agent's last round. `answered` says whether the
    scoring API returned usable scores in that round, `unreached` whether the agent could not
    connect to it, `defaulted` whether the entries have the default score. `trusted` is the status
    of the condition Trusted; empty if the scores are no forecasts. `adjustments` are what the
    agent's rules did to the results, None if nothing; their counts differ in every round, so that
    only another set of `rules` counts as a change.
    """

    score_label: str
    uid: str = ""
    resource_version: str = field(default="", compare=False)
    created: str = ""
    valid_until: str = field(default="", compare=False)
    answered: bool = False
    unreached: bool = False
    defaulted: bool = False
    failure: managed_cluster.ClusterFailure | None = None
    trusted: str = ""
    rules: frozenset[Rule] = frozenset()
    adjustments: Adjustments | None = field(default=None, compare=False)


def read_score(obj: Object) -> PublishedScore:
    """Read an AddOnPlacementScore: cluster.open-cluster-management.io/v1alpha1."""
    metadata, conditions, until = obj["metadata"], conditions_of(obj), valid_until(obj)
    scored = find(conditions, "Scored")
    adjustments = _adjustments(scored)
    return PublishedScore(
        score_label=sys.intern(
            str((metadata.get("labels") or {}).get(names.SCORE_NAME_LABEL) or "")
        ),
        uid=str(metadata.get("uid") or ""),
        resource_version=str(metadata.get("resourceVersion") or ""),
        created=str(metadata.get("creationTimestamp") or ""),
        valid_until=rfc3339(until) if until else "",
        answered=bool(scored and scored.get("status") == "True"),
        unreached=scored is not None and _outcome(scored) == UNREACHED,
        defaulted=(find(conditions, "Published") or {}).get("reason") == DEFAULT_SCORE,
        failure=next(
            filter(None, (managed_cluster.failed(find(conditions, stage)) for stage in _STAGES)),
            _empty(scored),
        ),
        trusted=sys.intern(str((find(conditions, TRUSTED) or {}).get("status") or "")),
        rules=frozenset(adjustments.counts) if adjustments else frozenset(),
        adjustments=adjustments,
    )


def _outcome(condition: Mapping[str, Any]) -> tuple[Any, Any]:
    return condition.get("status"), condition.get("reason")


def _adjustments(scored: Mapping[str, Any] | None) -> Adjustments | None:
    """Return what the agent's rules did to the results of its last round; None if nothing."""
    if scored is None or _outcome(scored) != ("True", ADJUSTED):
        return None
    return Adjustments.read(str(scored.get("message") or ""))


def _empty(scored: Mapping[str, Any] | None) -> managed_cluster.ClusterFailure | None:
    """Return the failure of a round without results: a query may match nothing."""
    if scored is None or _outcome(scored) != ("True", NO_RESULTS):
        return None
    return managed_cluster.failure_of(NO_RESULTS, {**scored, "message": _NO_RESULTS_MESSAGE})


@dataclass(frozen=True, slots=True)
class HubSnapshot:
    """The objects on the hub at one moment, and what the scoring APIs answered.

    `clusters`, `add_ons` and `works` are by managed cluster, `scores` by managed cluster and name.
    `manifests` are by the namespaces that the controller may read for scorers, none by default.
    `misplaced` are the DynamicScorers of other namespaces that no controller uses.
    `refusals` says by managed cluster why the API server refused our last write there. The clusters
    in `held` are not written to for now.
    """

    scorers: tuple[RegisteredScorer, ...] = ()
    config: ScoringConfig | None = None
    clusters: Mapping[str, managed_cluster.ManagedCluster] = field(default_factory=dict)
    add_ons: Mapping[str, managed_cluster.AddOn] = field(default_factory=dict)
    works: Mapping[str, SummariesWork] = field(default_factory=dict)
    scores: Mapping[managed_cluster.NamespacedName, PublishedScore] = field(default_factory=dict)
    probes: Mapping[ProbeTarget, ProbeResult] = field(default_factory=dict)
    manifests: Mapping[str, NamespaceManifests] = field(default_factory=dict)
    refusals: Mapping[str, str] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    misplaced: tuple[Object, ...] = ()
