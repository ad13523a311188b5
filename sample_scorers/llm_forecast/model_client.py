"""Client of a language model: one prompt over the OpenAI chat completions API.

vLLM, llama.cpp, Ollama and others have the same API.

Source: https://platform.openai.com/docs/api-reference/chat
"""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from .prompt import SCHEMA, Points, UnusableReply, messages, read_reply

MAX_REPLY_BYTES = 256 * 1024
"""Bytes of a reply: many times a forecast of BATCH_SIZE series with the model's reasoning."""

_MAX_EXCERPT = 200
"""Characters of a server's error that a message quotes."""
_SCHEMA_REFUSALS = {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}


@dataclass(frozen=True)
class ForecastFailure:
    """Why the model gave no forecast, and what to do."""

    message: str


class _Message(BaseModel):
    content: str


class _Choice(BaseModel):
    message: _Message


class _Completion(BaseModel):
    choices: list[_Choice]


@dataclass(frozen=True)
class _Reply:
    status: int
    body: bytes


class ModelClient:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(self, endpoint: str, model: str) -> None:
        self._url = completions_url(endpoint)
        self._model = model
        self._takes_schema = True

    async def forecast(
        self, client: httpx.AsyncClient, batch: Sequence[Points], token: str | None
    ) -> list[float] | ForecastFailure:
        """Return one forecast for each series; ask once more if the reply is not usable."""
        answer = await self._ask(client, batch, token)
        if isinstance(answer, UnusableReply):
            answer = await self._ask(client, batch, token)
        if isinstance(answer, UnusableReply):
            return ForecastFailure(f"{answer.message}; try a more capable model in MODEL_NAME")
        return answer

    async def _ask(
        self, client: httpx.AsyncClient, batch: Sequence[Points], token: str | None
    ) -> list[float] | UnusableReply | ForecastFailure:
        with_schema = self._takes_schema
        reply = await self._post(client, batch, token, with_schema=with_schema)
        if with_schema and isinstance(reply, _Reply) and reply.status in _SCHEMA_REFUSALS:
            reply = await self._post(client, batch, token, with_schema=False)
            if isinstance(reply, _Reply) and reply.status == HTTPStatus.OK:
                self._takes_schema = False
        if isinstance(reply, ForecastFailure):
            return reply
        if reply.status != HTTPStatus.OK:
            return ForecastFailure(self._refusal(reply, token))
        try:
            completion = _Completion.model_validate_json(reply.body)
            text = completion.choices[0].message.content
        except (ValidationError, IndexError):
            return ForecastFailure(
                f"{self._url} did not answer with a chat completion; check VLLM_ENDPOINT"
            )
        return read_reply(text, len(batch))

    async def _post(
        self,
        client: httpx.AsyncClient,
        batch: Sequence[Points],
        token: str | None,
        *,
        with_schema: bool,
    ) -> _Reply | ForecastFailure:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": messages(batch),
            "temperature": 0,
        }
        if with_schema:
            schema = {"name": "forecasts", "schema": SCHEMA, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        headers = {
            "Accept-Encoding": "identity"
        }  # so that MAX_REPLY_BYTES limits the bytes that are decoded
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            async with client.stream("POST", self._url, json=body, headers=headers) as response:
                return await self._read(response)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return ForecastFailure(
                f"no answer from {self._url} ({type(error).__name__}); "
                "check VLLM_ENDPOINT and that the server runs"
            )

    async def _read(self, response: httpx.Response) -> _Reply | ForecastFailure:
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MAX_REPLY_BYTES:
                return ForecastFailure(
                    f"the reply of {self._url} is longer than {MAX_REPLY_BYTES} bytes"
                )
        return _Reply(response.status_code, bytes(body))

    def _refusal(self, reply: _Reply, token: str | None) -> str:
        if reply.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            reaction = "refused the token" if token else "requires a token"
            return (
                f"{self._url} {reaction} ({reply.status}); check the Secret that the "
                "DynamicScorer's spec.scoring.auth.tokenSecretRef names"
            )
        said = reply.body.decode("utf-8", "replace")
        if token:
            said = said.replace(token, "[token]")
        return (
            f"{self._url} answered {reply.status} for model {self._model}: "
            f"{' '.join(said.split())[:_MAX_EXCERPT]}"
        )


def completions_url(endpoint: str) -> str:
    """Complete a server's base URL: with or without `/v1`, or the whole path."""
    path = urlsplit(endpoint).path.rstrip("/")
    base = endpoint.rstrip("/")
    if path.endswith("/chat/completions"):
        return base
    return f"{base}/chat/completions" if path else f"{base}/v1/chat/completions"
