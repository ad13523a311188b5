"""A limit of requests per caller, so that one program in a loop does not take the server."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from dsf.runtime.lru_cache import LruCache
from optimizer.api.authentication import is_open, user_of
from optimizer.api.problem_details import refusal
from optimizer.wire.request_problem import TOO_MANY_REQUESTS, RequestProblem

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
        await refusal(_too_many(self._per_second), {"Retry-After": f"{math.ceil(wait)}"})(
            scope, receive, send
        )

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


def _too_many(per_second: float) -> RequestProblem:
    return RequestProblem(
        status=TOO_MANY_REQUESTS,
        reason="TooManyRequests",
        title="You send too many requests",
        detail=f"this server answers {per_second:g} requests a second of one caller; Retry-After"
        " says how many seconds to wait",
    )
