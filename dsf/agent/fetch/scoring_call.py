"""Calls scoring APIs."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dsf.agent.failure import Failure
from dsf.agent.fetch import http_exchange
from dsf.agent.fetch.answer_budget import AnswerReservation
from dsf.agent.fetch.credentials import (
    CallCredentials,
    EndpointCredentials,
    authorized,
    scoring_endpoint,
)
from dsf.agent.fetch.http_client import HttpClient
from dsf.agent.score.result_rules import MAX_SERIES
from dsf.agent.wire.http_answer import HttpAnswer, health_url, status_failure
from dsf.agent.wire.scoring_answer import RESULT_BYTES, ScoringResult, parse_scoring_answer
from dsf.agent.wire.scoring_request import (
    EncodedSeries,
    ScoringRequestBody,
    caller_headers,
    encoded_context,
    encoded_params,
)
from dsf.api.json_input import object_count
from dsf.api.scoring.scorer_summary import ScorerSummary
from dsf.api.untrusted_text import InvalidInput

RESULTS_PER_SERIES = 5
"""Results that an answer may have for each label set of a score: some are dropped by the rules."""

PROBE_SECONDS = 5.0
"""Time for an answer of a health endpoint, which does no work: as long as the hub waits for it."""

PROBE_BYTES = 1 << 16
"""The largest answer of a health endpoint: its body is not used."""

BYTES_PER_SERIES = 1 << 10
"""Bytes that an answer may have for each label set of a score."""

Observe = Callable[[str, str, str, float], None]
"""Called after each call with the names of its score and its endpoint, its HTTP status or reason of
failure, and its seconds."""


def unobserved(_score_name: str, _endpoint: str, _code: str, _seconds: float) -> None:
    """Ignore a call."""


@dataclass(frozen=True, slots=True)
class ScoringApi:
    """Calls scoring APIs for the managed cluster `cluster`.

    `max_series` is the number of label sets that a score may have.
    """

    cluster: str
    client: HttpClient
    secrets: CallCredentials
    limits: http_exchange.CallLimits
    observe: Observe = unobserved
    max_series: int = MAX_SERIES

    @property
    def max_bytes(self) -> int:
        """The largest answer that is read."""
        return min(self.limits.max_bytes, self._room * BYTES_PER_SERIES)

    @property
    def max_memory(self) -> int:
        """The most memory that an answer may need, encoded and decoded, in bytes."""
        return self.max_bytes + self._max_results * RESULT_BYTES

    @property
    def _max_results(self) -> int:
        return self._room * RESULTS_PER_SERIES

    @property
    def _room(self) -> int:
        return max(self.max_series, MAX_SERIES)

    def deadline(self, summary: ScorerSummary) -> http_exchange.CallDeadline:
        """Return the deadline of a call that starts now."""
        return http_exchange.CallDeadline.within(self.limits.deadline(summary.scoring_interval))

    async def call(
        self,
        summary: ScorerSummary,
        series: Sequence[EncodedSeries],
        deadline: http_exchange.CallDeadline,
        reservation: AnswerReservation | None = None,
    ) -> HttpAnswer | Failure:
        """Send series to a scorer's API and return its answer."""
        context = encoded_context(self.cluster, summary)
        body = ScoringRequestBody(series, context, encoded_params(summary))
        url = summary.scoring_endpoint
        headers = {"Content-Type": "application/json", **caller_headers(self.cluster, summary)}
        clock = asyncio.get_running_loop().time

        async def post(used: EndpointCredentials) -> HttpAnswer | Failure:
            began = clock()
            sent = {**headers, **used.headers}
            answer = await http_exchange.exchange(
                self.client,
                http_exchange.OutboundRequest("POST", url, body, sent, used.ca, used.certificate),
                stage="scoring",
                deadline=deadline,
                max_bytes=self.max_bytes,
                reservation=reservation,
            )
            code = answer.reason if isinstance(answer, Failure) else str(answer.status)
            self.observe(summary.score_name, url, code, clock() - began)
            return answer

        return await authorized(self.secrets, scoring_endpoint(summary), "scoring", post)

    async def probe(self, summary: ScorerSummary) -> Failure | None:
        """Ask the health endpoint of a scorer's API, without a token; None if it is healthy."""
        scoring = scoring_endpoint(summary)
        url = health_url(summary.scoring_endpoint)
        access = await self.secrets.credentials(
            replace(scoring, url=url, token_name="", oauth2=None)
        )
        if isinstance(access, InvalidInput):
            return Failure("scoring", access.reason, access.message)
        answer = await http_exchange.exchange(
            self.client,
            http_exchange.OutboundRequest(
                "GET",
                url,
                headers=caller_headers(self.cluster, summary),
                ca=access.ca,
                certificate=access.certificate,
            ),
            stage="scoring",
            deadline=http_exchange.CallDeadline.within(PROBE_SECONDS),
            max_bytes=PROBE_BYTES,
        )
        if isinstance(answer, Failure):
            return answer
        return None if answer.ok else status_failure("scoring", url, answer)

    async def results(
        self,
        summary: ScorerSummary,
        answer: HttpAnswer,
        deadline: http_exchange.CallDeadline,
        reservation: AnswerReservation | None = None,
    ) -> list[ScoringResult] | Failure:
        """Return the validated results in an answer."""
        url = summary.scoring_endpoint
        return await http_exchange.decode_within(
            lambda: parse_scoring_answer(url, answer, self._max_results),
            memory=min(object_count(answer.body), self._max_results) * RESULT_BYTES,
            kept=lambda found: 0 if isinstance(found, Failure) else len(found) * RESULT_BYTES,
            stage="scoring",
            url=url,
            deadline=deadline,
            reservation=reservation,
        )
