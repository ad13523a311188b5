"""One round: read the source, call the scoring API, convert the results. Publishes nothing."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from dsf.agent import report
from dsf.agent.explain import Evidence
from dsf.agent.failure import Failure
from dsf.agent.in_flight import Hold, InFlight
from dsf.agent.matrix import Fetched
from dsf.agent.report import Report
from dsf.agent.scores import MAX_SERIES, Form, convert
from dsf.agent.scoring import ScoringApi
from dsf.agent.series import Series
from dsf.agent.sources import Sources
from dsf.api.dimension import DimensionFormat
from dsf.api.invalid import Invalid
from dsf.api.scoring_api import ScoreResult
from dsf.api.summary import ScorerSummary


@dataclass(frozen=True, slots=True)
class Round:
    """What a round brought: its report, the failure of a stage if any, seconds per stage.

    `evidence` is there only where it was asked for.
    """

    summary: ScorerSummary
    report: Report
    failure: Failure | None
    seconds: dict[str, float]
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Rounder:
    """Performs the rounds of a managed cluster; `now` is the time of day.

    `max_series` limits the label sets of one score, `in_flight` the answers of all rounds;
    `explaining` rounds carry their evidence.
    """

    cluster: str
    sources: Sources
    scoring: ScoringApi
    now: Callable[[], datetime]
    in_flight: InFlight
    max_series: int = MAX_SERIES
    explaining: bool = False

    async def perform(self, summary: ScorerSummary) -> Round:
        """Perform one round."""
        with self.in_flight.round(self.sources.limits.max_bytes + self.scoring.max_bytes) as hold:
            return await self._perform(summary, hold)

    async def _perform(self, summary: ScorerSummary, hold: Hold) -> Round:
        clock = asyncio.get_running_loop().time
        began = clock()
        fetched = await self.sources.fetch(summary, self.now().timestamp(), hold)
        hold.expect(self.scoring.max_bytes)
        seconds = {"fetch": clock() - began}
        if isinstance(fetched, Failure):
            return Round(summary, report.failed(fetched), fetched, seconds, self._evidence(summary))
        began = clock()
        response = await self.scoring.score(summary, fetched.series, hold)
        seconds["perform"] = clock() - began
        if isinstance(response, Failure):
            return self._unscored(summary, response, fetched, seconds)
        form = self._form(summary)
        if isinstance(form, Failure):
            return self._unscored(summary, form, fetched, seconds)
        reported = report.success(convert(response.results, form), fetched.warnings)
        evidence = self._evidence(summary, fetched.series, response.results, form)
        return Round(summary, reported, None, seconds, evidence)

    def _unscored(
        self, summary: ScorerSummary, failure: Failure, fetched: Fetched, seconds: dict[str, float]
    ) -> Round:
        reported = report.failed(failure, fetched.warnings)
        evidence = self._evidence(summary, fetched.series)
        return Round(summary, reported, failure, seconds, evidence)

    def _form(self, summary: ScorerSummary) -> Form | Failure:
        dimension = DimensionFormat.parse(summary.score_dimension_format)
        if isinstance(dimension, Invalid):
            return Failure("scoring", dimension.reason, dimension.message)
        normalize = summary.scoring_normalize
        return Form(self.cluster, summary.score_name, dimension, normalize, series=self.max_series)

    def _evidence(
        self,
        summary: ScorerSummary,
        series: Sequence[Series] = (),
        results: Sequence[ScoreResult] = (),
        form: Form | None = None,
    ) -> Evidence | None:
        if not self.explaining:
            return None
        return Evidence(self.sources.endpoint(summary), series, results, form)
