"""What happens to the rounds of a managed cluster, and the commands that follow from it."""

from dataclasses import dataclass

from dsf.api.scoring.scorer_summary import ScorerSummary


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """The scorers of the cluster are now these, with distinct names."""

    summaries: tuple[ScorerSummary, ...]


@dataclass(frozen=True, slots=True)
class RoundFinished:
    """A started round has ended; after `failed` ones the pause grows.

    `retry_after` is the pause in seconds that a server asked for. `on_failure_in` is the number of
    seconds until `onFailure` has to be applied to the last good scores. After an `outage` of the
    scoring API, its health is probed during the pause.
    """

    scorer: str
    failed: bool = False
    retry_after: float | None = None
    on_failure_in: float | None = None
    outage: bool = False


@dataclass(frozen=True, slots=True)
class OnFailureApplied:
    """`onFailure` was applied; `on_failure_in` is the number of seconds until the next time."""

    scorer: str
    on_failure_in: float | None = None


@dataclass(frozen=True, slots=True)
class ProbeFinished:
    """A probe has ended; `retry_after` is the pause in seconds that an unhealthy API asked for."""

    scorer: str
    healthy: bool
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Pushed:
    """A scorer asks for its next round now."""

    scorer: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = ConfigChanged | RoundFinished | OnFailureApplied | ProbeFinished | Pushed | Tick


@dataclass(frozen=True, slots=True)
class StartRound:
    """Run one round, then send RoundFinished."""

    summary: ScorerSummary


@dataclass(frozen=True, slots=True)
class ApplyOnFailure:
    """Apply the summary's `onFailure` to the last good scores, then send OnFailureApplied."""

    summary: ScorerSummary


@dataclass(frozen=True, slots=True)
class ProbeHealth:
    """Ask the health endpoint of the summary's scoring API, then send ProbeFinished."""

    summary: ScorerSummary


@dataclass(frozen=True, slots=True)
class StopScorer:
    """Remove what this summary published; no round of it is running."""

    summary: ScorerSummary


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Nothing has to be done before this time."""

    time: float


Command = StartRound | ApplyOnFailure | ProbeHealth | StopScorer | WakeAt
