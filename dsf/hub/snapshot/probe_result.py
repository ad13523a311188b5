"""What a scoring API answered to a probe."""

from dataclasses import dataclass

from dsf.api.scoring.scoring_api import ScorerConfig


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """What is probed for a scorer: its `configURL`, and whether its config is fetched too."""

    config_url: str
    full: bool


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """Why an endpoint gave no usable answer: a CamelCase reason and a message for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a scoring API answered: `health` is None if it is healthy.

    `config` is None if it was not asked for. `unknown` names the fields of its config document that
    the contract does not know.
    """

    health: ProbeFailure | None = None
    config: ScorerConfig | ProbeFailure | None = None
    unknown: tuple[str, ...] = ()
