"""When rounds start: a pure state machine over the scorers of one managed cluster.

A round of a scorer is: read its source, call its scoring API, publish. Rounds of one scorer never
overlap. The first starts at once, but for a small spread; later ones start on a time grid of one
interval whose phase hangs on the cluster and the scorer, so that a fleet does not call a central
API in the same second. After failures the pause doubles, up to `CEILING_SECONDS` or the interval,
whichever is longer; a server that asked for a longer one gets it, up to `RETRY_AFTER_SECONDS`.

After a failed round the last good scores have a time of their own: when they expire they are to be
settled, whenever the next round may be. Settling counts as running, so it overlaps no round.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from dsf.api.scoring.scorer_summary import ScorerSummary

SPREAD_SECONDS = 2.0
CEILING_SECONDS = 300.0
RETRY_AFTER_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """These summaries, of distinct names, are all there is from now on."""

    summaries: tuple[ScorerSummary, ...]


@dataclass(frozen=True, slots=True)
class RoundFinished:
    """A started round has ended; `failed` asks for a longer pause.

    `retry_after` are the seconds that a server asked for, `settle_in` those until the last good
    scores are to be settled.
    """

    scorer: str
    failed: bool = False
    retry_after: float | None = None
    on_failure_in: float | None = None


@dataclass(frozen=True, slots=True)
class OnFailureApplied:
    """The last good scores have been settled; `settle_in` are the seconds until the next time."""

    scorer: str
    on_failure_in: float | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = ConfigChanged | RoundFinished | OnFailureApplied | Tick


@dataclass(frozen=True, slots=True)
class StartRound:
    """Run one round; answer with RoundFinished."""

    summary: ScorerSummary


@dataclass(frozen=True, slots=True)
class ApplyOnFailure:
    """Apply the summary's `onFailure` to the last good scores; answer with Settled."""

    summary: ScorerSummary


