"""Runs one round: fetch series, call the scoring API, convert the results. Publishes nothing."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from dsf.agent.failure import Failure
from dsf.agent.fetch.answer_budget import AnswerBudget, AnswerReservation
from dsf.agent.fetch.scoring_call import ScoringApi
from dsf.agent.fetch.sources import Sources
from dsf.agent.publish.plan import round_report
from dsf.agent.publish.plan.round_report import RoundReport
from dsf.agent.score.explanation import RoundEvidence
from dsf.agent.score.result_rules import MAX_SERIES, ConversionSettings, convert
from dsf.agent.wire.encoded_series import EncodedSeries
from dsf.agent.wire.prometheus_answer import FetchedSeries
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.dimension_format import DimensionFormat
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import ScoreResult


@dataclass(frozen=True, slots=True)
class Round:
    """The outcome of a round: its report, the failure of a stage if any, seconds per stage.

    `evidence` is None unless the runner is `explaining`.
    """

    summary: ScorerSummary
    report: RoundReport
    failure: Failure | None
    seconds: dict[str, float]
    evidence: RoundEvidence | None = None


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
    max_series: int = MAX_SERIES
    explaining: bool = False

    async def perform(self, summary: ScorerSummary) -> Round:
        """Run one round."""
        with self.answer_budget.reserve(
            self.sources.limits.max_bytes + self.scoring.max_bytes
        ) as reservation:
            return await self._perform(summary, reservation)

    async def _perform(self, summary: ScorerSummary, reservation: AnswerReservation) -> Round:
        clock = asyncio.get_running_loop().time
        began = clock()
        fetched = await self.sources.fetch(summary, self.now().timestamp(), reservation)
        reservation.expect(self.scoring.max_bytes)
        seconds = {"fetch": clock() - began}
        if isinstance(fetched, Failure):
            return Round(
                summary, round_report.failed(fetched), fetched, seconds, self._evidence(summary)
            )
        began = clock()
        response = await self.scoring.score(summary, fetched.series, reservation)
        seconds["perform"] = clock() - began
        if isinstance(response, Failure):
            return self._unscored(summary, response, fetched, seconds)
        form = self._form(summary)
        if isinstance(form, Failure):
            return self._unscored(summary, form, fetched, seconds)
        reported = round_report.success(convert(response.results, form), fetched.warnings)
        evidence = self._evidence(summary, fetched.series, response.results, form)
        return Round(summary, reported, None, seconds, evidence)

    def _unscored(
        self,
        summary: ScorerSummary,
        failure: Failure,
        fetched: FetchedSeries,
        seconds: dict[str, float],
    ) -> Round:
        reported = round_report.failed(failure, fetched.warnings)
        evidence = self._evidence(summary, fetched.series)
        return Round(summary, reported, failure, seconds, evidence)

    def _form(self, summary: ScorerSummary) -> ConversionSettings | Failure:
        dimension = DimensionFormat.parse(summary.score_dimension_format)
        if isinstance(dimension, InvalidInput):
            return Failure("scoring", dimension.reason, dimension.message)
        normalize = summary.scoring_normalize
        return ConversionSettings(
            self.cluster, summary.score_name, dimension, normalize, series=self.max_series
        )

    def _evidence(
        self,
        summary: ScorerSummary,
        series: Sequence[EncodedSeries] = (),
        results: Sequence[ScoreResult] = (),
        form: ConversionSettings | None = None,
    ) -> RoundEvidence | None:
        if not self.explaining:
            return None
        return RoundEvidence(self.sources.endpoint(summary), series, results, form)
