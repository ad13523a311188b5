"""Whether the model's server answers, asked at most every few seconds."""

import asyncio
import time
from collections.abc import Callable
from http import HTTPStatus
from math import inf

import httpx

from .completion_api import endpoint
from .settings import ForecastSettings

_REMEMBERED_SECONDS = 10.0
"""The hub asks /healthz every 10 s, and agents do during an outage."""

_TIMEOUT_SECONDS = 3.0
"""Less than the 5 s that the hub waits for /healthz."""


class ModelHealth:
    """Asks for the list of models, because that costs no tokens."""

    def __init__(
        self, settings: ForecastSettings, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._url = endpoint(settings.endpoint, settings.model, settings.api).models_url
        self._lock = asyncio.Lock()
        self._trouble: str | None = None
        self._valid_until = -inf

    async def trouble(self) -> str | None:
        """Return why the model does not answer; None if it does."""
        async with self._lock:
            if self._now() >= self._valid_until:
                self._trouble = await self._asked()
                self._valid_until = self._now() + _REMEMBERED_SECONDS
            return self._trouble

    async def _asked(self) -> str | None:
        """Ask once. A refusal of the request is an answer: /healthz has no token."""
        try:
            async with (
                httpx.AsyncClient(timeout=_TIMEOUT_SECONDS, trust_env=False) as client,
                asyncio.timeout(_TIMEOUT_SECONDS),
                client.stream("GET", self._url) as response,
            ):
                status = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            return f"no answer from {self._url} ({type(error).__name__})"
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return f"{self._url} answered {status}: the model is loading, or its server is broken"
        return None
