"""Where the time series of a round come from."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dsf.agent import matrix, query
from dsf.agent.answer import excerpt, shown
from dsf.agent.exchange import Deadline, Limits, Request, exchange
from dsf.agent.failure import Failure
from dsf.agent.http_client import HttpClient
from dsf.agent.in_flight import Hold
from dsf.agent.matrix import Fetched
from dsf.agent.query import Query
from dsf.agent.secrets import Secrets, source
from dsf.api.invalid import Invalid
from dsf.api.scorer import TENANT_HEADER
from dsf.api.summary import ScorerSummary

Read = Callable[[ScorerSummary, float, Hold | None], Awaitable[Fetched | Failure]]

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Received(Protocol):
    """What was sent to the agent by itself."""

    def fetch(self, summary: ScorerSummary, now: float) -> Fetched | Failure:
        """Return the series of a scorer as of `now` (unix seconds)."""
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """The source types that a summary may name, over one shared client.

    `prometheus_url` is where this cluster's Prometheus is, whatever host the scorers name;
    `received` is what OTLP senders have sent, None where the agent receives nothing.
    """

    client: HttpClient
    secrets: Secrets
    limits: Limits
    prometheus_url: str = ""
    received: Received | None = None

    async def fetch(
        self, summary: ScorerSummary, now: float, hold: Hold | None = None
    ) -> Fetched | Failure:
        """Return the series that a scorer asks for, as of `now` (unix seconds)."""
        read = self._read_of(summary)
        if read is None:
            named = excerpt(summary.source_type)
            message = f"source type {named} is unknown: use Prometheus, OpenTelemetry or None"
            return Failure("source", "UnsupportedSource", message)
        return await read(summary, now, hold)

    def endpoint(self, summary: ScorerSummary) -> str:
        """Return which URL is asked for a scorer's series; empty where none is."""
        if self._read_of(summary) != self._prometheus:
            return ""
        try:
            return query.located(summary.source_endpoint, self.prometheus_url)
        except ValueError:
            return summary.source_endpoint

    def _read_of(self, summary: ScorerSummary) -> Read | None:
        return self._types().get(summary.source_type.strip().lower())

    def _types(self) -> Mapping[str, Read]:
        return {
            "prometheus": self._prometheus,
            "opentelemetry": self._open_telemetry,
            "none": _nothing,
            "": _nothing,
        }

    async def _open_telemetry(
        self, summary: ScorerSummary, now: float, _hold: Hold | None
    ) -> Fetched | Failure:
        if self.received is None:
            message = (
                "this agent receives no OTLP: run it with --otlp (in the chart:"
                " spokeSetting.agent.otlp.enabled); --once and --explain receive none"
            )
            return Failure("source", "NotReceiving", message)
        return self.received.fetch(summary, now)

    async def _prometheus(
        self, summary: ScorerSummary, now: float, hold: Hold | None
    ) -> Fetched | Failure:
        queries = query.split_queries(summary.source_query)
        if not queries:
            message = "the query is empty: set spec.source.params.query, or source type None"
            return Failure("source", "EmptyQuery", message)
        calls = self._calls(summary, queries, now)
        if isinstance(calls, Failure):
            return calls
        endpoint = source(summary, calls[0].url)
        access = await self.secrets.access(endpoint)
        if isinstance(access, Invalid):
            return Failure("source", access.reason, access.message)
        tenant = summary.source_endpoint_tenant
        headers = access.headers | ({TENANT_HEADER: tenant} if tenant else {})
        requests = [_request(call, headers, access.ca) for call in calls]
        deadline = Deadline.within(self.limits.deadline(summary.scoring_interval))
        fetched = await self._all(requests, deadline, hold)
        self.secrets.refused(endpoint, fetched)
        return fetched

    async def _all(
        self, requests: Sequence[Request], deadline: Deadline, hold: Hold | None
    ) -> Fetched | Failure:
        """Ask one query after the other, all within one deadline and one limit of size."""
        parts, room = list[Fetched](), self.limits.max_bytes
        for request in requests:
            answer = await exchange(
                self.client, request, stage="source", deadline=deadline, max_bytes=room, hold=hold
            )
            if isinstance(answer, Failure):
                return answer
            room -= len(answer.body)
            fetched = matrix.parse(request.url, answer)
            if isinstance(fetched, Failure):
                return fetched
            parts.append(fetched)
        return matrix.joined(parts)

    def _calls(
        self, summary: ScorerSummary, queries: Sequence[str], now: float
    ) -> Sequence[Query] | Failure:
        try:
            endpoint = query.located(summary.source_endpoint, self.prometheus_url)
            window = (summary.source_range, summary.source_step)
            return [
                query.build(endpoint, text, range_=window[0], step=window[1], now=now)
                for text in queries
            ]
        except ValueError:
            message = f"{shown(summary.source_endpoint)}: correct spec.source.host and path"
            return Failure("source", "InvalidURL", message)


def _request(call: Query, headers: Mapping[str, str], ca: str) -> Request:
    if call.method == "GET":
        return Request("GET", f"{call.url}?{call.encoded}", headers=headers, ca=ca)
    return Request("POST", call.url, call.encoded.encode(), {**headers, **_FORM}, ca)


async def _nothing(_summary: ScorerSummary, _now: float, _hold: Hold | None) -> Fetched:
    return Fetched()
