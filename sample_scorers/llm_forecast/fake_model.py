# SPDX-License-Identifier: Apache-2.0
"""A stand-in for an OpenAI-compatible server."""

import asyncio
import json
import threading
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

Ask = dict[str, Any]
Reply = tuple[int, str] | tuple[int, str, dict[str, str]] | str | float | None
"""A status with a body (and headers), the text of a completion, seconds before the usual answer,
or no answer."""


@dataclass
class FakeModel:
    """Answers each question with the scripted reply, or with each series' last value.

    The last reply of the script stays.
    """

    url: str = ""
    replies: list[Reply] = field(default_factory=list)
    takes_schema: bool = True
    tokens_used: int | None = None
    models_status: int = 200
    listed: int = 0
    asked: list[Ask] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    left: threading.Event = field(default_factory=threading.Event)

    async def complete(self, request: Request) -> Response:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._answer(await request.json(), request)
        finally:
            self.at_once -= 1

    async def _answer(self, ask: Ask, request: Request) -> Response:
        self.asked.append(ask)
        self.tokens.append(request.headers.get("authorization"))
        if "response_format" in ask and not self.takes_schema:
            return JSONResponse({"error": "response_format is not supported"}, 400)
        reply = self._next()
        if isinstance(reply, tuple):
            headers = reply[2] if len(reply) == 3 else None
            return Response(reply[1], reply[0], headers, media_type="application/json")
        if reply is None:
            await _gone(request)
            self.left.set()
        elif isinstance(reply, float):
            await asyncio.sleep(reply)
        text = reply if isinstance(reply, str) else json.dumps({"forecasts": _persisted(ask)})
        message = {"role": "assistant", "content": text}
        choice = {"text": text} if "prompt" in ask else {"message": message}
        usage = {} if self.tokens_used is None else {"usage": {"total_tokens": self.tokens_used}}
        return JSONResponse({"choices": [{"index": 0, "finish_reason": "stop", **choice}], **usage})

    def _next(self) -> Reply:
        if not self.replies:
            return 0.0
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@dataclass
class Server:
    """One server for several models; the model that was set last answers."""

    model: FakeModel = field(default_factory=FakeModel)

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/v1/models")
        async def models() -> Response:
            self.model.listed += 1
            return JSONResponse({"data": [{"id": "tiny"}]}, self.model.models_status)

        @app.post("/v1/completions")
        @app.post("/v1/chat/completions")
        async def complete(request: Request) -> Response:
            return await self.model.complete(request)

        return app


def question(ask: Ask) -> dict[str, Any]:
    """Return the data that a question carries."""
    text = ask["messages"][-1]["content"] if "messages" in ask else ask["prompt"].split("\n\n")[1]
    data: dict[str, Any] = json.loads(text)
    return data


def _persisted(ask: Ask) -> list[dict[str, float]]:
    return [
        {"id": each["id"], "value": [value for value in each["values"] if value is not None][-1]}
        for each in question(ask)["series"]
    ]


async def _gone(request: Request) -> None:
    while not await request.is_disconnected():  # noqa: ASYNC110  # no event tells of it
        await asyncio.sleep(0.02)
