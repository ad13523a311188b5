"""Documents that browsers poll: compressed once, with an ETag, and 304 while nothing changes."""

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from starlette.requests import Request
from starlette.responses import Response

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
