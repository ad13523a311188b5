"""Limits the size of request bodies.

Starlette's own limit is not used: it responds in plain text if the length is announced.
"""

from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from optimizer.api.problem_details import error_response

TOO_LARGE = 413


@dataclass(slots=True)
class BodyLimit:
    """ASGI middleware: responds 413 to bodies of more than `most` bytes, announced or not."""

    app: ASGIApp
    most: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif _announced(scope) > self.most:
            await error_response(self._error())(scope, receive, send)
        else:
            await self.app(scope, self._counting(receive), send)

    def _counting(self, receive: Receive) -> Receive:
        total = 0

        async def counted() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b""))
            if total > self.most:
                raise self._error()
            return message

        return counted

    def _error(self) -> HTTPException:
        return HTTPException(TOO_LARGE, f"a body has at most {self.most} bytes")


def _announced(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else 0
