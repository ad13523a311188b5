"""Limits of requests and open streams of each caller, so that one program can't take the server."""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from dsf.runtime.lru_cache import LruCache
from optimizer.api.problem_details import RETRY_LATER, refusal
from optimizer.api.request_guards import is_open, user_of
from optimizer.wire.request_problem import ProblemKind

BURST_SECONDS = 4.0
"""A caller that was silent may send the requests of so many seconds at once."""
MOST_CALLERS = 4096
"""Callers remembered, in about a megabyte; the one that was silent longest is forgotten."""

Caller = tuple[str, str]


@dataclass(slots=True)
class _Bucket:
    """A token bucket: `left` requests at the time `at`."""

    left: float
    at: float


class RateLimit:
    """ASGI middleware: responds 429 to a caller of more than `per_second` requests.

    A caller is a user; without authentication, an address. Health and docs are not limited. It
    stands behind `Authentication`.
    """

    def __init__(
        self, app: ASGIApp, per_second: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._per_second = per_second
        self._burst = max(1.0, per_second * BURST_SECONDS)
        self._clock = clock
        self._buckets: LruCache[Caller, _Bucket] = LruCache(MOST_CALLERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        wait = self._seconds_to_wait(caller_of_scope(scope))
        if not wait:
            await self._app(scope, receive, send)
            return
        problem = ProblemKind.TOO_MANY_REQUESTS.because(
            f"this server answers {self._per_second:g} requests a second of one caller; Retry-After"
            " says how many seconds to wait"
        )
        await refusal(problem, {"Retry-After": f"{math.ceil(wait)}"})(scope, receive, send)

    def _seconds_to_wait(self, caller: Caller) -> float:
        """Return 0 and count a request, or the seconds until the next one is accepted."""
        now = self._clock()
        bucket = self._buckets.get(caller) or _Bucket(self._burst, now)
        bucket.left = min(self._burst, bucket.left + (now - bucket.at) * self._per_second)
        bucket.at = now
        self._buckets.put(caller, bucket)
        if bucket.left < 1:
            return (1 - bucket.left) / self._per_second
        bucket.left -= 1
        return 0.0


def caller_of_scope(scope: Scope) -> Caller:
    """Return the name and the uid of a user; without authentication, the address."""
    user = user_of(HTTPConnection(scope))
    address, _ = scope.get("client") or ("", 0)
    return (user.name, user.uid) if user else ("", str(address))


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


_ROLLOUT_EVENTS = re.compile("/rollouts/.*/events")


class StreamLimit:
    """ASGI middleware: responds 429 where a caller, or all together, have too many open streams.

    Streams are the events of the fleet and of rollouts, and MCP subscriptions. It stands behind
    `Authentication`.
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
                    problem = ProblemKind.TOO_MANY_STREAMS.because(refused)
                    await refusal(problem, RETRY_LATER)(scope, receive, send)
                    return
                places.take(caller)
                taken.callback(places.free, caller)
            await self._app(scope, receive, send)

    def _places(self, scope: Scope) -> Iterator[StreamPlaces]:
        listens = Headers(scope=scope).get("mcp-method") == LISTEN
        path = scope["path"]
        if listens or path == "/fleet/events" or _ROLLOUT_EVENTS.fullmatch(path):
            yield self._streams
        if listens:
            yield self._subscriptions
