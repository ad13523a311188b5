"""Client of a language model: one prompt over the completion API of its server."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus

import httpx

from .completion_api import (
    Completion,
    ForecastFailure,
    Reply,
    endpoint,
    failure_of,
    read_answer,
    request_body,
    retry_after_seconds,
)
from .prompt import UnusableReply, data, read_reply
from .question import Question
from .settings import ForecastSettings
from .token_budget import TokenBudget

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
