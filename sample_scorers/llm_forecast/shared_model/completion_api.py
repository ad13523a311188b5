# SPDX-License-Identifier: Apache-2.0
"""The two completion APIs of OpenAI-compatible servers: requests, and what answers mean. Pure.

vLLM, llama.cpp, Ollama and others have both. Chat completions apply the model's chat template;
plain completions are for models and servers without one.

Source: https://platform.openai.com/docs/api-reference/chat and .../completions
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from ..score import INSTRUCTION, Question, data
from .prompt import SCHEMA

CompletionApi = Literal["chat", "completions"]
PATHS: dict[CompletionApi, str] = {"chat": "/chat/completions", "completions": "/completions"}

MOST_RETRY_SECONDS = 3600
"""An agent waits an hour at most."""

_MAX_EXCERPT = 200
"""Characters of a server's text that a message quotes."""

_FILTERED = "a content filter of the server stopped it"
_BUSY = {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
_UNAUTHORIZED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


@dataclass(frozen=True)
class ForecastFailure:
    """Why the model gave no forecast, what to do, and the seconds to wait if they are known."""

    message: str
    retry_after: int | None = None


@dataclass(frozen=True)
class Reply:
    """A complete answer, and the seconds to wait if it names them."""

    status: int
    body: bytes
    retry_after: int | None


@dataclass(frozen=True)
class Completion:
    """The text of a reply, and the tokens of prompt and reply."""

    text: str
    tokens: int


@dataclass(frozen=True)
class ModelEndpoint:
    """A model on a server: which API, the URLs of that API and of the list of models."""

    api: CompletionApi
    url: str
    models_url: str
    model: str


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Usage(BaseModel):
    total_tokens: int


class _Answer(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None


def endpoint(url: str, model: str, api: CompletionApi = "chat") -> ModelEndpoint:
    """Complete the URL of a server: its base, with or without `/v1`, or the path of its API."""
    base = url.rstrip("/")
    for named, path in PATHS.items():
        if base.endswith(path):
            api, base = named, base.removesuffix(path)
            break
    else:
        base = base if urlsplit(base).path else f"{base}/v1"
    return ModelEndpoint(api, base + PATHS[api], f"{base}/models", model)


def request_body(
    model: ModelEndpoint, batch: Sequence[Question], max_tokens: int, *, with_schema: bool
) -> dict[str, Any]:
    """Return the body that asks for the forecasts of a batch."""
    body: dict[str, Any] = {"model": model.model, "temperature": 0, "max_tokens": max_tokens}
    if model.api == "chat":
        system, user = ({"role": "system"}, {"role": "user"})
        body["messages"] = [system | {"content": INSTRUCTION}, user | {"content": data(batch)}]
    else:
        body["prompt"] = f"{INSTRUCTION}\n\n{data(batch)}\n\n"
    if with_schema:
        schema = {"name": "forecasts", "schema": SCHEMA, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def read_answer(body: bytes, url: str, *, quoted: bool) -> Completion | ForecastFailure:
    """Return the text of an answer with status 200, or why there is none.

    `quoted`: the server was never sent a token, so that a message may repeat its words.
    """
    try:
        answer = _Answer.model_validate_json(body)
        choice = answer.choices[0]
    except (ValidationError, IndexError):
        return ForecastFailure(f"{url} did not answer with a completion; check VLLM_ENDPOINT")
    message = choice.message or _Message(content=choice.text)
    if message.refusal or choice.finish_reason == "content_filter":
        quote = _quote(message.refusal, quoted=quoted) if message.refusal else _FILTERED
        return ForecastFailure(f"the model refused to forecast: {quote}")
    if choice.finish_reason == "length":
        return ForecastFailure("the model's reply was cut off; raise --max-reply-tokens")
    if message.content is None:
        return ForecastFailure(f"{url} answered without text; check MODEL_NAME and --api")
    tokens = answer.usage.total_tokens if answer.usage else 0
    return Completion(message.content, tokens)


def failure_of(
    reply: Reply, model: ModelEndpoint, *, with_token: bool, quoted: bool
) -> ForecastFailure:
    """Return what an answer with another status means.

    `quoted`: the server was never sent a token, so that a message may repeat its words.
    """
    status = reply.status
    if status in _UNAUTHORIZED:
        reaction = "refused the token" if with_token else "requires a token"
        return ForecastFailure(
            f"{model.url} {reaction} ({status}); check the Secret that the DynamicScorer's "
            "spec.scoring.auth.tokenSecretRef names"
        )
    text = reply.body.decode("utf-8", "replace")
    quote = _quote(text, quoted=quoted)
    if "content_filter" in text or "content_policy" in text:
        return ForecastFailure(f"the model refused to forecast: {quote}")
    message = f"{model.url} answered {status} for model {model.model}: {quote}"
    return ForecastFailure(message, reply.retry_after if status in _BUSY else None)


def retry_after_seconds(header: str | None, now: datetime) -> int | None:
    """Return the seconds of a Retry-After header (RFC 9110, section 10.2.3), at most an hour."""
    if header is None:
        return None
    text = header.strip()
    if text.isdecimal():
        return min(int(text[:10]), MOST_RETRY_SECONDS)
    try:
        seconds = (parsedate_to_datetime(text) - now).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(0, round(seconds)), MOST_RETRY_SECONDS)


def _quote(text: str, *, quoted: bool) -> str:
    if not quoted:
        return "its words are not repeated, because its server was sent a token"
    return " ".join(text.split())[:_MAX_EXCERPT]
