"""Fetches the time series of a round, by the scorer's source type."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dsf.agent.failure import Failure
from dsf.agent.fetch import http_exchange
from dsf.agent.fetch.answer_budget import AnswerReservation
from dsf.agent.fetch.credentials import (
    CallCredentials,
    EndpointCredentials,
    authorized,
    source_endpoint,
)
from dsf.agent.fetch.http_client import HttpClient
from dsf.agent.fetch.kubernetes_source import SOURCE_TYPE, KubernetesSource
from dsf.agent.wire.foreign_text import NO_SECRETS
from dsf.agent.wire.http_answer import HttpAnswer, display_url
from dsf.agent.wire.prometheus_answer import (
    SERIES_BYTES,
    SERIES_LIMIT,
    AskedSamples,
    FetchedSeries,
    concatenate,
    parse_query_answer,
)
from dsf.agent.wire.prometheus_query import PrometheusQuery, build_query, on_server, split_queries
from dsf.api.crd.scorer_source import TENANT_HEADER
from dsf.api.json_input import object_count
from dsf.api.scoring.scorer_summary import ScorerSummary


class ReceivedSource(Protocol):
    """Series that senders push to the agent."""

    def fetch(self, summary: ScorerSummary, now: float) -> FetchedSeries | Failure:
        """Return the series of a scorer as of `now` (unix seconds)."""
        ...


@dataclass(slots=True)
class FetchRoom:
    """What is left for the sources of a round: time, bytes of answers, series.

    `reservation` is the memory that the round may use; None if nobody counts it.
    """

    deadline: http_exchange.CallDeadline
    bytes: int
    series: int = SERIES_LIMIT
    reservation: AnswerReservation | None = None


Read = Callable[[ScorerSummary, float, FetchRoom], Awaitable[FetchedSeries | Failure]]


@dataclass(frozen=True, slots=True)
class Sources:
    """Fetches series for every source type that a summary may name.

    `objects` reads those of the managed cluster. `prometheus_url` replaces the server that scorers
    name. `received` contains what OTLP senders pushed, None if the agent does not receive OTLP.
    """

    client: HttpClient
    secrets: CallCredentials
    limits: http_exchange.CallLimits
    prometheus_url: str = ""
    received: ReceivedSource | None = None
    objects: KubernetesSource = field(default_factory=lambda: KubernetesSource(None))

    @property
    def max_memory(self) -> int:
        """The most memory that the answers of a round may need, encoded and decoded, in bytes."""
        return self.limits.max_bytes + SERIES_LIMIT * SERIES_BYTES

    async def fetch(
        self, summary: ScorerSummary, now: float, reservation: AnswerReservation | None = None
    ) -> FetchedSeries | Failure:
        """Return the series that a scorer needs, as of `now` (unix seconds).

        Several sources are read one after the other; the limits of time, size and series apply to
        all of them.
        """
        deadline = http_exchange.CallDeadline.within(self.limits.deadline(summary.scoring_interval))
        room = FetchRoom(deadline, self.limits.max_bytes, reservation=reservation)
        parts = list[FetchedSeries]()
        for source in summary.single_sources:
            fetched = await self._one(source, now, room)
            if isinstance(fetched, Failure):
                name = source.source_name
                return fetched.of_source(name) if name else fetched
            parts.append(fetched)
        return concatenate(parts)

    async def _one(
        self, summary: ScorerSummary, now: float, room: FetchRoom
    ) -> FetchedSeries | Failure:
        read = self._read_of(summary)
        if read is None:
            named = NO_SECRETS.excerpt(summary.source_type)
            message = f"source type {named} is unknown: use Prometheus, OpenTelemetry, Kubernetes"
            message = f"{message} or None"
            return Failure("source", "UnsupportedSource", message)
        return await read(summary, now, room)

    def endpoint(self, summary: ScorerSummary) -> str:
        """Return what is asked for a scorer's series: a URL, or objects; empty for nothing."""
        if self._read_of(summary) == self._kubernetes and summary.source_kubernetes:
            return summary.source_kubernetes.qualified
        if self._read_of(summary) != self._prometheus:
            return ""
        try:
            return on_server(summary.source_endpoint, self.prometheus_url)
        except ValueError:
            return summary.source_endpoint

    def _read_of(self, summary: ScorerSummary) -> Read | None:
        types: Mapping[str, Read] = {
            "prometheus": self._prometheus,
            "opentelemetry": self._open_telemetry,
            SOURCE_TYPE: self._kubernetes,
            "none": _nothing,
            "": _nothing,
        }
        return types.get(summary.source_type.strip().lower())

    async def _open_telemetry(
        self, summary: ScorerSummary, now: float, _room: FetchRoom
    ) -> FetchedSeries | Failure:
        if self.received is None:
            message = (
                "this agent does not receive OTLP: run it with --otlp (in the chart:"
                " spokeSetting.agent.otlp.enabled); --once and --explain never receive it"
            )
            return Failure("source", "NotReceiving", message)
        return _labelled(self.received.fetch(summary, now), summary.source_name)

    async def _kubernetes(
        self, summary: ScorerSummary, now: float, room: FetchRoom
    ) -> FetchedSeries | Failure:
        fetched = await self.objects.fetch(
            summary, now, room.deadline, room.series, room.reservation
        )
        if isinstance(fetched, FetchedSeries):
            room.series -= len(fetched.series)
        return _labelled(fetched, summary.source_name)

    async def _prometheus(
        self, summary: ScorerSummary, now: float, room: FetchRoom
    ) -> FetchedSeries | Failure:
        queries = split_queries(summary.source_query)
        if not queries:
            message = "the query is empty: set spec.source.params.query, or source type None"
            return Failure("source", "EmptyQuery", message)
        calls = self._calls(summary, queries, now)
        if isinstance(calls, Failure):
            return calls
        endpoint = source_endpoint(summary, calls[0].url)
        tenant = {TENANT_HEADER: summary.source_endpoint_tenant}

        async def ask(used: EndpointCredentials) -> FetchedSeries | Failure:
            headers = used.headers | (tenant if summary.source_endpoint_tenant else {})
            requests = [(_request(call, headers, used), call.asked) for call in calls]
            return await self._all(requests, summary.source_name, room)

        return await authorized(self.secrets, endpoint, "source", ask)

    async def _all(
        self,
        requests: Sequence[tuple[http_exchange.OutboundRequest, AskedSamples]],
        source: str,
        room: FetchRoom,
    ) -> FetchedSeries | Failure:
        """Send one query after the other."""
        parts = list[FetchedSeries]()
        for request, asked in requests:
            answer = await http_exchange.exchange(
                self.client,
                request,
                stage="source",
                deadline=room.deadline,
                max_bytes=room.bytes,
                reservation=room.reservation,
            )
            if isinstance(answer, Failure):
                return answer
            room.bytes -= len(answer.body)
            fetched = await self._decoded(request.url, answer, asked, source, room)
            if isinstance(fetched, Failure):
                return fetched
            room.series -= len(fetched.series)
            parts.append(fetched)
        return concatenate(parts)

    async def _decoded(
        self, url: str, answer: HttpAnswer, asked: AskedSamples, source: str, room: FetchRoom
    ) -> FetchedSeries | Failure:
        return await http_exchange.decode_within(
            lambda: _labelled(parse_query_answer(url, answer, room.series, asked), source),
            memory=min(object_count(answer.body), room.series) * SERIES_BYTES,
            kept=lambda found: (
                0 if isinstance(found, Failure) else len(found.series) * SERIES_BYTES
            ),
            stage="source",
            url=url,
            deadline=room.deadline,
            reservation=room.reservation,
        )

    def _calls(
        self, summary: ScorerSummary, queries: Sequence[str], now: float
    ) -> Sequence[PrometheusQuery] | Failure:
        try:
            endpoint = on_server(summary.source_endpoint, self.prometheus_url)
            window = (summary.source_range, summary.source_step)
            return [
                build_query(endpoint, text, range_=window[0], step=window[1], now=now)
                for text in queries
            ]
        except ValueError:
            message = f"{display_url(summary.source_endpoint)}: correct spec.source.host and path"
            return Failure("source", "InvalidURL", message)


def _request(
    call: PrometheusQuery, headers: Mapping[str, str], used: EndpointCredentials
) -> http_exchange.OutboundRequest:
    if call.method == "GET":
        url, body = f"{call.url}?{call.encoded}", b""
    else:
        url, body, headers = call.url, call.encoded.encode(), {**headers, **http_exchange.FORM}
    return http_exchange.OutboundRequest(call.method, url, body, headers, used.ca, used.certificate)


def _labelled(found: FetchedSeries | Failure, source: str) -> FetchedSeries | Failure:
    """Return series with the name of their source; unchanged if it is the only one."""
    return found.of_source(source) if source and isinstance(found, FetchedSeries) else found


async def _nothing(_summary: ScorerSummary, _now: float, _room: FetchRoom) -> FetchedSeries:
    return FetchedSeries()
