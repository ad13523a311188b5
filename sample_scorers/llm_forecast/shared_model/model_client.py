# SPDX-License-Identifier: Apache-2.0
"""The language model: settings, token budget, one prompt over its server's API, and its health."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from math import inf
from pathlib import Path

import httpx

from ...scoring_service.wire import PROMETHEUS_URL
from ..score import MOST_CORES, Question, UnusableReply, data, read_reply
from .completion_api import (
    Completion,
    CompletionApi,
    ForecastFailure,
    Reply,
    endpoint,
    failure_of,
    read_answer,
    request_body,
    retry_after_seconds,
)


@dataclass(frozen=True)
class ForecastSettings:
    """Which model is used, and the limits of one scoring request.

    `endpoint` is the base URL of an OpenAI-compatible server, for example http://vllm:8000/v1.
    `deadline` is in seconds and bounds one scoring request with all its prompts; it should be
    below the scoring interval. At most `concurrency` prompts are sent at a time. `max_value` is in
    cores. With `fallback`, series without a forecast get a statistical one that says so. The token
    in `model_token_file` is sent to the model instead of that of the agent.
    """

    endpoint: str
    model: str
    prometheus_url: str = PROMETHEUS_URL
    api: CompletionApi = "chat"
    deadline: float = 50.0
    concurrency: int = 4
    max_series: int = 200
    max_value: float = MOST_CORES
    max_reply_tokens: int = 4096
    tokens_per_hour: int | None = None
    fallback: bool = False
    model_token_file: Path | None = None


PERIOD_SECONDS = 3600.0
"""The budget is for each hour, as providers bill and limit."""


class TokenBudget:
    """The tokens of the last hour against a limit; None is no limit. Times are seconds."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._spent = deque[tuple[float, int]]()
        self._sum = 0

    def wait(self, now: float) -> float:
        """Return the seconds until a prompt may be sent; 0 if it may be now."""
        if self._limit is None:
            return 0.0
        while self._spent and self._spent[0][0] <= now - PERIOD_SECONDS:
            self._sum -= self._spent.popleft()[1]
        excess = self._sum - self._limit
        for spent_at, tokens in self._spent:
            if excess < 0:
                break
            excess -= tokens
            if excess < 0:
                return spent_at + PERIOD_SECONDS - now
        return 0.0

    def spend(self, now: float, tokens: int) -> None:
        """Count the tokens of a prompt and its reply."""
        if self._limit is not None:
            self._spent.append((now, tokens))
            self._sum += tokens


MAX_REPLY_BYTES = 256 * 1024
"""Bytes of a reply: many times a forecast of BATCH_SIZE series with the model's reasoning."""

_CHARACTERS_PER_TOKEN = 2
"""For servers that do not count tokens: digits and punctuation are about two to a token."""

_SCHEMA_REFUSALS = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}


class ModelClient:
    """A model behind an OpenAI-compatible server, its token budget, and its wish for a pause."""

    def __init__(self, settings: ForecastSettings) -> None:
        self._model = endpoint(settings.endpoint, settings.model, settings.api)
        self._max_tokens = settings.max_reply_tokens
        self._budget = TokenBudget(settings.tokens_per_hour)
        self._takes_schema = True
        self._silent_until = 0.0
        self._quoted = True

    async def forecast(
        self, client: httpx.AsyncClient, batch: Sequence[Question], token: str | None
    ) -> list[float] | ForecastFailure:
        """Return one forecast for each series; ask once more if the reply is not usable."""
        answer = await self._ask(client, batch, token)
        if isinstance(answer, UnusableReply):
            answer = await self._ask(client, batch, token)
        if isinstance(answer, UnusableReply):
            return ForecastFailure(f"{answer.message}; try a more capable model in MODEL_NAME")
        return answer

    async def _ask(
        self, client: httpx.AsyncClient, batch: Sequence[Question], token: str | None
    ) -> list[float] | UnusableReply | ForecastFailure:
        if waiting := self._must_wait():
            return waiting
        reply = await self._reply(client, batch, token)
        if isinstance(reply, ForecastFailure):
            return reply
        if reply.status != HTTPStatus.OK:
            failure = failure_of(reply, self._model, with_token=bool(token), quoted=self._quoted)
            if failure.retry_after:
                self._silent_until = time.monotonic() + failure.retry_after
            return failure
        completion = read_answer(reply.body, self._model.url, quoted=self._quoted)
        self._budget.spend(time.monotonic(), _tokens(completion, batch))
        if isinstance(completion, ForecastFailure):
            return completion
        return read_reply(completion.text, batch)

    def _must_wait(self) -> ForecastFailure | None:
        now = time.monotonic()
        if (seconds := self._silent_until - now) > 0:
            return ForecastFailure(
                f"{self._model.url} asked for a pause", retry_after=round(seconds + 0.5)
            )
        if (seconds := self._budget.wait(now)) > 0:
            return ForecastFailure(
                "the tokens of this hour are used up; ask for fewer series, or raise "
                "--tokens-per-hour",
                retry_after=round(seconds + 0.5),
            )
        return None

    async def _reply(
        self, client: httpx.AsyncClient, batch: Sequence[Question], token: str | None
    ) -> Reply | ForecastFailure:
        """Return the reply with a schema, or without one if the server does not accept it."""
        with_schema = self._takes_schema
        reply = await self._post(client, batch, token, with_schema=with_schema)
        if with_schema and isinstance(reply, Reply) and reply.status in _SCHEMA_REFUSALS:
            reply = await self._post(client, batch, token, with_schema=False)
            if isinstance(reply, Reply) and reply.status == HTTPStatus.OK:
                self._takes_schema = False
        return reply

    async def _post(
        self,
        client: httpx.AsyncClient,
        batch: Sequence[Question],
        token: str | None,
        *,
        with_schema: bool,
    ) -> Reply | ForecastFailure:
        body = request_body(self._model, batch, self._max_tokens, with_schema=with_schema)
        headers = {
            "Accept-Encoding": "identity"
        }  # so that MAX_REPLY_BYTES limits the bytes that are decoded
        if token:
            headers["Authorization"] = f"Bearer {token}"
            self._quoted = False  # from now on: the server may remember the token
        url = self._model.url
        try:
            async with client.stream("POST", url, json=body, headers=headers) as response:
                return await self._read(response)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return ForecastFailure(
                f"no answer from {url} ({type(error).__name__}); "
                "check VLLM_ENDPOINT and that the server runs"
            )

    async def _read(self, response: httpx.Response) -> Reply | ForecastFailure:
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_REPLY_BYTES:
                return ForecastFailure(
                    f"the reply of {self._model.url} is longer than {MAX_REPLY_BYTES} bytes"
                )
        wait = retry_after_seconds(response.headers.get("retry-after"), datetime.now(UTC))
        return Reply(response.status_code, bytes(body), wait)


def _tokens(completion: Completion | ForecastFailure, batch: Sequence[Question]) -> int:
    """Return the tokens that the server counted, or else an estimate."""
    if isinstance(completion, Completion) and completion.tokens > 0:
        return completion.tokens
    text = completion.text if isinstance(completion, Completion) else ""
    return (len(data(batch)) + len(text)) // _CHARACTERS_PER_TOKEN


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
