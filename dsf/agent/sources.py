"""Where the time series of a round come from."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import httpx

from dsf.agent import matrix, query
from dsf.agent.answer import excerpt, shown
from dsf.agent.exchange import Deadline, Limits, Request, exchange
from dsf.agent.failure import Failure
from dsf.agent.matrix import Fetched
from dsf.agent.secrets import Secrets
from dsf.api.invalid import Invalid
from dsf.api.summary import ScorerSummary

Read = Callable[[ScorerSummary, float], Awaitable[Fetched | Failure]]

_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, slots=True)
class Sources:
    """The source types that a summary may name, over one shared client.

    `prometheus_url` is where this cluster's Prometheus is, whatever host the scorers name.
    """

    client: httpx.AsyncClient
    secrets: Secrets
    limits: Limits
    prometheus_url: str = ""

    async def fetch(self, summary: ScorerSummary, now: float) -> Fetched | Failure:
        """Return the series that a scorer asks for, as of `now` (unix seconds)."""
        read = self._types().get(summary.source_type.strip().lower())
        if read is None:
            named = excerpt(summary.source_type)
            message = f"source type {named} is not supported yet: use Prometheus or None"
            return Failure("source", "UnsupportedSource", message)
        return await read(summary, now)

    def _types(self) -> Mapping[str, Read]:
        return {"prometheus": self._prometheus, "none": _nothing, "": _nothing}

    async def _prometheus(self, summary: ScorerSummary, now: float) -> Fetched | Failure:
        token = await self.secrets.token(
            summary.source_endpoint_auth_name, summary.source_endpoint_auth_key
        )
        if isinstance(token, Invalid):
            return Failure("source", token.reason, token.message)
        queries = query.split_queries(summary.source_query)
        if not queries:
            message = "the query is empty: set spec.source.params.query, or source type None"
            return Failure("source", "EmptyQuery", message)
        return await self._all(summary, queries, token.headers if token else {}, now)

    async def _all(
        self, summary: ScorerSummary, queries: Sequence[str], headers: Mapping[str, str], now: float
    ) -> Fetched | Failure:
        """Ask one query after the other, all within one deadline."""
        deadline = Deadline.within(self.limits.deadline(summary.scoring_interval))
        total = Fetched()
        for text in queries:
            fetched = await self._one(self._request(summary, text, headers, now), deadline)
            if isinstance(fetched, Failure):
                return fetched
            total = Fetched(total.series + fetched.series, total.warnings + fetched.warnings)
        return total

    async def _one(self, request: Request | Failure, deadline: Deadline) -> Fetched | Failure:
        if isinstance(request, Failure):
            return request
        answer = await exchange(
            self.client,
            request,
            stage="source",
            deadline=deadline,
            max_bytes=self.limits.max_bytes,
        )
        return answer if isinstance(answer, Failure) else matrix.parse(request.url, answer)

    def _request(
        self, summary: ScorerSummary, text: str, headers: Mapping[str, str], now: float
    ) -> Request | Failure:
        try:
            call = query.build(
                query.located(summary.source_endpoint, self.prometheus_url),
                text,
                range_=summary.source_range,
                step=summary.source_step,
                now=now,
            )
        except ValueError:
            message = f"{shown(summary.source_endpoint)}: correct spec.source.host and path"
            return Failure("source", "InvalidURL", message)
        if call.method == "GET":
            return Request("GET", f"{call.url}?{call.encoded}", headers=headers)
        return Request("POST", call.url, call.encoded.encode(), {**headers, **_FORM})


async def _nothing(_summary: ScorerSummary, _now: float) -> Fetched:
    return Fetched()
