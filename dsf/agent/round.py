"""Runs one round: fetch series, call the scoring API, convert the results. Publishes nothing."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from dsf.agent.failure import Failure
from dsf.agent.fetch.answer_budget import AnswerBudget, AnswerReservation
from dsf.agent.fetch.http_exchange import off_loop
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.fetch.sources import Sources
from dsf.agent.publish.placement_score import RoundReport
from dsf.agent.score import result_rules
from dsf.agent.score.explanation import RoundEvidence
from dsf.agent.score.forecasts import (
    Instant,
    IssuedForecasts,
    TruthValues,
    read_truth,
    truth_question,
)
from dsf.agent.wire.http_answer import HttpAnswer
from dsf.agent.wire.prometheus_answer import SERIES_BYTES, FetchedSeries
from dsf.agent.wire.scoring_answer import RESULT_BYTES, ScoringResult
from dsf.agent.wire.scoring_request import EncodedSeries
from dsf.api.crd.score_rules import DefaultScore
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import InvalidInput


@dataclass(frozen=True, slots=True)
class Round:
    """The outcome of a round: its report, the failure of a stage if any, seconds per stage.

    `evidence` is None unless the runner is `explaining`. `forecasts` is None unless the scorer
    declares its scores as forecasts, and the round has scores.
    """

    summary: ScorerSummary
    report: RoundReport
    failure: Failure | None
    seconds: dict[str, float]
    evidence: RoundEvidence | None = None
    forecasts: IssuedForecasts | None = None


@dataclass(frozen=True, slots=True)
class RoundRunner:
    """Runs the rounds of a managed cluster; `now` returns the time of day.

    `max_series` limits the label sets of one score, `answer_budget` the memory for the answers of
    all rounds. The rounds of an `explaining` runner contain their evidence.
    """

    cluster: str
    sources: Sources
    scoring: ScoringApi
    now: Callable[[], datetime]
    answer_budget: AnswerBudget
    max_series: int = result_rules.MAX_SERIES
    explaining: bool = False

    @property
    def max_memory(self) -> int:
        """The most bytes that the answers of one round take, encoded and decoded.

        Series are freed when the answer of the scoring API is complete, before it is decoded.
        """
        while_called = self.sources.max_memory + self.scoring.max_bytes
        return max(while_called, self.scoring.max_memory)

    async def perform(self, summary: ScorerSummary) -> Round:
        """Run one round."""
        with self.answer_budget.reserve(self.max_memory) as reservation:
            return await self._perform(summary, reservation)

    async def probe(self, summary: ScorerSummary) -> Failure | None:
        """Ask the health endpoint of a scorer's API; None if it is healthy."""
        return await self.scoring.probe(summary)

    async def truth(self, summary: ScorerSummary, after: float) -> TruthValues | Failure:
        """Read what became of the forecasts for the time `after` (unix seconds)."""
        horizon = summary.forecast.horizon if summary.forecast else 0
        before = await self._truth_at(summary, after - horizon)
        if isinstance(before, Failure):
            return before
        came = await self._truth_at(summary, after)
        return came if isinstance(came, Failure) else TruthValues(before, came)

    async def _truth_at(self, summary: ScorerSummary, time: float) -> dict[str, float] | Failure:
        asked, form = truth_question(summary), self._form(summary)
        if isinstance(form, Failure):
            return form
        with self.answer_budget.reserve(self.max_memory) as reservation:
            fetched = await self.sources.fetch(asked, time, reservation)
            if isinstance(fetched, Failure):
                return fetched
            read = partial(read_truth, fetched.series, form)
            return await off_loop(read, len(fetched.series) * SERIES_BYTES)

    async def _perform(self, summary: ScorerSummary, reservation: AnswerReservation) -> Round:
        clock = asyncio.get_running_loop().time
        began = clock()
        started = Instant(self.now().timestamp(), began)
        fetched = await self.sources.fetch(summary, started.unix, reservation)
        series_bytes = reservation.kept
        while_called = series_bytes + self.scoring.max_bytes
        reservation.expect(max(while_called, self.scoring.max_memory))
        seconds = {"fetch": clock() - began}
        if isinstance(fetched, Failure):
            return Round(
                summary, RoundReport.failed(fetched), fetched, seconds, self._evidence(summary)
            )
        form = self._form(summary)
        if isinstance(form, Failure):
            return self._unscored(summary, form, fetched, seconds)
        if summary.scoring_default_score and summary.has_source and not fetched.series:
            return self._default(summary, summary.scoring_default_score, form, fetched, seconds)
        began = clock()
        deadline = self.scoring.deadline(summary)
        response: HttpAnswer | list[ScoringResult] | Failure
        response = await self.scoring.call(summary, fetched.series, deadline, reservation)
        if not self.explaining:
            fetched = FetchedSeries((), fetched.warnings)
            reservation.drop(series_bytes)
        if isinstance(response, HttpAnswer):
            response = await self.scoring.results(summary, response, deadline, reservation)
        seconds["perform"] = clock() - began
        if isinstance(response, Failure):
            return self._unscored(summary, response, fetched, seconds)
        results = response
        if summary.scoring_default_score and not results:
            return self._default(summary, summary.scoring_default_score, form, fetched, seconds)
        scores, issued = await off_loop(
            lambda: _converted(summary, results, form, started), len(results) * RESULT_BYTES
        )
        reported = RoundReport.success(scores, fetched.warnings)
        evidence = self._evidence(summary, fetched.series, results, form)
        return Round(summary, reported, None, seconds, evidence, issued)

    def _default(
        self,
        summary: ScorerSummary,
        default: DefaultScore,
        form: result_rules.ConversionSettings,
        fetched: FetchedSeries,
        seconds: dict[str, float],
    ) -> Round:
        """Return a round with nothing to score: no series, or no result of the scoring API."""
        scores = result_rules.default_scores(default, form)
        called = "perform" in seconds
        reported = RoundReport.nothing_to_score(
            scores, default.value, fetched.warnings, called=called
        )
        evidence = self._evidence(summary, fetched.series, (), form, called=called)
        return Round(summary, reported, None, seconds, evidence)

    def _unscored(
        self,
        summary: ScorerSummary,
        failure: Failure,
        fetched: FetchedSeries,
        seconds: dict[str, float],
    ) -> Round:
        reported = RoundReport.failed(failure, fetched.warnings)
        evidence = self._evidence(summary, fetched.series)
        return Round(summary, reported, failure, seconds, evidence)

    def _form(self, summary: ScorerSummary) -> result_rules.ConversionSettings | Failure:
        form = result_rules.conversion_settings(summary, self.cluster, self.max_series)
        if isinstance(form, InvalidInput):
            return Failure("scoring", form.reason, form.message)
        return form

    def _evidence(
        self,
        summary: ScorerSummary,
        series: Sequence[EncodedSeries] = (),
        results: Sequence[ScoringResult] = (),
        form: result_rules.ConversionSettings | None = None,
        *,
        called: bool = True,
    ) -> RoundEvidence | None:
        if not self.explaining:
            return None
        endpoints = [self.sources.endpoint(one) for one in summary.single_sources]
        return RoundEvidence(endpoints, series, results, form, called=called)


def _converted(
    summary: ScorerSummary,
    results: Sequence[ScoringResult],
    form: result_rules.ConversionSettings,
    started: Instant,
) -> tuple[result_rules.RoundScores, IssuedForecasts | None]:
    """Return what is published of results, and the forecasts that they are, if they are any."""
    verdicts = result_rules.judge(results, form)
    scores = result_rules.assemble(verdicts, form)
    if summary.forecast is None:
        return scores, None
    return scores, IssuedForecasts(started, result_rules.forecasts_of(results, verdicts, scores))
