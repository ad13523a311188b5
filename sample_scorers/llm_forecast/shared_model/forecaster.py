# SPDX-License-Identifier: Apache-2.0
"""Forecasts all series of a request: a few prompts at a time, all before one deadline.

An equal question has an equal answer for a while. Where the model has no forecast, a statistical
one may stand in for it.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import httpx

from ..score import HORIZON_SECONDS, Question
from .completion_api import ForecastFailure
from .model_client import ForecastSettings, ModelClient
from .prompt import Points, batches, question

MOST_FORECASTS = 10_000
"""Forecasts that are kept: about 20 MB, the questions included."""


class ForecastCache:
    """Forecasts by token and question; the one that was used longest ago goes first.

    The token is part of the key, because only the model's server can tell whether it is valid.
    """

    def __init__(self, most: int = MOST_FORECASTS) -> None:
        self._most = most
        self._kept = OrderedDict[tuple[str | None, Question], float]()

    def get(self, token: str | None, question: Question) -> float | None:
        """Return the forecast of a question, if it is kept."""
        if (token, question) not in self._kept:
            return None
        self._kept.move_to_end((token, question))
        return self._kept[token, question]

    def put(self, token: str | None, question: Question, forecast: float) -> None:
        """Keep a forecast of the model."""
        self._kept[token, question] = forecast
        self._kept.move_to_end((token, question))
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)


FALLBACK_META = "statistical-fallback"
"""The label `meta` of a result that the model has not forecast."""


def recent_mean(points: Points) -> float:
    """Return the mean of the last HORIZON_SECONDS of a series, up to its own last sample."""
    since = points[-1][0] - HORIZON_SECONDS
    return fmean(value for time, value in points if time > since)


_LOG = logging.getLogger(__name__)

_CONNECT_SECONDS = 10.0
"""Seconds to connect; a server on the same network that takes longer is down."""

Found = dict[Question, float | None]
"""The forecasts of the model; None where it has none."""


@dataclass(frozen=True)
class Forecast:
    """The forecast of a series, and whether the model made it."""

    value: float
    by_model: bool = True


class Forecaster:
    """A language model with a deadline and a limit of concurrency, shared by all requests."""

    def __init__(self, settings: ForecastSettings) -> None:
        self._settings = settings
        self._model = ModelClient(settings)
        self._cache = ForecastCache()
        self._slots = asyncio.Semaphore(settings.concurrency)

    async def forecast(
        self, series: Sequence[Points], token: str | None
    ) -> list[Forecast] | ForecastFailure:
        """Forecast every series, or fail: the first prompt that fails cancels the others.

        With a fallback, no prompt that fails cancels another, and nothing fails.
        """
        until = max((points[-1][0] for points in series), default=0.0)
        questions = [question(points, until, self._settings.max_value) for points in series]
        found = {each: self._cache.get(token, each) for each in questions}
        failure = await self._ask_all(
            [each for each, value in found.items() if value is None], token, found
        )
        if failure and not self._settings.fallback:
            return failure
        if failure:
            _LOG.warning("some series have a statistical forecast: %s", failure.message)
        return [
            _forecast(found[asked], points) for asked, points in zip(questions, series, strict=True)
        ]

    async def _ask_all(
        self, questions: Sequence[Question], token: str | None, found: Found
    ) -> ForecastFailure | None:
        """Ask the model, and put its forecasts into `found`; return the first failure."""
        tasks = list[asyncio.Task[ForecastFailure | None]]()
        failure = None
        try:
            async with asyncio.timeout(self._settings.deadline), _client() as client:
                asking = (self._ask(client, batch, token, found) for batch in batches(questions))
                tasks += map(asyncio.create_task, asking)
                for finished in asyncio.as_completed(tasks):
                    outcome = await finished
                    failure = failure or outcome
                    if failure and not self._settings.fallback:
                        break
        except TimeoutError:
            failure = ForecastFailure(
                f"the model did not forecast {len(questions)} series within "
                f"{self._settings.deadline:g} s; aggregate more in the query, or raise --deadline "
                "and the scoring interval"
            )
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return failure

    async def _ask(
        self, client: httpx.AsyncClient, batch: Sequence[Question], token: str | None, found: Found
    ) -> ForecastFailure | None:
        async with self._slots:
            answer = await self._model.forecast(client, batch, token)
        if isinstance(answer, ForecastFailure):
            return answer
        for asked, value in zip(batch, answer, strict=True):
            found[asked] = value
            self._cache.put(token, asked, value)
        return None


def _forecast(value: float | None, points: Points) -> Forecast:
    return Forecast(recent_mean(points), by_model=False) if value is None else Forecast(value)


def _client() -> httpx.AsyncClient:
    # The deadline of the request bounds every read. Proxies and netrc of the machine are not used.
    timeout = httpx.Timeout(None, connect=_CONNECT_SECONDS)
    return httpx.AsyncClient(timeout=timeout, trust_env=False, follow_redirects=False)
