"""What HTTP caching says of an answer (RFC 9111): ETag, 304 while nothing changes, and Age."""

import gzip
import math
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from optimizer.service.hub.read_age import measured_age

COMPRESSION_LEVEL = 5
"""Of gzip: higher levels take twice the time for a few percent."""


@dataclass(frozen=True, slots=True)
class CachedDocument:
    """The bytes of a document, as they are and compressed. `tag`: equal for equal documents."""

    body: bytes
    compressed: bytes
    tag: str

    @classmethod
    def of(cls, body: bytes, identity: bytes | None = None) -> Self:
        """Return the document of some bytes; `identity` says what makes two of them equal."""
        tag = sha256(body if identity is None else identity).hexdigest()[:32]
        return cls(body, gzip.compress(body, COMPRESSION_LEVEL, mtime=0), tag)

    @property
    def etag(self) -> str:
        """Its ETag; weak, as it is the same with and without compression (RFC 9110, 8.8.3.3)."""
        return f'W/"{self.tag}"'

    def response(
        self, request: Request, media_type: str, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Return the response to a request: 304 if the client has an equal document."""
        said = {
            "ETag": self.etag,
            "Cache-Control": "private, no-cache",
            "Vary": "Accept-Encoding",
            **(headers or {}),
        }
        known = request.headers.get("if-none-match", "")
        if f'"{self.tag}"' in known or known.strip() == "*":
            return Response(status_code=304, headers=said)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(self.body, media_type=media_type, headers=said)
        said["Content-Encoding"] = "gzip"
        return Response(self.compressed, media_type=media_type, headers=said)


class AnswerAge:
    """ASGI middleware: says by the header Age how old the oldest part of an answer may be.

    It is the age at the beginning of the answer, so what the answer took counts. An answer that was
    read from the API server alone has none.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the header to its answer."""
        with measured_age() as age:

            async def sent(message: Message) -> None:
                if message["type"] == "http.response.start" and (old := age.seconds) is not None:
                    MutableHeaders(scope=message)["Age"] = str(math.ceil(old))
                await send(message)

            await self._app(scope, receive, sent)
