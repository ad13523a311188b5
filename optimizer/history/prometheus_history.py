"""Asks a Prometheus for the history of a score, within limits of time, bytes and calls."""

import asyncio

from dsf.agent.failure import Failure
from dsf.agent.fetch.http_client import http_client
from dsf.agent.fetch.http_exchange import CallDeadline, OutboundRequest, exchange
from dsf.agent.wire.prometheus_answer import parse_query_answer
from dsf.agent.wire.prometheus_query import build_query, on_server
from dsf.api.crd.scorer_source import DEFAULT_SOURCE_PATH
from optimizer.history.score_history import HistoryQuestion, ScoreHistory, score_history
from optimizer.wire.request_problem import NOT_FOUND, UNAVAILABLE, RequestProblem

CALL_SECONDS = 10.0
"""Seconds that Prometheus may take: a person waits for the answer."""

MAX_BYTES = 4 << 20
"""Bytes of an answer: twice what MAX_READ series of the longest question have."""

MAX_READ = 500
"""Series of an answer, those that are not shown included."""

MAX_CALLS = 4
"""Calls at once; others wait, so that callers can't take Prometheus or this process."""

NOT_CONFIGURED = RequestProblem(
    status=NOT_FOUND,
    reason="HistoryNotConfigured",
    title="The optimizer knows no Prometheus",
    detail="start it with --prometheus-url (chart: prometheusURL), the URL of the Prometheus that"
    " scrapes the agents; scores are published there as dynamic_score",
)


class PrometheusHistory:
    """The history that the Prometheus at a URL has; without a URL, there is none."""

    def __init__(self, url: str = "") -> None:
        self._url = url
        self._calls = asyncio.Semaphore(MAX_CALLS)

    async def read(self, question: HistoryQuestion) -> ScoreHistory | RequestProblem:
        """Return the history, or why there is none."""
        if not self._url:
            return NOT_CONFIGURED
        async with self._calls:
            return await self._read(question)

    async def _read(self, question: HistoryQuestion) -> ScoreHistory | RequestProblem:
        call = build_query(
            on_server(DEFAULT_SOURCE_PATH, self._url),
            question.query,
            range_=question.seconds,
            step=question.step,
            now=question.now,
        )
        async with http_client() as client:
            answer = await exchange(
                client,
                OutboundRequest("GET", f"{call.url}?{call.encoded}"),
                stage="source",
                deadline=CallDeadline.within(CALL_SECONDS),
                max_bytes=MAX_BYTES,
            )
        if isinstance(answer, Failure):
            return _unavailable(answer)
        found = await asyncio.to_thread(parse_query_answer, call.url, answer, MAX_READ, call.asked)
        if isinstance(found, Failure):
            return _unavailable(found)
        return await asyncio.to_thread(score_history, question, found.series)


def _unavailable(failure: Failure) -> RequestProblem:
    return RequestProblem(
        status=UNAVAILABLE,
        reason="HistoryUnavailable",
        title="Prometheus did not give the history",
        detail=f"the server of --prometheus-url: {failure.reason}: {failure.message}",
    )
