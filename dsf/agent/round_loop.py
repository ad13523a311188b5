"""The event loop around `round_schedule.step`: one event at a time, one task for each round."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from dsf.agent import round_schedule
from dsf.agent.failure import Failure, agent_bug
from dsf.agent.fetch.http_exchange import CallLimits
from dsf.agent.forecast_verification import ForecastVerification
from dsf.agent.metrics import SUCCESS, AgentMetrics
from dsf.agent.publish.placement_score import RoundReport
from dsf.agent.publish.publisher import Publisher, PublishResult
from dsf.agent.round import Round, RoundRunner
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
from dsf.agent.score.expiry import DEFAULT, EXPIRE, PUBLISHED, validity
from dsf.agent.scorer_selection import read_scorers
from dsf.api.conditions import conditions_of, find
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.errors import KubeError

log = logging.getLogger(__name__)

SWEEP_RETRY_SECONDS = 30.0
"""Seconds until old scores are deleted again after the hub failed."""


class Agent:
    """Runs and publishes the rounds of all scorers of one managed cluster."""

    def __init__(
        self,
        performer: RoundRunner,
        publisher: Publisher,
        metrics: AgentMetrics,
        limits: CallLimits,
    ) -> None:
        self._performer = performer
        self._publisher = publisher
        self._metrics = metrics
        self._limits = limits
        self._forecasts = ForecastVerification(performer, metrics)
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._state = round_schedule.RoundSchedule(performer.cluster)
        self._missing: str | None = "no scorer summaries have been read yet"
        self._sweep = asyncio.Event()
        self._pending: dict[str, tuple[RoundReport, datetime]] = {}
        self._pushed: dict[str, float] = {}

    async def unready_reason(self) -> str | None:
        """Return why the agent is not ready; None if it is."""
        return self._missing or self._publisher.unready_reason()

    def configured(self) -> bool:
        """Tell whether valid summaries have been read."""
        return self._missing is None

    def configure(self, text: str) -> None:
        """Run the scorers in the text of `data.summaries` from now on; ignore invalid text."""
        read = read_scorers(text)
        if isinstance(read, InvalidInput):
            self._metrics.refused.inc()
            self._missing = self._missing and read.message
            log.error("summaries invalid: kept the previous ones", extra=_why(read))
            return
        for problem in read.problems:
            log.error("scorer left out", extra=_why(problem))
        log.info("summaries read", extra={"scorers": len(read.summaries)})
        self._missing = None
        self._metrics.configured(len(read.summaries))
        self._events.put_nowait(ConfigChanged(read.summaries))

    def summary(self, scorer: str) -> ScorerSummary | None:
        """Return the summary of a scorer; None if it does not run here."""
        found = self._state.scorers.get(scorer)
        return found.summary if found else None

    def push(self, scorer: str) -> float:
        """Make the next round of a scorer that runs here due now, unless it is paused.

        Returns the seconds of the pause that is left; 0 if the round is due.
        """
        now = asyncio.get_running_loop().time()
        left = round_schedule.pause_left(self._state, scorer, now)
        if not left:
            self._pushed.setdefault(scorer, now)
            self._events.put_nowait(Pushed(scorer))
        return left

    async def run(self) -> None:
        """Run rounds until cancelled."""
        clock = asyncio.get_running_loop().time
        wake: float | None = None
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sweeping())
            while True:
                event = await self._next(wake)
                self._state, commands = round_schedule.step(self._state, event, clock())
                if isinstance(event, ConfigChanged):
                    self._sweep.set()
                for command in commands:
                    self._obey(command, tasks)
                self._show_pauses(clock())
                wake = next((c.time for c in commands if isinstance(c, WakeAt)), None)

    def _obey(self, command: Command, tasks: asyncio.TaskGroup) -> None:
        match command:
            case StartRound(summary):
                tasks.create_task(self._round(summary))
            case ApplyOnFailure(summary):
                tasks.create_task(self._publish_again(summary))
            case ProbeHealth(summary):
                tasks.create_task(self._probe(summary))
            case StopScorer(summary):
                self._stop(summary)

    def _show_pauses(self, clock: float) -> None:
        """Convert the times of the schedule's clock to the time of day."""
        now = self._performer.now().timestamp()
        pauses = round_schedule.paused_until(self._state)
        self._metrics.paused({score: now + until - clock for score, until in pauses.items()})

    async def _next(self, wake: float | None) -> Event:
        try:
            async with asyncio.timeout_at(wake):
                return await self._events.get()
        except TimeoutError:
            return Tick()

    def _stop(self, summary: ScorerSummary) -> None:
        self._pending.pop(summary.name, None)
        self._pushed.pop(summary.name, None)
        self._publisher.forget(summary.score_name)
        current = (one.summary for one in self._state.scorers.values())
        if not any(one and one.score_name == summary.score_name for one in current):
            self._metrics.remove(summary.score_name)
            self._forecasts.forget(summary)
        self._sweep.set()

    async def _round(self, summary: ScorerSummary) -> None:
        ended = RoundFinished(summary.name, failed=True)
        pushed = self._pushed.pop(summary.name, None)
        with self._counting_bugs(summary, "round broke"):
            done = await self._performed(summary)
            published = await self._published(done)
            self._note(done, published.failure)
            if pushed is not None and not (done.failure or published.failure):
                took = asyncio.get_running_loop().time() - pushed
                self._metrics.push_seconds.labels(summary.score_name).observe(took)
            ended = RoundFinished(
                summary.name,
                failed=done.failure is not None,
                retry_after=done.failure.retry_after if done.failure else None,
                on_failure_in=published.again,
                outage=done.failure is not None and done.failure.outage,
            )
            await self._forecasts.verify(done, self._publisher.observed(summary.score_name))
        self._events.put_nowait(ended)

    async def _probe(self, summary: ScorerSummary) -> None:
        ended = ProbeFinished(summary.name, healthy=False)
        with self._counting_bugs(summary, "probe broke"):
            failure = await self._performer.probe(summary)
            healthy = failure is None
            ended = ProbeFinished(summary.name, healthy, failure.retry_after if failure else None)
            outcome = "healthy" if healthy else "unhealthy"
            self._metrics.probes.labels(summary.score_name, outcome).inc()
            why = _why(failure) if failure else {}
            log.info("health probed", extra={"scorer": summary.name, "healthy": healthy, **why})
        self._events.put_nowait(ended)

    @contextmanager
    def _counting_bugs(self, summary: ScorerSummary, message: str) -> Iterator[None]:
        """Log and count an unexpected exception, so that it stops no other scorer."""
        try:
            yield
        except Exception:
            log.exception(message, extra={"scorer": summary.name})
            self._metrics.broken.labels(summary.score_name).inc()

    async def _performed(self, summary: ScorerSummary) -> Round:
        """Run a round; an unexpected exception is logged and becomes a failed round."""
        try:
            return await self._performer.perform(summary)
        except Exception as error:
            log.exception("round broke", extra={"scorer": summary.name})
            self._metrics.broken.labels(summary.score_name).inc()
            failure = agent_bug(error)
            return Round(summary, RoundReport.failed(failure), failure, {})

    async def _published(self, done: Round) -> PublishResult:
        summary, report = done.summary, done.report
        rule = summary.scoring_on_failure or EXPIRE
        ended = self._performer.now()
        if done.failure is not None:
            remark = round_schedule.pause_remark(summary, done.failure.retry_after, ended)
            report = report.with_remark(remark)
        if report.scores is None:
            self._metrics.scores.set_rule(summary.score_name, rule)
        else:
            self._metrics.adjusted(summary.score_name, report.scores.adjusted)
            valid_until = ended + validity(summary.scoring_interval)
            self._metrics.scores.replace(
                summary.score_name, report.scores.samples, valid_until.timestamp(), rule
            )
            trusted = self._forecasts.conditions(summary)
            report = replace(report, conditions=(*report.conditions, *trusted))
        if summary.score_destination == "None":
            self._show_default(summary, shown=report.has_default_score)
            return PublishResult()
        self._pending[summary.name] = report, ended
        clock = asyncio.get_running_loop().time
        began = clock()
        published = await self._publish(summary, report, ended)
        done.seconds["send"] = clock() - began
        return published

    async def _publish_again(self, summary: ScorerSummary) -> None:
        """Publish the last report again: its scores expired, or the hub had not accepted it."""
        again: float | None = None
        with self._counting_bugs(summary, "publishing broke"):
            if report := self._pending.get(summary.name):
                published = await self._publish(summary, *report)
                again = published.again
                if published.failure:
                    log.warning(
                        "scores not published yet",
                        extra={"scorer": summary.name, **_why(published.failure)},
                    )
        self._events.put_nowait(OnFailureApplied(summary.name, again))

    async def _publish(
        self, summary: ScorerSummary, report: RoundReport, ended: datetime
    ) -> PublishResult:
        """Publish a report, and keep it only while it may have to be published again."""
        seconds = self._limits.deadline(summary.scoring_interval)
        published = await self._publisher.publish(summary, report, seconds=seconds, ended=ended)
        if published.again is None:
            self._pending.pop(summary.name, None)
        saved = not published.writes and published.failure is None
        self._metrics.published(summary.score_name, published.writes, saved=saved)
        now_there = conditions_of(self._publisher.observed(summary.score_name) or {})
        reason = (find(now_there, PUBLISHED) or {}).get("reason")
        self._show_default(summary, shown=reason == DEFAULT)
        return published

    def _show_default(self, summary: ScorerSummary, *, shown: bool) -> None:
        declared = summary.scoring_default_score
        value = declared.value if declared and shown else None
        self._metrics.default_score(summary.score_name, value)

    def _note(self, done: Round, unpublished: Failure | None) -> None:
        failures = [failure for failure in (done.failure, unpublished) if failure]
        for failure in failures:
            log.warning("round failed", extra={"scorer": done.summary.name, **_why(failure)})
            if failure.source:
                failed = self._metrics.source_failures
                failed.labels(done.summary.score_name, failure.source).inc()
        status = f"{failures[0].stage}_failed" if failures else SUCCESS
        self._metrics.round_finished(done.summary.score_name, status, done.seconds)

    async def _sweeping(self) -> None:
        """Delete scores that no scorer publishes any more, at the start and after each removal."""
        while True:
            await self._sweep.wait()
            self._sweep.clear()
            try:
                if await self._publisher.sweep(lambda: round_schedule.scores(self._state)):
                    continue
            except KubeError as error:
                log.warning("old scores not deleted yet", extra={"error": str(error)})
            except Exception:
                log.exception("deleting old scores broke")
            await asyncio.sleep(SWEEP_RETRY_SECONDS)
            self._sweep.set()


def _why(problem: InvalidInput | Failure) -> dict[str, str]:
    return {"reason": problem.reason, "error": problem.message}
