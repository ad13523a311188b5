"""What the controller concludes about each scorer: its summary or its fault, and its health.

Includes what to do about an API that not all of the hub and the managed clusters reach.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from dsf.api import names
from dsf.api.conditions import Condition, conditions_of, find
from dsf.api.crd.dynamic_scorer import DynamicScorerSpec
from dsf.api.crd.score_meaning import Direction
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.api.untrusted_text import InvalidInput
from dsf.hub.assess.config_resolution import Resolved, resolve
from dsf.hub.assess.context_completion import with_manifests
from dsf.hub.snapshot.managed_cluster import is_being_deleted
from dsf.hub.snapshot.manifests import NamespaceManifests
from dsf.hub.snapshot.registered_scorer import (
    HealthStatus,
    ProbeFailure,
    ProbeResult,
    ProbeTarget,
    RegisteredScorer,
    is_full,
)

UNANSWERED = frozenset({"Unreachable", "TimedOut"})
"""Reasons of probe failures that may only mean that the hub can't reach the API."""

AGENTS_FAIL = "AgentsFail"
"""Reason of the condition Healthy where the hub can't judge an API and no agent gets scores."""


@dataclass(frozen=True, slots=True)
class ScorerHealth:
    """The health of a scoring API.

    `usable` says whether agents should call it. `judged_by_agents` says that the hub can't reach
    the API itself, so its health is what the agents report.
    """

    status: HealthStatus
    usable: bool
    condition: Condition
    judged_by_agents: bool = False


@dataclass(frozen=True, slots=True)
class ScorerAssessment:
    """What the controller concludes about one scorer.

    `config_synced` is the condition ConfigSynced. `config` is the API's config in use. `probed`
    says whether the API was probed since the controller started. `name_owner` is the older scorer
    that owns the same score name, empty if there is none; `owner_direction` is the direction of its
    published scores, if known. `completed` is the summary with what its context asks for of
    manifests. `unknown_context` are fields of the config's context that the contract does not know.
    """

    scorer: RegisteredScorer
    resolution: Resolved | InvalidInput
    health: ScorerHealth
    config_synced: Condition
    config: ScorerConfig | None
    probed: bool
    completed: ScorerSummary | InvalidInput
    unknown_context: tuple[str, ...] = ()
    name_owner: str = ""
    owner_direction: Direction | None = None

    @property
    def summary(self) -> ScorerSummary | None:
        """The summary to distribute; None if the scorer is not to be distributed."""
        if isinstance(self.completed, InvalidInput) or not self.health.usable or self.name_owner:
            return None
        return self.completed

    @property
    def score_names(self) -> frozenset[str]:
        """The score names by which a mask may refer to this scorer."""
        spec, resolution = self.scorer.spec, self.resolution
        known = set[str | None]()
        if isinstance(resolution, Resolved):
            known.add(resolution.summary.score_name)
        if isinstance(spec, DynamicScorerSpec) and spec.scoring and spec.scoring.params:
            known.add(spec.scoring.params.name)
        return frozenset(filter(None, known))


def assess(
    scorers: Iterable[RegisteredScorer],
    probes: Mapping[ProbeTarget, ProbeResult],
    manifests: Mapping[str, NamespaceManifests],
) -> tuple[ScorerAssessment, ...]:
    """Return the assessments of all scorers that are not being deleted, oldest first.

    `manifests` are by the namespaces that the controller may read.
    """
    staying = [scorer for scorer in scorers if not is_being_deleted(scorer.obj)]
    staying.sort(key=lambda scorer: (scorer.created, scorer.name))
    return _with_name_owners(
        [
            _assess(each, probes.get(each.target) if each.target else None, manifests)
            for each in staying
        ]
    )


def reported_health(scorer: RegisteredScorer, probe: ProbeResult) -> HealthStatus | None:
    """Return the health in the scorer's status, which new probes have to contradict repeatedly.

    Returns None if the status is about an older spec, or if the agents' reports determined it.
    """
    by_agents = probe.health is not None and _is_for_agents_to_judge(scorer, probe.health)
    return scorer.reported_health if scorer.current and not by_agents else None


def _assess(
    scorer: RegisteredScorer, probe: ProbeResult | None, manifests: Mapping[str, NamespaceManifests]
) -> ScorerAssessment:
    config = _config_in_use(scorer, probe)
    spec = scorer.spec if probe else _spec_before_first_probe(scorer)
    resolution = spec if isinstance(spec, InvalidInput) else resolve(scorer.name, spec, config)
    failure = _fetch_failure(scorer, probe)
    if isinstance(resolution, InvalidInput) and failure:
        resolution = InvalidInput(failure.reason, failure.message)
    return ScorerAssessment(
        scorer=scorer,
        resolution=resolution,
        health=_health(scorer, probe),
        config_synced=_config_synced(scorer, probe, resolution),
        config=config,
        probed=probe is not None or isinstance(scorer.spec, InvalidInput),
        completed=resolution
        if isinstance(resolution, InvalidInput)
        else with_manifests(resolution.summary, manifests),
        unknown_context=_unknown_context(probe),
    )


def _unknown_context(probe: ProbeResult | None) -> tuple[str, ...]:
    unknown = probe.unknown if probe else ()
    return tuple(field for field in unknown if field.lstrip('"').startswith("context."))


