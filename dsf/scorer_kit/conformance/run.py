"""Makes the calls of all checks, within a number of calls and a time that are known before."""

import asyncio
from collections.abc import Mapping, Sequence

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_client import HttpClient, http_client
from dsf.agent.fetch.http_exchange import CallDeadline, CallLimits, OutboundRequest, exchange
from dsf.agent.fetch.scoring_call import BYTES_PER_SERIES, RESULTS_PER_SERIES
from dsf.agent.score.result_rules import MAX_SERIES
from dsf.agent.wire.scoring_answer import parse_scoring_answer
from dsf.agent.wire.scoring_request import caller_headers, encoded_context, encoded_params
from dsf.agent.wire.secret_data import Token
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.scorer_kit.conformance.checks import CHECKS, ConformanceCheck, Need
from dsf.scorer_kit.conformance.evidence import (
    CallCounts,
    CallOutcome,
    CheckCall,
    CheckInput,
    CheckResult,
    CheckSettings,
    ConformanceReport,
    Evidence,
)
from dsf.scorer_kit.invented_series import TYPICAL_SERIES, forms_of, invented
from dsf.scorer_kit.registration import suggested_format
from dsf.scorer_kit.scorer_target import CLUSTER, ScorerTarget, probe

_LATE = "no answer in time: see latency"
_MISSING: Mapping[Need, str] = {
    "config": "there is no usable config: see config",
    "endpoint": "the scoring endpoint is not known: see config and registration",
    "answer": "a typical request was not answered: see scoring",
    "results": "a typical request has no usable answer: see scoring and schema",
    "own series": "no answered --data: scores of invented series tell nothing about values",
    "token": "no --token-file",
}
"""Why a check is skipped that needs what is not there."""

_WRONG_TOKEN = "not-the-token"  # noqa: S105 - a wrong one on purpose


async def check(target: ScorerTarget, settings: CheckSettings, now: float) -> ConformanceReport:
    """Run all checks of a scoring API; `now` (unix seconds) is the time of the latest samples."""
    async with http_client() as client:
        run = _CheckRun(client, target, settings, int(now))
        results = [await run.result_of(item) for item in CHECKS]
    config = target.config
    return ConformanceReport(
        target.named.config_url,
        config.name if config else "",
        target.named.dimension_format or run.suggested_format(),
        results,
        run.calls.number,
        run.calls.slowest_seconds,
    )


class _CheckRun:
    """The checks of one target, one after the other."""

    def __init__(
        self, client: HttpClient, target: ScorerTarget, settings: CheckSettings, now: int
    ) -> None:
        self.calls = CallCounts()
        self._client = client
        self._target = target
        self._settings = settings
        self._ca = target.named.ca
        self._now = now
        self._clock = asyncio.get_running_loop().time
        self._end = self._clock() + settings.total

    def suggested_format(self) -> str:
        """Return the format that the results of the typical request suggest; empty for none."""
        results = self.calls.typical.results
        if isinstance(results, Failure) or not results:
            return ""
        summary = self._target.summary
        further = summary.score_dimension_formats if isinstance(summary, ScorerSummary) else ()
        return suggested_format([result.metric for result in results], further) or ""

    async def result_of(self, item: ConformanceCheck) -> CheckResult:
        """Make the calls of one check, and judge them."""
        if why := self._why_skipped(item):
            return CheckResult(item.name, item.promise, skipped=why)
        outcomes = await self._made(item)
        if any(outcome.late for outcome in outcomes):
            return CheckResult(item.name, item.promise, skipped=_LATE)
        probed = await probe(self._target.named, full=False) if item.probes else None
        health = probed.health if probed else None
        evidence = Evidence(self._target, self._seconds(), self.calls, outcomes, health)
        return CheckResult(item.name, item.promise, tuple(item.judge(evidence)))

    def _why_skipped(self, item: ConformanceCheck) -> str:
        if item.name in self._settings.skipped:
            return "by --skip"
        if not self._has(item.needs):
            return _MISSING[item.needs]
        if item.calls and self.calls.late:
            return _LATE
        if item.calls and self._clock() >= self._end:
            return f"--time-limit of {self._settings.total:g} s is over"
        return ""

    def _has(self, need: Need) -> bool:
        summary, typical = self._target.summary, self.calls.typical
        sourceless = isinstance(summary, ScorerSummary) and summary.source_type == "None"
        results = typical.ok and not isinstance(typical.results, Failure)
        there: Mapping[Need, bool] = {
            "nothing": True,
            "config": self._target.config is not None,
            "endpoint": isinstance(summary, ScorerSummary),
            "answer": typical.ok,
            "results": results,
            "own series": results and (sourceless or self._settings.typical is not None),
            "token": bool(self._settings.token),
        }
        return there[need]

    async def _made(self, item: ConformanceCheck) -> Sequence[CallOutcome]:
        """Make the calls of a check, until one of them is late."""
        outcomes = list[CallOutcome]()
        if item.calls is None or not isinstance(self._target.summary, ScorerSummary):
            return outcomes
        for call in item.calls(self._input(self._target.summary)):
            outcomes.append(await self._call(self._target.summary, call))
            self.calls.add(outcomes[-1])
            if outcomes[-1].late:
                break
        return outcomes

    def _input(self, summary: ScorerSummary) -> CheckInput:
        forms, typical = forms_of(summary, self._now), self._settings.typical
        if typical is None:
            typical = invented(forms, TYPICAL_SERIES)
        return CheckInput(
            forms,
            typical,
            self._settings,
            summary.source_type == "None",
            encoded_context(CLUSTER, summary),
            encoded_params(summary),
        )

    async def _call(self, summary: ScorerSummary, call: CheckCall) -> CallOutcome:
        tokens = {"given": self._settings.token, "none": "", "wrong": _WRONG_TOKEN}
        token = tokens[call.token]
        headers = {
            "Content-Type": call.content_type,
            **caller_headers(CLUSTER, summary),
            **(Token(token).headers if token else {}),
        }
        url, began = summary.scoring_endpoint, self._clock()
        answer = await exchange(
            self._client,
            OutboundRequest("POST", url, call.body, headers, self._ca),
            stage="scoring",
            deadline=CallDeadline.within(self._seconds()),
            max_bytes=MAX_SERIES * BYTES_PER_SERIES,
        )
        seconds = self._clock() - began
        if isinstance(answer, Failure):
            return CallOutcome(answer, answer, seconds)
        found = parse_scoring_answer(url, answer, MAX_SERIES * RESULTS_PER_SERIES)
        return CallOutcome(answer, found, seconds)

    def _seconds(self) -> float:
        """Return the seconds that a call may take."""
        summary = self._target.summary
        interval = summary.scoring_interval if isinstance(summary, ScorerSummary) else 0
        return self._settings.seconds or CallLimits().deadline(interval)
