"""Asks the model about all series: a few questions at a time, all before one deadline."""

import asyncio
from collections.abc import Sequence

import httpx

from .model_client import ForecastFailure, ModelClient
from .prompt import Points, batches
from .settings import ForecastSettings

_CONNECT_SECONDS = 10.0


class Forecaster:
    """A language model with limits, shared by all requests of one application."""

    def __init__(self, settings: ForecastSettings) -> None:
        self._deadline = settings.deadline
        self._model = ModelClient(settings.endpoint, settings.model)
        self._slots = asyncio.Semaphore(settings.concurrency)

    async def forecast(
        self, series: Sequence[Points], token: str | None
    ) -> list[float] | ForecastFailure:
        """Forecast every series, or none: the first question without an answer ends the others."""
        try:
            async with asyncio.timeout(self._deadline), _client() as client:
                return await self._ask_all(client, batches(series), token)
        except TimeoutError:
            return ForecastFailure(
                f"the model did not answer about {len(series)} series within {self._deadline:g} s; "
                "let the query aggregate more, or raise --deadline and the scoring interval"
            )

    async def _ask_all(
        self, client: httpx.AsyncClient, questions: Sequence[Sequence[Points]], token: str | None
    ) -> list[float] | ForecastFailure:
        tasks = [asyncio.create_task(self._ask(client, batch, token)) for batch in questions]
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
    # The deadline around it bounds every read; proxies and netrc of the machine play no part.
    timeout = httpx.Timeout(None, connect=_CONNECT_SECONDS)
    return httpx.AsyncClient(timeout=timeout, trust_env=False, follow_redirects=False)
