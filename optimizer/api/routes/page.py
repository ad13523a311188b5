"""The route of the page: one file without secrets, which asks its reader for a token."""

import base64
from functools import lru_cache
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources.abc import Traversable
from typing import NamedTuple

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response

from optimizer.api.cached_document import CachedDocument
from optimizer.api.problem_details import refusal
from optimizer.page import PAGE
from optimizer.wire.request_problem import NOT_FOUND, RequestProblem

_ELSEWHERE = {"page": "/", "documentation": "/docs", "openapi": "/openapi.json", "fleet": "/fleet"}
_NOT_BUILT = RequestProblem(
    status=NOT_FOUND,
    reason="PageNotBuilt",
    title="The page was not built",
    detail="run `make page` in the checkout; released packages and images have the page."
    " /docs describes the API",
)
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
            return refusal(_NOT_BUILT)
        found = served_page(text)
        headers = {**_HEADERS, "Content-Security-Policy": found.policy}
        return found.document.response(request, "text/html", headers)


class ServedPage(NamedTuple):
    """A page and the Content-Security-Policy that lets its own scripts and styles run alone."""

    document: CachedDocument
    policy: str


@lru_cache(maxsize=1)
def served_page(text: bytes) -> ServedPage:
    """Return a page with a policy that names each of its inline scripts and styles by its hash."""
    inline = _InlineElements()
    inline.feed(text.decode())
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(inline.texts['script'])}",
            f"style-src {_hashes(inline.texts['style'])}",
            "img-src data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
    return ServedPage(CachedDocument.of(text), policy)


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


def _hashes(texts: list[str]) -> str:
    found = (base64.b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{item}'" for item in found) or "'none'"


def _accepts_html(request: Request) -> bool:
    accepted = request.headers.get("accept", "*/*")
    return any(item in accepted for item in ("text/html", "text/*", "*/*"))
