"""Forecasts all series of a request: a few prompts at a time, all before one deadline."""

import asyncio
from collections.abc import Sequence

import httpx

from .model_client import ForecastFailure, ModelClient
from .prompt import Points, batches
from .settings import ForecastSettings

_CONNECT_SECONDS = 10.0
"""Seconds to connect; a server on the same network that takes longer is down."""


class Forecaster:
    """A language model with a deadline and a limit of concurrency, shared by all requests."""

    def __init__(self, settings: ForecastSettings) -> None:
        self._deadline = settings.deadline
        self._model = ModelClient(settings.endpoint, settings.model)
        self._slots = asyncio.Semaphore(settings.concurrency)

    async def forecast(
        self, series: Sequence[Points], token: str | None
    ) -> list[float] | ForecastFailure:
        """Forecast every series, or fail: the first prompt that fails cancels the others."""
        try:
            async with asyncio.timeout(self._deadline), _client() as client:
                return await self._ask_all(client, batches(series), token)
        except TimeoutError:
            return ForecastFailure(
                f"the model did not forecast {len(series)} series within {self._deadline:g} s; "
                "aggregate more in the query, or raise --deadline and the scoring interval"
            )

    async def _ask_all(
        self, client: httpx.AsyncClient, prompts: Sequence[Sequence[Points]], token: str | None
    ) -> list[float] | ForecastFailure:
        tasks = [asyncio.create_task(self._ask(client, batch, token)) for batch in prompts]
        try:
            for finished in asyncio.as_completed(tasks):
                if isinstance(answer := await finished, ForecastFailure):
                    return answer
            answers = [task.result() for task in tasks]
            return [value for answer in answers if isinstance(answer, list) for value in answer]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(
        self, client: httpx.AsyncClient, batch: Sequence[Points], token: str | None
    ) -> list[float] | ForecastFailure:
        async with self._slots:
            return await self._model.forecast(client, batch, token)


def _client() -> httpx.AsyncClient:
    # The deadline of the request bounds every read. Proxies and netrc of the machine are not used.
    timeout = httpx.Timeout(None, connect=_CONNECT_SECONDS)
    return httpx.AsyncClient(timeout=timeout, trust_env=False, follow_redirects=False)
