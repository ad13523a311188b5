"""Calls scoring APIs."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from dsf.agent.failure import Failure
from dsf.agent.fetch.answer_budget import AnswerReservation
from dsf.agent.fetch.credentials import AgentSecrets, scoring_endpoint
from dsf.agent.fetch.http_client import HttpClient
from dsf.agent.fetch.http_exchange import CallDeadline, CallLimits, OutboundRequest, exchange
from dsf.agent.score.result_rules import MAX_SERIES
from dsf.agent.wire.encoded_series import EncodedSeries, ScoringRequestBody
from dsf.agent.wire.http_answer import HttpAnswer, display_url, invalid_response, status_failure
from dsf.api.invalid_input import InvalidInput
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.scoring.scoring_api import ScoringResponse

RESULTS_PER_SERIES = 5
"""Results that an answer may have for each label set of a score: some are dropped by the rules."""

BYTES_PER_SERIES = 1 << 10
"""Bytes that an answer may have for each label set of a score."""

Observe = Callable[[ScorerSummary, str, float], None]
"""Called after each call with its scorer, its HTTP status or reason of failure, and its seconds."""


def unobserved(_summary: ScorerSummary, _code: str, _seconds: float) -> None:
    """Ignore a call."""


@dataclass(frozen=True, slots=True)
class ScoringApi:
    """Calls scoring APIs; `max_series` is the number of label sets that a score may have."""

    client: HttpClient
    secrets: AgentSecrets
    limits: CallLimits
    observe: Observe = unobserved
    max_series: int = MAX_SERIES

    @property
    def max_bytes(self) -> int:
        """The largest answer that is read."""
        return min(self.limits.max_bytes, self._room * BYTES_PER_SERIES)

    @property
    def _room(self) -> int:
        return max(self.max_series, MAX_SERIES)

    async def score(
        self,
        summary: ScorerSummary,
        series: Sequence[EncodedSeries],
        reservation: AnswerReservation | None = None,
    ) -> ScoringResponse | Failure:
        """Send series to a scorer's API and return its validated results."""
        endpoint = scoring_endpoint(summary)
        access = await self.secrets.credentials(endpoint)
        if isinstance(access, InvalidInput):
            return Failure("scoring", access.reason, access.message)
        headers = {"Content-Type": "application/json", **access.headers}
        clock = asyncio.get_running_loop().time
        began = clock()
        answer = await exchange(
            self.client,
            OutboundRequest(
                "POST", summary.scoring_endpoint, ScoringRequestBody(series), headers, access.ca
            ),
            stage="scoring",
            deadline=CallDeadline.within(self.limits.deadline(summary.scoring_interval)),
            max_bytes=self.max_bytes,
            reservation=reservation,
        )
        code = answer.reason if isinstance(answer, Failure) else str(answer.status)
        self.observe(summary, code, clock() - began)
        if isinstance(answer, Failure):
            return answer
        scored = parse(summary.scoring_endpoint, answer, self._room * RESULTS_PER_SERIES)
        self.secrets.refused(endpoint, scored)
        return scored


def parse(
    url: str, answer: HttpAnswer, max_results: int = MAX_SERIES * RESULTS_PER_SERIES
) -> ScoringResponse | Failure:
    """Return the results in an answer of `url`; a failure names the place of the first error."""
    if not answer.ok:
        return status_failure("scoring", url, answer)
    # Counted before they are decoded: a result is an object, and its labels are another.
    if answer.body.count(b"{") > 2 * max_results + 1:
        return _too_many(url, max_results)
    try:
        response = ScoringResponse.model_validate_json(answer.body)
    except ValidationError as error:
        return invalid_response("scoring", url, answer, "a scoring response", error)
    return response if len(response.results) <= max_results else _too_many(url, max_results)


def _too_many(url: str, max_results: int) -> Failure:
    message = f"the answer of {display_url(url)} has more than {max_results} results: return fewer"
    return Failure("scoring", "ResponseTooLarge", message)
