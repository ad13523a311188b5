"""Answers a request before its body has arrived, and discards the body.

Closing while a body arrives would reset the connection, and the sender would not see the answer.
"""

import asyncio
from contextlib import suppress

from starlette.types import Receive, Send

from .problem_details import ProblemResponse

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
