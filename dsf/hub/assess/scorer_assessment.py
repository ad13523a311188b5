"""How each registered scorer stands: its summary or what is wrong with it, and its health."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dsf.api import names
from dsf.api.conditions import Condition, find
from dsf.api.invalid import Invalid
from dsf.api.scorer import DynamicScorerSpec
from dsf.api.scoring_api import ScorerConfig
from dsf.api.summary import ScorerSummary
from dsf.hub.assess.config_resolution import Resolved, resolve
from dsf.hub.snapshot.managed_cluster import is_leaving
from dsf.hub.snapshot.probe_result import ProbeFailure, ProbeResult, ProbeTarget
from dsf.hub.snapshot.registered_scorer import HealthStatus, RegisteredScorer, is_full

UNANSWERED = frozenset({"Unreachable", "TimedOut"})
"""Reasons of probe failures that may only mean that the hub can't reach the API."""

AGENTS_FAIL = "AgentsFail"
_ADVICE = (
    "check spec.configURL and that the hub may reach it; where only managed clusters can, set"
    " location Internal and configSyncMode None"
)


@dataclass(frozen=True, slots=True)
class ScorerHealth:
    """The health of a scoring API; `usable` tells whether agents should call it.

    `theirs` tells that the hub can't judge it, so that the agents' answers do.
    """

    status: HealthStatus
    usable: bool
    condition: Condition
    judged_by_agents: bool = False


@dataclass(frozen=True, slots=True)
class ScorerAssessment:
    """What the controller concludes about one scorer.

    `config` is the API's config in use, `probed` whether the API was asked since the controller
    started, `rival` the older scorer that holds the same score name.
    """

    scorer: RegisteredScorer
    resolution: Resolved | Invalid
    health: ScorerHealth
    synced: Condition
    config: ScorerConfig | None
    probed: bool
    rival: str = ""

    @property
    def summary(self) -> ScorerSummary | None:
        """What is distributed; None where nothing is."""
        if isinstance(self.resolution, Invalid) or not self.health.usable or self.rival:
            return None
        return self.resolution.summary

    @property
    def score_names(self) -> frozenset[str]:
        """The score names by which a mask may mean this scorer."""
        spec = self.scorer.spec
        said = None if isinstance(spec, Invalid) or spec.scoring is None else spec.scoring.params
        return frozenset(
            name
            for name in (
                None
                if isinstance(self.resolution, Invalid)
                else self.resolution.summary.score_name,
                said.name if said else None,
            )
            if name
        )


def assess(
    scorers: Iterable[RegisteredScorer], probes: Mapping[ProbeTarget, ProbeResult]
) -> tuple[ScorerAssessment, ...]:
    """Return the standings of all scorers that are not being deleted, ordered by age."""
    staying = [scorer for scorer in scorers if not is_leaving(scorer.obj)]
    staying.sort(key=lambda scorer: (scorer.created, scorer.name))
    return _with_rivals([_stand(scorer, _probe_of(scorer, probes)) for scorer in staying])


def reported_health(scorer: RegisteredScorer, answer: ProbeResult) -> HealthStatus | None:
    """Return the health that an earlier controller reported and that an answer has to overturn.

    None where the status speaks of another spec, or of what the agents said.
    """
    theirs = answer.health is not None and _is_theirs(scorer, answer.health)
    return scorer.reported_health if scorer.current and not theirs else None


def _probe_of(
    scorer: RegisteredScorer, probes: Mapping[ProbeTarget, ProbeResult]
) -> ProbeResult | None:
    return probes.get(scorer.target) if scorer.target else None


def _stand(scorer: RegisteredScorer, probe: ProbeResult | None) -> ScorerAssessment:
    config = _config_in_use(scorer, probe)
    spec = scorer.spec if probe else _before_the_first_answer(scorer)
    outcome = spec if isinstance(spec, Invalid) else resolve(scorer.name, spec, config)
    failure = _fetch_failure(scorer, probe)
    if isinstance(outcome, Invalid) and failure:
        outcome = Invalid(failure.reason, failure.message)
    return ScorerAssessment(
        scorer=scorer,
        resolution=outcome,
        health=_health(scorer, probe),
        synced=_synced(scorer, probe, outcome),
        config=config,
        probed=probe is not None or isinstance(scorer.spec, Invalid),
    )


