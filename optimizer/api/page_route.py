"""The route of the page, and what keeps every page of the server out of frames.

The page is one file without secrets, which asks its reader for a token.
"""

import base64
from functools import lru_cache
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from fastapi import FastAPI, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from optimizer.api.http_caching import CachedDocument
from optimizer.api.problem_details import refusal
from optimizer.wire.request_problem import ProblemKind

PAGE = files("optimizer") / "page" / "dist" / "index.html"
"""The page, built by `make page` into one file; a checkout where that never ran has none."""

_ELSEWHERE = {"page": "/", "documentation": "/docs", "openapi": "/openapi.json", "fleet": "/fleet"}
NOT_BUILT = ProblemKind.PAGE_NOT_BUILT.because(
    "run `make page` in the checkout; released packages and images have it"
)
_POLICY = "Content-Security-Policy"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def add_page_route(app: FastAPI, page: Traversable = PAGE) -> None:
    """Add the route of a page, which is read when it is asked for."""

    @app.get("/", include_in_schema=False)
    def index(request: Request) -> Response:
        if not _accepts_html(request):
            return JSONResponse(_ELSEWHERE)
        try:
            text = page.read_bytes()
        except OSError:
            return refusal(NOT_BUILT)
        found = served_page(text)
        headers = {**_HEADERS, _POLICY: found.policy}
        return found.document.response(request, "text/html", headers)


class PagePolicy:
    """Adds a Content-Security-Policy to each page that has none, such as the API's documentation.

    Such a page runs its own inline scripts, and files of this server. No page is shown in a frame,
    where a foreign page could lead the clicks of its reader.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        start: Message | None = None
        body = bytearray()

        async def sending(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                headers = Headers(raw=message["headers"])
                page = headers.get("content-type", "").startswith("text/html")
                start = message if page and _POLICY not in headers else None
            if start is None:
                await send(message)
                return
            body.extend(message.get("body", b""))
            if message["type"] == "http.response.body" and not message.get("more_body"):
                policy = content_policy(bytes(body), "'self'")
                MutableHeaders(raw=start["headers"]).update({**_HEADERS, _POLICY: policy})
                await send(start)
                await send({**message, "body": bytes(body)})

        await self._app(scope, receive, sending)


class ServedPage(NamedTuple):
    """A page and the Content-Security-Policy that lets its own scripts and styles run alone."""

    document: CachedDocument
    policy: str


@lru_cache(maxsize=1)
def served_page(text: bytes) -> ServedPage:
    """Return a page with a policy that lets nothing but its inline scripts and styles run."""
    return ServedPage(CachedDocument.of(text), content_policy(text))


@lru_cache(maxsize=4)
def content_policy(text: bytes, files: str = "") -> str:
    """Return a policy that names each inline script and style of a page by its hash.

    `files`: where scripts, styles and images may be loaded from besides.
    """
    inline = _InlineElements()
    inline.feed(text.decode())
    # What loads files sets styles by script, which has no hash, and starts workers from memory.
    styles = f"{files} 'unsafe-inline'" if files else _hashes(inline.texts["style"], files)
    workers = "blob:" if files else "'none'"
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(inline.texts['script'], files)}",
            f"style-src {styles}",
            f"img-src data: {files}",
            f"worker-src {workers}",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


class _InlineElements(HTMLParser):
    """Collects the texts of scripts and styles; a browser hashes exactly what stands between."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - the parser's signature
        self._inside = tag
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - the parser's signature
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.texts:
            self.texts[self._inside][-1] += data


def _hashes(texts: list[str], files: str) -> str:
    """Return the sources of a directive: where files are loaded from, and the hash of each text."""
    digests = (base64.b64encode(sha256(text.encode()).digest()) for text in texts if text)
    hashes = " ".join(f"'sha256-{item.decode()}'" for item in digests)
    return f"{files} {hashes}".strip() or "'none'"


def _accepts_html(request: Request) -> bool:
    accepted = request.headers.get("accept", "*/*")
    return any(item in accepted for item in ("text/html", "text/*", "*/*"))
