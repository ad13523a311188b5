"""One round: read the source, call the scoring API, convert the results. Publishes nothing."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from dsf.agent import report
from dsf.agent.failure import Failure
from dsf.agent.report import Report
from dsf.agent.scores import MAX_SERIES, Form, convert
from dsf.agent.scoring import ScoringApi
from dsf.agent.sources import Sources
from dsf.api.dimension import DimensionFormat
from dsf.api.invalid import Invalid
from dsf.api.scoring_api import ScoringResponse
from dsf.api.summary import ScorerSummary


@dataclass(frozen=True, slots=True)
class Round:
    """What a round brought: its report, the failure of a stage if any, seconds per stage."""

    summary: ScorerSummary
    report: Report
    failure: Failure | None
    seconds: dict[str, float]


@dataclass(frozen=True, slots=True)
class Rounder:
    """Performs the rounds of a managed cluster; `now` is the time of day.

    `max_series` limits the label sets of one score.
    """

    cluster: str
    sources: Sources
    scoring: ScoringApi
    now: Callable[[], datetime]
    max_series: int = MAX_SERIES

    async def perform(self, summary: ScorerSummary) -> Round:
        """Perform one round."""
        clock = asyncio.get_running_loop().time
        began = clock()
        fetched = await self.sources.fetch(summary, self.now().timestamp())
        seconds = {"fetch": clock() - began}
        if isinstance(fetched, Failure):
            return Round(summary, report.failed(fetched), fetched, seconds)
        began = clock()
        response = await self.scoring.score(summary, fetched.series)
        seconds["perform"] = clock() - began
        told = self._told(summary, response, fetched.warnings)
        failure = told if isinstance(told, Failure) else None
        reported = report.failed(told, fetched.warnings) if isinstance(told, Failure) else told
        return Round(summary, reported, failure, seconds)

    def _told(
        self, summary: ScorerSummary, response: ScoringResponse | Failure, warnings: tuple[str, ...]
    ) -> Report | Failure:
        if isinstance(response, Failure):
            return response
        dimension = DimensionFormat.parse(summary.score_dimension_format)
        if isinstance(dimension, Invalid):
            return Failure("scoring", dimension.reason, dimension.message)
        form = Form(
            self.cluster,
            summary.score_name,
            dimension,
            summary.scoring_normalize,
            series=self.max_series,
        )
        return report.success(convert(response.results, form), warnings)