def _config_in_use(scorer: RegisteredScorer, probe: ProbeResult | None) -> ScorerConfig | None:
    """Return the config fetched; else the last synced one, if it belongs to the current spec.

    Before the first probe the last synced config counts in any case: a restart changes nothing.
    """
    if isinstance(scorer.spec, InvalidInput) or not is_full(scorer.spec):
        return None
    if probe and isinstance(probe.config, ScorerConfig):
        return probe.config
    return scorer.last_synced_config if probe is None or scorer.current else None


def _spec_before_first_probe(scorer: RegisteredScorer) -> DynamicScorerSpec | InvalidInput:
    """Return the spec with the configURL that served the last synced config.

    A config names no host of its own: with a new configURL it would be sent to the wrong server.
    """
    spec, url = scorer.spec, scorer.last_synced_config_url
    if isinstance(spec, InvalidInput) or not (url and is_full(spec)):
        return spec
    return spec.model_copy(update={"config_url": url})


def _fetch_failure(scorer: RegisteredScorer, probe: ProbeResult | None) -> ProbeFailure | None:
    fetched = scorer.target is not None and scorer.target.full
    return probe.config if fetched and probe and isinstance(probe.config, ProbeFailure) else None


def _config_synced(
    scorer: RegisteredScorer, probe: ProbeResult | None, resolution: Resolved | InvalidInput
) -> Condition:
    failure = _fetch_failure(scorer, probe)
    if failure:
        kept = (
            "" if isinstance(resolution, InvalidInput) else "; the last synced config stays in use"
        )
        return Condition("ConfigSynced", "False", failure.reason, failure.message + kept)
    if isinstance(resolution, InvalidInput):
        return Condition("ConfigSynced", "False", resolution.reason, resolution.message)
    if scorer.target and not scorer.target.full:
        message = "configSyncMode is None: source and scoring of this object are used as they are"
        return Condition("ConfigSynced", "True", "SyncDisabled", message)
    message = "the config that the API serves is in use"
    if probe and probe.unknown:
        message += f"; unknown fields are ignored: {', '.join(probe.unknown)}"
    return Condition("ConfigSynced", "True", "Synced", message)


def _health(scorer: RegisteredScorer, probe: ProbeResult | None) -> ScorerHealth:
    if probe is None:
        return _health_before_first_probe(scorer)
    if probe.health is None:
        condition = Condition("Healthy", "True", "Healthy", "/healthz answers")
        return ScorerHealth("Active", True, condition)
    reason, message = probe.health.reason, probe.health.message
    url = scorer.target.config_url if scorer.target else ""
    if _is_for_agents_to_judge(scorer, probe.health):
        message += (
            "; distributed nevertheless: managed clusters may reach an Internal scorer that the hub"
            " can't"
        )
        condition = Condition("Healthy", "Unknown", reason, message)
        return ScorerHealth("Unknown", True, condition, judged_by_agents=True)
    if reason in UNANSWERED:
        message += f"; {advice_for_unanswered(url, reason)}"
    message += "; not distributed until it answers"
    return ScorerHealth("Inactive", False, Condition("Healthy", "False", reason, message))


def _health_before_first_probe(scorer: RegisteredScorer) -> ScorerHealth:
    status = scorer.reported_health or "Unknown"
    healthy = find(conditions_of(scorer.obj), "Healthy") or {}
    usable = scorer.reported_health in {"Active", "Unknown"} or healthy.get("reason") == AGENTS_FAIL
    return ScorerHealth(
        status, usable, Condition("Healthy", "Unknown", "NotProbed", "not probed yet")
    )


def _is_for_agents_to_judge(scorer: RegisteredScorer, failure: ProbeFailure) -> bool:
    spec = scorer.spec
    if failure.reason not in UNANSWERED or isinstance(spec, InvalidInput):
        return False
    return not is_full(spec) and spec.location == "Internal"


def _with_name_owners(assessments: list[ScorerAssessment]) -> tuple[ScorerAssessment, ...]:
    """Record for each scorer the older one that owns its score object, Inactive ones included."""
    owners: dict[str, ScorerAssessment] = {}
    return tuple(_with_owner(assessment, owners) for assessment in assessments)


def _with_owner(
    assessment: ScorerAssessment, owners: dict[str, ScorerAssessment]
) -> ScorerAssessment:
    """Record the owner of a score object; the first assessment that resolves to it becomes it."""
    if isinstance(assessment.resolution, InvalidInput):
        return assessment
    name = names.score_object_name(assessment.resolution.summary.score_name)
    owner = owners.setdefault(name, assessment)
    if owner is assessment or isinstance(owner.resolution, InvalidInput):
        return assessment
    return replace(
        assessment, name_owner=owner.scorer.name, owner_direction=owner.resolution.meaning.direction
    )


MAKE_REACHABLE = (
    "expose it at an address that the hub and all managed clusters reach, or run one on each"
    " managed cluster with configSyncMode None and location Internal"
)
_CHECK = (
    "check spec.configURL and that the hub can reach it; if only managed clusters can, set"
    " location Internal and configSyncMode None"
)
_SERVICE_NAMES = (".svc", ".svc.cluster.local")


def advice_for_unanswered(config_url: str, reason: str) -> str:
    """Return what to do about an API from which the hub got no answer; `reason` is the probe's.

    The usual cause of `Unreachable` is the name of a Service: only the Service's cluster knows it.
    """
    host = urlsplit(config_url).hostname or ""
    if reason == "Unreachable" and host.endswith(_SERVICE_NAMES):
        return f"{host} is a Service, which only its own cluster reaches: {MAKE_REACHABLE}"
    return _CHECK
