"""Compares the forecasts of scorers with the truth once it is known, and keeps their records.

It runs after a round is published, so that no score waits for a truth.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dsf.agent.failure import Failure
from dsf.agent.metrics import SUCCESS, AgentMetrics
from dsf.agent.round import Round, RoundRunner
from dsf.agent.score.forecasts import (
    ForecastLedger,
    Instant,
    IssuedForecasts,
    TruthValues,
    judge_round,
)
from dsf.api.conditions import Condition
from dsf.api.crd.score_rules import ForecastRules
from dsf.api.scoring.score_conditions import TrackRecord, read_record, trust_condition
from dsf.api.scoring.scorer_summary import ScorerSummary

log = logging.getLogger(__name__)

CATCH_UP = 4
"""Truths that are read after one round, so that a long outage of the source ends in steps."""


@dataclass(frozen=True, slots=True)
class _Verified:
    """The ledger of a scorer, what it was declared with, and why no truth could be read lately."""

    declared: tuple[object, ...]
    ledger: ForecastLedger
    unread: str = ""


class ForecastVerification:
    """The forecasts and records of all scorers of one managed cluster."""

    def __init__(self, reader: RoundRunner, metrics: AgentMetrics) -> None:
        self._reader = reader
        self._metrics = metrics
        self._verified: dict[str, _Verified] = {}

    def conditions(self, summary: ScorerSummary) -> tuple[Condition, ...]:
        """Return the condition `Trusted` of a scorer; empty before its first round has ended."""
        known = self._verified.get(summary.name)
        if known is None or known.declared != _declared(summary):
            return ()
        now = self._reader.now().timestamp()
        return (trust_condition(known.ledger.record, now, known.unread),)

    def forget(self, summary: ScorerSummary) -> None:
        """Forget a scorer that was removed."""
        self._verified.pop(summary.name, None)

    async def verify(self, done: Round, published: Mapping[str, Any] | None) -> None:
        """Keep the forecasts of a round, and judge those whose truth can be known now.

        `published`: the AddOnPlacementScore, which has the record of an earlier agent; None if it
        was not read yet.
        """
        summary, rules = done.summary, done.summary.forecast
        if rules is None:
            self.forget(summary)
            return
        known = self._verified.get(summary.name)
        if known is None or known.declared != _declared(summary):
            if published is None and summary.score_destination != "None":
                return
            known = _Verified(_declared(summary), ForecastLedger(_restored(rules, published)))
        known = self._without_jumps(known, summary)
        if done.forecasts is not None:
            known = replace(known, ledger=known.ledger.with_forecasts(done.forecasts))
        self._verified[summary.name] = await self._caught_up(known, summary, rules)
        record = self._verified[summary.name].ledger.record
        self._metrics.trust(summary.score_name, record.aged(self._reader.now().timestamp()))

    async def _caught_up(
        self, known: _Verified, summary: ScorerSummary, rules: ForecastRules
    ) -> _Verified:
        """Judge what is due; stop at the first truth that can't be read, and after half a round."""
        until = asyncio.get_running_loop().time() + summary.scoring_interval / 2
        for issued in known.ledger.due(self._instant())[:CATCH_UP]:
            known = await self._judged(known, summary, rules, issued)
            if known.unread or asyncio.get_running_loop().time() > until:
                break
        return known

    def _without_jumps(self, known: _Verified, summary: ScorerSummary) -> _Verified:
        ledger = known.ledger.without_jumps(self._instant())
        lost = len(known.ledger.pending) - len(ledger.pending)
        if lost:
            log.warning(
                "the time of day was set: forecasts dropped",
                extra={"scorer": summary.name, "rounds": lost},
            )
            self._metrics.forecasts(summary.score_name, clock_set=lost)
        return replace(known, ledger=ledger)

    async def _judged(
        self,
        known: _Verified,
        summary: ScorerSummary,
        rules: ForecastRules,
        issued: IssuedForecasts,
    ) -> _Verified:
        after = known.ledger.forecast_time(issued)
        truth = await self._reader.truth(summary, after)
        if isinstance(truth, Failure):
            self._metrics.truths.labels(summary.score_name, truth.reason).inc()
            log.warning(
                "truth of forecasts not read",
                extra={"scorer": summary.name, "reason": truth.reason, "error": truth.message},
            )
            return replace(known, unread=f"{truth.reason}: {truth.message}")
        found = judge_round(issued.values, truth.before, truth.after, rules.quantile)
        self._metrics.truths.labels(summary.score_name, SUCCESS).inc()
        self._metrics.forecasts(summary.score_name, judged=found.judged, gap=found.gaps)
        unread = "" if found.judged else _unmatched(issued, truth)
        return replace(known, ledger=known.ledger.judged(issued, found), unread=unread)

    def _instant(self) -> Instant:
        return Instant(self._reader.now().timestamp(), asyncio.get_running_loop().time())


def _declared(summary: ScorerSummary) -> tuple[object, ...]:
    """Return what forecasts and truths depend on: a change of it starts the record anew."""
    return (
        summary.forecast,
        summary.score_name,
        summary.dimension_formats,
        summary.single_sources[0].source_endpoint,
    )


def _restored(rules: ForecastRules, published: Mapping[str, Any] | None) -> TrackRecord:
    """Return the record that an earlier agent published, or one without any evidence."""
    before = read_record(published or {})
    return before if before and before.horizon == rules.horizon else TrackRecord(rules.horizon)


def _unmatched(issued: IssuedForecasts, truth: TruthValues) -> str:
    """Return why no forecast of a round has a truth."""
    if not truth.after:
        return "NoTruth: forecast.truth.query returned no value for the time of the forecast"
    return (
        f"NoMatchingTruth: none of the {len(issued.values)} entries has a value at the scoring and"
        f" at the time of the forecast; {len(truth.after)} other entries have one: compare the"
        " labels of forecast.truth.query with scoreDimensionFormat"
    )
