"""A short memory for the hub's answers, so that not each request asks the hub."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from dsf.runtime.lru_cache import LruCache

K = TypeVar("K")
V = TypeVar("V")

CACHE_SECONDS = 10.0
"""A right that is granted or withdrawn counts after so long; as in Kubernetes' own servers.

Source: k8s.io/apiserver, DelegatingAuthenticationOptions and DelegatingAuthorizationOptions.
"""
CACHE_ENTRIES = 4096
"""Answers kept: some hundred callers with ten rights each, in about a megabyte."""
MOST_REVIEWS = 32
"""Questions to the hub at a time: callers with forged tokens can't flood it."""


class ReviewCache(Generic[K, V]):
    """Remembers at most `entries` answers, each for `seconds` of a clock."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        seconds: float = CACHE_SECONDS,
        entries: int = CACHE_ENTRIES,
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._answers: LruCache[K, tuple[float, V]] = LruCache(entries)
        self._asking = asyncio.Semaphore(MOST_REVIEWS)

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the remembered answer, or ask; an error of `ask` is not remembered."""
        if (known := self._known(key)) is not None:
            return known[1]
        async with self._asking:
            if (known := self._known(key)) is not None:
                return known[1]
            asked_at = self._clock()
            answer = await ask()
        self._answers.put(key, (asked_at, answer))
        return answer

    def _known(self, key: K) -> tuple[float, V] | None:
        found = self._answers.get(key)
        return found if found and self._clock() < found[0] + self._seconds else None
