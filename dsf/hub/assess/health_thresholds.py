"""When a scoring API's answers are believed: one lost probe is no news, several in a row are.

A state machine without clock or I/O: `step` takes one answer at a time.
"""

from dataclasses import dataclass, replace

from dsf.api.scoring.scoring_api import ScorerConfig
from dsf.hub.snapshot.probe_result import ProbeFailure, ProbeResult
from dsf.hub.snapshot.registered_scorer import HealthStatus


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Answers in a row that turn an API: `failures` to Inactive, `successes` back to Active."""

    failures: int = 3
    successes: int = 2


@dataclass(frozen=True, slots=True)
class ProbeHistory:
    """What is believed of one scoring API, and how many answers in a row speak against it."""

    believed: ProbeResult
    health_against: int = 0
    config_against: int = 0

    @property
    def doubtful(self) -> bool:
        """Whether another answer is wanted soon."""
        return bool(self.health_against or self.config_against)


def step(
    track: ProbeHistory | None,
    answer: ProbeResult,
    said: HealthStatus | None,
    thresholds: Thresholds,
    *,
    has_config: bool = True,
) -> ProbeHistory:
    """Return what is believed after an answer.

    The first answer of an API is believed, unless the status said otherwise before the controller
    started (`said`, and `has_config` for a config that it holds): then it counts as one against
    that.
    """
    before = track or _recalled(answer, said, has_config=has_config)
    health, health_against = _health(before, answer, thresholds)
    config, config_against = _config(before, answer, thresholds)
    unknown = answer.unknown if config is answer.config else before.believed.unknown
    return ProbeHistory(ProbeResult(health, config, unknown), health_against, config_against)


def _recalled(answer: ProbeResult, said: HealthStatus | None, *, has_config: bool) -> ProbeHistory:
    """Return what a status that an earlier controller wrote lets us believe."""
    if said == "Active":
        waiting = has_config and isinstance(answer.config, ProbeFailure)
        return ProbeHistory(replace(answer, health=None, config=None if waiting else answer.config))
    if said == "Inactive" and answer.health is None:
        recovering = ProbeFailure("Recovering", "/healthz answers again, but not often enough yet")
        return ProbeHistory(replace(answer, health=recovering))
    return ProbeHistory(answer)


def _health(
    track: ProbeHistory, answer: ProbeResult, thresholds: Thresholds
) -> tuple[ProbeFailure | None, int]:
    believed = track.believed.health
    if (answer.health is None) == (believed is None):
        return answer.health, 0
    enough = thresholds.successes if answer.health is None else thresholds.failures
    against = track.health_against + 1
    return (answer.health, 0) if against >= enough else (believed, against)


def _config(
    track: ProbeHistory, answer: ProbeResult, thresholds: Thresholds
) -> tuple[ScorerConfig | ProbeFailure | None, int]:
    """Believe a config at once, and a failure to fetch one only after several in a row."""
    believed = track.believed.config
    if not isinstance(answer.config, ProbeFailure) or isinstance(believed, ProbeFailure):
        return answer.config, 0
    against = track.config_against + 1
    return (answer.config, 0) if against >= thresholds.failures else (believed, against)
