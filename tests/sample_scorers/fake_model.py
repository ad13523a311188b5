"""A stand-in for an OpenAI-compatible server."""

import asyncio
import json
import threading
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response

Ask = dict[str, Any]
Reply = tuple[int, str] | str | float | None
"""A status with a body, the text of a completion, seconds before the usual answer, or no answer."""


@dataclass
class FakeModel:
    """Answers each question with the scripted reply, or with each series' last value.

    The last reply of the script stays.
    """

    url: str = ""
    replies: list[Reply] = field(default_factory=list)
    takes_schema: bool = True
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
            return Response(reply[1], reply[0], media_type="application/json")
        if reply is None:
            await _gone(request)
            self.left.set()
        elif isinstance(reply, float):
            await asyncio.sleep(reply)
        text = reply if isinstance(reply, str) else json.dumps({"forecasts": _persisted(ask)})
        message = {"role": "assistant", "content": text}
        return JSONResponse({"choices": [{"index": 0, "message": message}]})

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

        @app.post("/v1/chat/completions")
        async def complete(request: Request) -> Response:
            return await self.model.complete(request)

        return app


def question(ask: Ask) -> dict[str, Any]:
    """Return the data that a question carries."""
    data: dict[str, Any] = json.loads(ask["messages"][-1]["content"])
    return data


def _persisted(ask: Ask) -> list[dict[str, float]]:
    return [{"id": each["id"], "value": each["values"][-1]} for each in question(ask)["series"]]


async def _gone(request: Request) -> None:
    while not await request.is_disconnected():  # noqa: ASYNC110  # no event tells of it
        await asyncio.sleep(0.02)
