"""When probes change the health of a scoring API: several in a row, as in Kubernetes' own probes.

A state machine without clock or I/O: `step` takes one probe result at a time.
"""

from dataclasses import dataclass, replace

from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.hub.snapshot.registered_scorer import HealthStatus, ProbeFailure, ProbeResult


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Probes in a row that change an API: `failures` to Inactive, `successes` back to Active."""

    failures: int = 3
    successes: int = 2


@dataclass(frozen=True, slots=True)
class ProbeHistory:
    """What is believed of one scoring API, and how many probes in a row contradicted it."""

    believed: ProbeResult
    health_against: int = 0
    config_against: int = 0

    @property
    def doubtful(self) -> bool:
        """Whether the last probe contradicted what is believed, so the next should be soon."""
        return bool(self.health_against or self.config_against)


def step(
    history: ProbeHistory | None,
    probe: ProbeResult,
    reported: HealthStatus | None,
    thresholds: Thresholds,
    *,
    has_config: bool = True,
) -> ProbeHistory:
    """Return what is believed after a probe.

    The first probe is believed, unless it contradicts what the status recorded before the
    controller started (health `reported`, and a config if `has_config`): then it counts as the
    first contradiction.
    """
    before = history or _recorded(probe, reported, has_config=has_config)
    health, health_against = _health(before, probe, thresholds)
    config, config_against = _config(before, probe, thresholds)
    unknown = probe.unknown if config is probe.config else before.believed.unknown
    return ProbeHistory(ProbeResult(health, config, unknown), health_against, config_against)


def _recorded(
    probe: ProbeResult, reported: HealthStatus | None, *, has_config: bool
) -> ProbeHistory:
    """Return what to believe before the first probe, given what the status recorded."""
    if reported == "Active":
        waiting = has_config and isinstance(probe.config, ProbeFailure)
        return ProbeHistory(replace(probe, health=None, config=None if waiting else probe.config))
    if reported == "Inactive" and probe.health is None:
        recovering = ProbeFailure(
            "Recovering", "/healthz answers again, but not yet often enough in a row"
        )
        return ProbeHistory(replace(probe, health=recovering))
    return ProbeHistory(probe)


def _health(
    history: ProbeHistory, probe: ProbeResult, thresholds: Thresholds
) -> tuple[ProbeFailure | None, int]:
    believed = history.believed.health
    if (probe.health is None) == (believed is None):
        return probe.health, 0
    enough = thresholds.successes if probe.health is None else thresholds.failures
    against = history.health_against + 1
    return (probe.health, 0) if against >= enough else (believed, against)


def _config(
    history: ProbeHistory, probe: ProbeResult, thresholds: Thresholds
) -> tuple[ScorerConfig | ProbeFailure | None, int]:
    """Believe a fetched config at once, and failures to fetch it only after several in a row."""
    believed = history.believed.config
    if not isinstance(probe.config, ProbeFailure) or isinstance(believed, ProbeFailure):
        return probe.config, 0
    against = history.config_against + 1
    return (probe.config, 0) if against >= thresholds.failures else (believed, against)
