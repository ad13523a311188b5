"""A limit of open streams per caller and in total, so that watching leaves room for all else."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from optimizer.api.problem_details import RETRY_LATER, refusal
from optimizer.api.rate_limit import Caller, caller_of_scope
from optimizer.wire.request_problem import TOO_MANY_REQUESTS, RequestProblem

LISTEN = "subscriptions/listen"
"""The MCP method whose answer is a stream; the SDK refuses a header Mcp-Method that says else.

Source: MCP 2026-07-28, transports.
"""


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How many streams may be open at once."""

    total: int = 256
    """Of all callers. Half of the default of connections."""
    of_caller: int = 16
    """Of one user; without authentication, of one address."""


DEFAULT_STREAMS = StreamLimits()
SUBSCRIPTIONS = StreamLimits(total=32, of_caller=4)
"""Of MCP: what bounds how often the hub is read, which each of them does every few seconds."""


class StreamPlaces:
    """Counts the open streams of each caller."""

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self._taken: Counter[Caller] = Counter()

    def refusal(self, caller: Caller) -> str:
        """Return why a caller gets no further place; empty: it gets one."""
        if self._taken[caller] >= self._limits.of_caller:
            return f"one caller may have {self._limits.of_caller} streams open; close one of yours"
        if self._taken.total() >= self._limits.total:
            return f"all {self._limits.total} streams of this server are open; try again later"
        return ""

    def take(self, caller: Caller) -> None:
        """Count a stream that begins."""
        self._taken[caller] += 1

    def free(self, caller: Caller) -> None:
        """Count a stream that has ended."""
        self._taken -= Counter([caller])


class StreamLimit:
    """ASGI middleware: responds 429 where a caller, or all together, have too many open streams.

    Streams are the events of rollouts and MCP subscriptions. It stands behind `Authentication`.
    """

    def __init__(self, app: ASGIApp, limits: StreamLimits = DEFAULT_STREAMS) -> None:
        self._app = app
        self._streams = StreamPlaces(limits)
        self._subscriptions = StreamPlaces(SUBSCRIPTIONS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it; a stream has its place until it ends."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        caller = caller_of_scope(scope)
        with ExitStack() as taken:
            for places in self._places(scope):
                if refused := places.refusal(caller):
                    await refusal(_too_many(refused), RETRY_LATER)(scope, receive, send)
                    return
                places.take(caller)
                taken.callback(places.free, caller)
            await self._app(scope, receive, send)

    def _places(self, scope: Scope) -> Iterator[StreamPlaces]:
        listens = Headers(scope=scope).get("mcp-method") == LISTEN
        path = scope["path"]
        if listens or (path.startswith("/rollouts/") and path.endswith("/events")):
            yield self._streams
        if listens:
            yield self._subscriptions


def _too_many(detail: str) -> RequestProblem:
    return RequestProblem(
        status=TOO_MANY_REQUESTS,
        reason="TooManyStreams",
        title="Too many streams are open",
        detail=detail,
    )
