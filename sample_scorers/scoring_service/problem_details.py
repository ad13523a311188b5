# SPDX-License-Identifier: Apache-2.0
"""Errors as RFC 9457 problem details: what was wrong, where, and what to do.

A request can be refused before its body has arrived.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Send

MAX_ERRORS = 10
"""Errors that one response lists; further ones are only counted."""

_MAX_TEXT = 500
"""Characters of one text; it may quote the input."""

# FastAPI's own texts for these statuses do not say what was wrong and what to do.
_IN_OUR_WORDS = {
    400: "the body is not JSON in UTF-8, is nested too deep, or has a number that is too long",
    404: "there is nothing at this path; /docs lists all paths",
}


class ProblemResponse(JSONResponse):
    """A response of the problem details media type."""

    media_type = "application/problem+json"


def problem(
    status: int,
    detail: str,
    errors: Sequence[Mapping[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> ProblemResponse:
    """Return a problem response; `errors` are {pointer, detail}, as in the example of RFC 9457."""
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail[:_MAX_TEXT],
    }
    if errors:
        body["errors"] = list(errors)
    return ProblemResponse(body, status, headers)


def answer_with_problems(app: FastAPI) -> None:
    """Answer every error of `app` with a problem."""
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(HTTPException)(_refused)
    app.exception_handler(Exception)(_broken)


def _invalid(_request: Request, error: RequestValidationError) -> ProblemResponse:
    if isinstance(error.body, bytes):
        return problem(415, "the body must be JSON; send it with Content-Type: application/json")
    found = error.errors()
    if found[0]["type"] == "json_invalid":
        return problem(400, f"the body is not JSON: {found[0]['ctx']['error']}")
    errors = [
        {"pointer": _pointer(each["loc"][1:]), "detail": each["msg"]} for each in found[:MAX_ERRORS]
    ]
    where = _dotted(found[0]["loc"][1:]) or "the body"
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return problem(422, f"{where}: {found[0]['msg']}{more}", errors)


def _refused(_request: Request, error: HTTPException) -> ProblemResponse:
    detail = _IN_OUR_WORDS.get(error.status_code, error.detail)
    return problem(error.status_code, detail, headers=error.headers)


def _broken(_request: Request, _error: Exception) -> ProblemResponse:
    return problem(500, "the scorer failed; its log has the details")


def _pointer(location: Sequence[str | int]) -> str:
    """Return a location as a JSON Pointer (RFC 6901) in a URI fragment."""
    steps = (str(step)[:_MAX_TEXT].replace("~", "~0").replace("/", "~1") for step in location)
    return "#" + "".join(f"/{step}" for step in steps)


def _dotted(location: Sequence[str | int]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "".join(steps).removeprefix(".")


_DISCARDED_BYTES = 32 * 1024 * 1024
_DISCARD_SECONDS = 10.0
"""What is still read of a body that was refused. Agents send at most 32 MiB."""


async def refuse(answer: ProblemResponse, receive: Receive, send: Send) -> None:
    """Send `answer` at once, then read the body to its end or a limit without keeping it."""
    start = {
        "type": "http.response.start",
        "status": answer.status_code,
        "headers": answer.raw_headers,
    }
    await send(start)
    await send({"type": "http.response.body", "body": answer.body, "more_body": True})
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            await _discard(receive)
    await send({"type": "http.response.body", "body": b""})


async def _discard(receive: Receive) -> None:
    size, more = 0, True
    while more and size <= _DISCARDED_BYTES:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