def _config_in_use(scorer: RegisteredScorer, probe: ProbeResult | None) -> ScorerConfig | None:
    """Return the config fetched, else the one accepted last where it is of this very spec.

    Before the first answer the one accepted last counts in any case: a restart changes nothing.
    """
    if isinstance(scorer.spec, Invalid) or not is_full(scorer.spec):
        return None
    if probe and isinstance(probe.config, ScorerConfig):
        return probe.config
    return scorer.last_synced_config if probe is None or scorer.current else None


def _before_the_first_answer(scorer: RegisteredScorer) -> DynamicScorerSpec | Invalid:
    """Return the spec to go on with: a config goes with the host that served it, not a new one."""
    spec, url = scorer.spec, scorer.last_synced_config_url
    if isinstance(spec, Invalid) or not (url and is_full(spec)):
        return spec
    return spec.model_copy(update={"config_url": url})


def _fetch_failure(scorer: RegisteredScorer, probe: ProbeResult | None) -> ProbeFailure | None:
    wanted = scorer.target is not None and scorer.target.full
    return probe.config if wanted and probe and isinstance(probe.config, ProbeFailure) else None


def _synced(
    scorer: RegisteredScorer, probe: ProbeResult | None, outcome: Resolved | Invalid
) -> Condition:
    failure = _fetch_failure(scorer, probe)
    if failure:
        kept = "" if isinstance(outcome, Invalid) else "; the config accepted last stays in use"
        return Condition("ConfigSynced", "False", failure.reason, failure.message + kept)
    if isinstance(outcome, Invalid):
        return Condition("ConfigSynced", "False", outcome.reason, outcome.message)
    if scorer.target and not scorer.target.full:
        message = "configSyncMode is None: source and scoring of this object are used as they are"
        return Condition("ConfigSynced", "True", "SyncDisabled", message)
    message = "what the API's config says is in use"
    if probe and probe.unknown:
        message += f"; fields that nobody knows are ignored: {', '.join(probe.unknown)}"
    return Condition("ConfigSynced", "True", "Synced", message)


def _health(scorer: RegisteredScorer, probe: ProbeResult | None) -> ScorerHealth:
    if probe is None:
        return _health_said(scorer)
    if probe.health is None:
        return ScorerHealth(
            "Active", True, Condition("Healthy", "True", "Healthy", "/healthz answers")
        )
    reason, message = probe.health.reason, probe.health.message
    if _is_theirs(scorer, probe.health):
        message += "; an Internal scorer may be reachable from managed clusters only: distributed"
        told = Condition("Healthy", "Unknown", reason, message)
        return ScorerHealth("Unknown", True, told, judged_by_agents=True)
    if reason in UNANSWERED:
        message += f"; {_ADVICE}"
    message += "; not distributed until it answers"
    return ScorerHealth("Inactive", False, Condition("Healthy", "False", reason, message))


def _health_said(scorer: RegisteredScorer) -> ScorerHealth:
    status = scorer.reported_health or "Unknown"
    told = find((scorer.obj.get("status") or {}).get("conditions") or [], "Healthy") or {}
    usable = scorer.reported_health in {"Active", "Unknown"} or told.get("reason") == AGENTS_FAIL
    return ScorerHealth(
        status, usable, Condition("Healthy", "Unknown", "NotProbed", "not probed yet")
    )


def _is_theirs(scorer: RegisteredScorer, failure: ProbeFailure) -> bool:
    return failure.reason in UNANSWERED and _only_clusters_may_reach(scorer)


def _only_clusters_may_reach(scorer: RegisteredScorer) -> bool:
    spec = scorer.spec
    return not isinstance(spec, Invalid) and not is_full(spec) and spec.location == "Internal"


def _with_rivals(standings: list[ScorerAssessment]) -> tuple[ScorerAssessment, ...]:
    """Mark each scorer whose score object an older one writes, even while that one is inactive."""
    holders: dict[str, str] = {}
    result = []
    for standing in standings:
        rival = ""
        if isinstance(standing.resolution, Resolved):
            name = names.score_object_name(standing.resolution.summary.score_name)
            holder = holders.setdefault(name, standing.scorer.name)
            rival = "" if holder == standing.scorer.name else holder
        result.append(replace(standing, rival=rival))
    return tuple(result)
