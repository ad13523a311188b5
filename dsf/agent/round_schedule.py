"""When the rounds of scorers start: a pure state machine over the scorers of one cluster.

A round reads the source of a scorer, calls its scoring API and publishes the scores. Rounds of one
scorer never overlap. The first starts within `SPREAD_SECONDS`. Later ones start on a grid of one
interval; its phase depends on the cluster and the scorer, so that a fleet does not call a central
API in the same second. After failures the pause doubles, up to `CEILING_SECONDS` or the interval,
whichever is longer. If a server asks for a longer pause, it gets it, up to `RETRY_AFTER_SECONDS`.

During a pause after an outage of the scoring API, its health endpoint is probed at the points of
the grid that the pause skips, but never while the pause is one that a server asked for. The first
healthy answer ends the pause. If the next round fails nevertheless, health says nothing about
scoring: rounds then take the place of probes, one for each interval, until one succeeds.

A scorer may push: its next round is then due at once, without a phase. A push during a round makes
one more round after it. During a pause, or before the end of a pause that a server asked for, a
push changes nothing.

After a failed round the last good scores expire at a time of their own, before or after the next
round. `scoring.onFailure` is then applied to them. That counts as running: it overlaps no round.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256

from dsf.agent.round_events import (
    ApplyOnFailure,
    Command,
    ConfigChanged,
    Event,
    OnFailureApplied,
    ProbeFinished,
    ProbeHealth,
    Pushed,
    RoundFinished,
    StartRound,
    StopScorer,
    Tick,
    WakeAt,
)
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.times import rfc3339

SPREAD_SECONDS = 2.0
"""First rounds are spread over this time, so that a restart does not call everything at once."""

CEILING_SECONDS = 60.0
"""The longest pause after failures, unless the interval is longer.