@dataclass(frozen=True, slots=True)
class StopScorer:
    """What this summary published is to go; no round of it is running."""

    summary: ScorerSummary


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Nothing is to be done before this time."""

    time: float


Command = StartRound | ApplyOnFailure | StopScorer | WakeAt


@dataclass(frozen=True, slots=True)
class ScheduledScorer:
    """One scorer's place in time; times are seconds of any steady clock.

    `wanted` is None once the scorer was removed while its last round runs; `running` is the
    summary of the round, or the settling, that runs now.
    """

    wanted: ScorerSummary | None
    due: float
    on_failure_due: float = math.inf
    running: ScorerSummary | None = None
    started: float = -math.inf
    failures: int = 0


@dataclass(frozen=True, slots=True)
class RoundSchedule:
    """The scorers of a managed cluster by name."""

    cluster: str
    scorers: Mapping[str, ScheduledScorer] = field(default_factory=dict)


def step(
    state: RoundSchedule, event: Event, now: float
) -> tuple[RoundSchedule, tuple[Command, ...]]:
    """Return the next state and what is to be done, stops first; `now` must not go back."""
    match event:
        case ConfigChanged(summaries):
            scorers, stops = _configured(state, summaries, now)
        case RoundFinished() | OnFailureApplied():
            scorers, stops = _ended(state, event, now)
        case Tick():
            scorers, stops = dict(state.scorers), ()
    scorers, starts = _started(scorers, now)
    return RoundSchedule(state.cluster, scorers), (*stops, *starts, *_wake(scorers))


def scores(state: RoundSchedule) -> frozenset[str]:
    """Return the names of the scores that AddOnPlacementScores are published for."""
    summaries = [one for s in state.scorers.values() for one in (s.wanted, s.running) if one]
    return frozenset(one.score_name for one in summaries if one.score_destination != "None")


_Transition = tuple[dict[str, ScheduledScorer], tuple[Command, ...]]


def _configured(
    state: RoundSchedule, summaries: tuple[ScorerSummary, ...], now: float
) -> _Transition:
    scorers, stops = dict[str, ScheduledScorer](), list[Command]()
    for summary in summaries:
        before = state.scorers.get(summary.name)
        scorers[summary.name] = _wanted(state.cluster, before, summary, now)
        if before and not before.running and before.wanted:
            stops += _left_behind(before.wanted, summary)
    for name, before in state.scorers.items():
        if name in scorers:
            continue
        if before.running:
            scorers[name] = replace(before, wanted=None)
        elif before.wanted:
            stops.append(StopScorer(before.wanted))
    return scorers, tuple(stops)


def _wanted(
    cluster: str, before: ScheduledScorer | None, summary: ScorerSummary, now: float
) -> ScheduledScorer:
    if before is None:
        return ScheduledScorer(summary, due=now + _spread(cluster, summary))
    if before.wanted == summary:
        return before
    due = min(before.due, _slot(cluster, summary, now))
    return replace(before, wanted=summary, due=due, failures=0)


def _ended(
    state: RoundSchedule, event: RoundFinished | OnFailureApplied, now: float
) -> _Transition:
    scorers = dict(state.scorers)
    before = scorers.get(event.scorer)
    if before is None or before.running is None:
        return scorers, ()
    if before.wanted is None:
        del scorers[event.scorer]
        return scorers, (StopScorer(before.running),)
    after = replace(
        before,
        running=None,
        on_failure_due=math.inf if event.on_failure_in is None else now + event.on_failure_in,
    )
    if isinstance(event, RoundFinished):
        after = _paused(state.cluster, before.wanted, after, event, now, before.running)
    scorers[event.scorer] = after
    return scorers, tuple(_left_behind(before.running, before.wanted))


def _paused(
    cluster: str,
    wanted: ScorerSummary,
    scorer: ScheduledScorer,
    event: RoundFinished,
    now: float,
    ran: ScorerSummary,
) -> ScheduledScorer:
    """Return the scorer with the time of its next round; a changed one begins without failures."""
    failed = event.failed and ran == wanted
    failures = scorer.failures + 1 if failed else 0
    interval = _interval(wanted)
    after = max(now, scorer.started + _pause(interval, failures) - interval / 2)
    if failed and event.retry_after:
        after = max(after, now + min(event.retry_after, RETRY_AFTER_SECONDS))
    return replace(scorer, failures=failures, due=_slot(cluster, wanted, after))


def _started(scorers: Mapping[str, ScheduledScorer], now: float) -> _Transition:
    result, starts = dict(scorers), list[Command]()
    for name, scorer in scorers.items():
        if scorer.wanted is None or scorer.running:
            continue
        if scorer.due <= now:
            result[name] = replace(scorer, running=scorer.wanted, started=now)
            starts.append(StartRound(scorer.wanted))
        elif scorer.on_failure_due <= now:
            result[name] = replace(scorer, running=scorer.wanted)
            starts.append(ApplyOnFailure(scorer.wanted))
    return result, tuple(starts)


def _wake(scorers: Mapping[str, ScheduledScorer]) -> tuple[Command, ...]:
    idle = [
        min(scorer.due, scorer.on_failure_due) for scorer in scorers.values() if not scorer.running
    ]
    return (WakeAt(min(idle)),) if idle else ()


def _left_behind(before: ScorerSummary, after: ScorerSummary) -> tuple[Command, ...]:
    moved = (before.score_name, before.score_destination) != (
        after.score_name,
        after.score_destination,
    )
    return (StopScorer(before),) if moved else ()


def _interval(summary: ScorerSummary) -> float:
    return max(1.0, float(summary.scoring_interval))


def _pause(interval: float, failures: int) -> float:
    doubled = interval * 2.0 ** min(max(failures - 1, 0), 32)
    return min(doubled, max(interval, CEILING_SECONDS))


def _spread(cluster: str, summary: ScorerSummary) -> float:
    return _fraction(cluster, summary.name) * min(SPREAD_SECONDS, _interval(summary) / 10)


def _slot(cluster: str, summary: ScorerSummary, after: float) -> float:
    """Return the first point of the scorer's grid that is not before `after`."""
    interval = _interval(summary)
    phase = _fraction(cluster, summary.name) * interval
    return max(after, phase + math.ceil((after - phase) / interval) * interval)


def _fraction(cluster: str, scorer: str) -> float:
    """Return a number in [0, 1) that is the same for these names everywhere and always."""
    digest = sha256(f"{cluster}\0{scorer}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
