"""Writes docs/reference/rest-api.md from the OpenAPI document of the optimizer.

Run `make references` after a change of a route.
"""

from collections.abc import Iterator
from typing import Any

from dsf.kube.embedded.hub import EmbeddedHub
from optimizer.api.app import create_app
from optimizer.service import Optimizer
from tests.repository import ROOT

PAGE = ROOT / "docs/reference/rest-api.md"

_HEAD = """# The optimizer's REST API

A reference for callers, written from the API's OpenAPI document by `make references`. A running
optimizer serves that document at `/openapi.json`, and a page to try it at `/docs`. Fields of
requests for plans are in [the optimizer](optimizer.md), rights and tokens in
[access](optimizer-access.md). Errors are problem details (RFC 9457,
`application/problem+json`), with `title`, `status`, `detail`, and `reason`.
"""
_ERRORS = """## Statuses of errors

| status | when |
|---|---|
| 400, 422 | the request is not valid; the answer names the field, and near names |
| 401 | no token, or one that the hub does not accept |
| 403 | the caller lacks a right on the hub, or the server is read-only |
| 404 | no such plan, rollout or path |
| 405 | the path has no such method |
| 408 | the body did not arrive in time |
| 409 | the hub is not as the caller saw it, or somebody else writes; the answer says what to do |
| 413 | the body is too large |
| 421 | the Host header names none of the allowed hosts |
| 429 | too many requests of one caller, or too many plans at once; with `Retry-After` |
| 503 | the hub can't be reached or refused a request, or the server is busy |
"""


def page() -> str:
    """Return the page."""
    app = create_app(Optimizer(EmbeddedHub(), now=lambda: "2026-01-01T00:00:00Z"))
    return "\n".join((_HEAD, *_routes(app.openapi()), _ERRORS))


def _routes(document: dict[str, Any]) -> Iterator[str]:
    yield "| request | what it does | parameters |\n|---|---|---|"
    for path, methods in sorted(document["paths"].items()):
        for method, route in methods.items():
            parameters = ", ".join(
                f"`{item['name']}`" for item in route.get("parameters", ()) if item["in"] == "query"
            )
            said = route.get("description") or route.get("summary", "")
            first = said.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            yield f"| `{method.upper()} {path}` | {first} | {parameters} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