Scores return within it even if no probe can notice the recovery, for example that of a source.
"""

PROBE_SECONDS = 5.0
"""The shortest time between two probes of one API: shorter intervals would burden a sick one."""

RETRY_AFTER_SECONDS = 3600.0
"""The longest pause that a server may ask for: a mistaken header must not stop a scorer."""


@dataclass(frozen=True, slots=True)
class ScheduledScorer:
    """When one scorer runs next; times are seconds of a monotonic clock.

    `summary` is the current one, None if the scorer was removed while a round of it runs.
    `running` is the summary of the round, or of the application of `onFailure`, that runs now.
    `paused` tells whether `due` is later than without failures. `health_counts` tells whether the
    API's health has not been wrong about scoring since the last good round. `not_before` is the end
    of the pause that a server asked for. `pushed` tells whether one more round is due as soon as
    what is running has ended.
    """

    summary: ScorerSummary | None
    due: float
    on_failure_due: float = math.inf
    running: ScorerSummary | None = None
    started: float = -math.inf
    failures: int = 0
    paused: bool = False
    probe_due: float = math.inf
    probing: bool = False
    health_counts: bool = True
    not_before: float = -math.inf
    pushed: bool = False


@dataclass(frozen=True, slots=True)
class RoundSchedule:
    """The state: the scorers of a managed cluster by name."""

    cluster: str
    scorers: Mapping[str, ScheduledScorer] = field(default_factory=dict)


def step(
    state: RoundSchedule, event: Event, now: float
) -> tuple[RoundSchedule, tuple[Command, ...]]:
    """Return the next state and the commands to obey, stops first; `now` must not decrease."""
    match event:
        case ConfigChanged(summaries):
            scorers, stops = _configured(state, summaries, now)
        case RoundFinished() | OnFailureApplied():
            scorers, stops = _ended(state, event, now)
        case ProbeFinished():
            scorers, stops = _probed(state, event, now), ()
        case Pushed():
            scorers, stops = _pushed(state, event, now), ()
        case Tick():
            scorers, stops = dict(state.scorers), ()
    scorers, starts = _started(scorers, now)
    return RoundSchedule(state.cluster, scorers), (*stops, *starts, *_wake(scorers))


def scores(state: RoundSchedule) -> frozenset[str]:
    """Return the names of the scores that are published as AddOnPlacementScores."""
    summaries = [one for s in state.scorers.values() for one in (s.summary, s.running) if one]
    return frozenset(one.score_name for one in summaries if one.score_destination != "None")


def paused_until(state: RoundSchedule) -> Mapping[str, float]:
    """Return when each pause after failures ends, by score name."""
    return {
        scorer.summary.score_name: scorer.due
        for scorer in state.scorers.values()
        if scorer.summary and scorer.paused
    }


def pause_left(state: RoundSchedule, scorer: str, now: float) -> float:
    """Return the seconds for which pushes of a scorer are refused; 0 if it is not paused."""
    found = state.scorers.get(scorer)
    if found is None:
        return 0.0
    return max(0.0, found.not_before - now, found.due - now if found.paused else 0.0)


def longest_pause(summary: ScorerSummary) -> float:
    """Return the longest pause in seconds after failures, unless a server asks for a longer one."""
    return max(_interval(summary), CEILING_SECONDS)


def pause_remark(summary: ScorerSummary, retry_after: float | None, now: datetime) -> str:
    """Return when the next round starts after a failed one, for people.

    Names the end only of a pause that a server asked for. The end of the agent's own pauses differs
    from round to round, and each new message costs a write: the remark has their longest.
    """
    asked, longest = _asked(retry_after), longest_pause(summary)
    if asked <= longest:
        return f"the agent tries again within {longest:g} s"
    return f"the server asked for a pause until {rfc3339(now + timedelta(seconds=asked))}"


_Transition = tuple[dict[str, ScheduledScorer], tuple[Command, ...]]


def _configured(
    state: RoundSchedule, summaries: tuple[ScorerSummary, ...], now: float
) -> _Transition:
    scorers, stops = dict[str, ScheduledScorer](), list[Command]()
    for summary in summaries:
        before = state.scorers.get(summary.name)
        scorers[summary.name] = _rescheduled(state.cluster, before, summary, now)
        if before and not before.running and before.summary:
            stops += _left_behind(before.summary, summary)
    for name, before in state.scorers.items():
        if name in scorers:
            continue
        if before.running:
            scorers[name] = replace(before, summary=None)
        elif before.summary:
            stops.append(StopScorer(before.summary))
    return scorers, tuple(stops)


def _rescheduled(
    cluster: str, before: ScheduledScorer | None, summary: ScorerSummary, now: float
) -> ScheduledScorer:
    if before is None:
        spread = min(SPREAD_SECONDS, _interval(summary) / 10)
        return ScheduledScorer(summary, due=now + _fraction(cluster, summary.name) * spread)
    if before.summary == summary:
        return before
    due = min(before.due, _slot(cluster, summary, now))
    return ScheduledScorer(
        summary,
        due,
        before.on_failure_due,
        before.running,
        started=before.started,
        pushed=before.pushed,
    )


def _ended(
    state: RoundSchedule, event: RoundFinished | OnFailureApplied, now: float
) -> _Transition:
    scorers = dict(state.scorers)
    before = scorers.get(event.scorer)
    if before is None or before.running is None:
        return scorers, ()
    if before.summary is None:
        del scorers[event.scorer]
        return scorers, (StopScorer(before.running),)
    after = replace(
        before,
        running=None,
        on_failure_due=math.inf if event.on_failure_in is None else now + event.on_failure_in,
    )
    if isinstance(event, RoundFinished):
        after = _paused(state.cluster, before.summary, after, event, now, before.running)
    scorers[event.scorer] = after
    return scorers, tuple(_left_behind(before.running, before.summary))


def _paused(
    cluster: str,
    summary: ScorerSummary,
    scorer: ScheduledScorer,
    event: RoundFinished,
    now: float,
    ran: ScorerSummary,
) -> ScheduledScorer:
    """Return the scorer with the time of its next round; a changed one has no failures yet."""
    failed = event.failed and ran == summary
    outage = failed and event.outage
    failures = scorer.failures + 1 if failed else 0
    interval = _interval(summary)
    usual = max(now, scorer.started + interval / 2)
    probed = not outage or scorer.health_counts
    pause = _pause(summary, failures) if probed else max(interval, PROBE_SECONDS)
    after = max(now, scorer.started + pause - interval / 2)
    asked = now + _asked(event.retry_after) if failed else now
    due = _slot(cluster, summary, max(after, asked))
    paused = replace(
        scorer,
        failures=failures,
        due=due,
        paused=due > _slot(cluster, summary, usual),
        probe_due=math.inf,
        health_counts=scorer.health_counts or not failed,
        not_before=asked,
    )
    if scorer.pushed and not paused.paused and asked <= now:
        return replace(paused, due=now)
    if outage and probed:
        return _probe_next(cluster, summary, paused, scorer.started, asked)
    return paused


def _probe_next(
    cluster: str, summary: ScorerSummary, scorer: ScheduledScorer, last: float, earliest: float
) -> ScheduledScorer:
    """Return the scorer with its next probe, `last` being the last call of its API."""
    interval = _interval(summary)
    after = max(earliest, last + max(interval, PROBE_SECONDS) - interval / 2)
    probe_due = _slot(cluster, summary, after)
    return replace(scorer, probe_due=probe_due if probe_due < scorer.due else math.inf)


def _probed(state: RoundSchedule, event: ProbeFinished, now: float) -> dict[str, ScheduledScorer]:
    scorers = dict(state.scorers)
    before = scorers.get(event.scorer)
    if before is None or before.summary is None or not before.probing:
        return scorers
    if event.healthy:
        scorers[event.scorer] = replace(
            before, due=now, failures=0, paused=False, probing=False, health_counts=False
        )
        return scorers
    asked = now + _asked(event.retry_after)
    after = replace(
        before,
        due=before.due if asked <= before.due else _slot(state.cluster, before.summary, asked),
        probing=False,
    )
    scorers[event.scorer] = _probe_next(state.cluster, before.summary, after, now, asked)
    return scorers


def _pushed(state: RoundSchedule, event: Pushed, now: float) -> dict[str, ScheduledScorer]:
    scorers = dict(state.scorers)
    before = scorers.get(event.scorer)
    if before and before.summary and not pause_left(state, event.scorer, now):
        scorers[event.scorer] = replace(before, due=now, pushed=True)
    return scorers


def _started(scorers: Mapping[str, ScheduledScorer], now: float) -> _Transition:
    result, starts = dict(scorers), list[Command]()
    for name, scorer in scorers.items():
        if scorer.summary is None or scorer.running:
            continue
        if scorer.due <= now:
            result[name] = replace(
                scorer,
                running=scorer.summary,
                started=now,
                paused=False,
                probe_due=math.inf,
                probing=False,
                pushed=False,
            )
            starts.append(StartRound(scorer.summary))
        elif scorer.on_failure_due <= now:
            result[name] = replace(scorer, running=scorer.summary)
            starts.append(ApplyOnFailure(scorer.summary))
        elif scorer.probe_due <= now:
            result[name] = replace(scorer, probe_due=math.inf, probing=True)
            starts.append(ProbeHealth(scorer.summary))
    return result, tuple(starts)


def _wake(scorers: Mapping[str, ScheduledScorer]) -> tuple[Command, ...]:
    idle = [
        min(scorer.due, scorer.on_failure_due, scorer.probe_due)
        for scorer in scorers.values()
        if not scorer.running
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


def _pause(summary: ScorerSummary, failures: int) -> float:
    doubled = _interval(summary) * 2.0 ** min(max(failures - 1, 0), 32)
    return min(doubled, longest_pause(summary))


def _asked(retry_after: float | None) -> float:
    return min(retry_after or 0.0, RETRY_AFTER_SECONDS)


def _slot(cluster: str, summary: ScorerSummary, after: float) -> float:
    """Return the first point at or after `after` on the scorer's grid of one interval."""
    interval = _interval(summary)
    phase = _fraction(cluster, summary.name) * interval
    return max(after, phase + math.ceil((after - phase) / interval) * interval)


def _fraction(cluster: str, scorer: str) -> float:
    """Return a number in [0, 1), always the same for the same names."""
    digest = sha256(f"{cluster}\0{scorer}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
