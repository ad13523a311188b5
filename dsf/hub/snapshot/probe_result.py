"""What a scoring API answered to a probe."""

from dataclasses import dataclass

from dsf.api.scoring.scoring_api import ScorerConfig


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """What is probed for a scorer: its `configURL`, and whether its config is fetched as well."""

    config_url: str
    full: bool


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """An endpoint that gave no usable answer: a CamelCase reason and a message for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a scoring API answered: `health` is None where it is well.

    `config` is None where it was not asked for. `unknown` names the fields of its document that
    nobody reads.
    """

    health: ProbeFailure | None = None
    config: ScorerConfig | ProbeFailure | None = None
    unknown: tuple[str, ...] = ()
