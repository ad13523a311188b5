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
requests for plans are in [constraints and preferences](optimizer.md), rights and tokens in
[access](optimizer-access.md). Errors are problem details (RFC 9457,
`application/problem+json`), with `title`, `status`, `detail`, and `reason`.
"""


def page() -> str:
    """Return the page."""
    app = create_app(Optimizer(EmbeddedHub(), now=lambda: "2026-01-01T00:00:00Z"))
    document = app.openapi()
    return "\n".join((_HEAD, *_routes(document), *_errors(document)))


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


def _errors(document: dict[str, Any]) -> Iterator[str]:
    """Yield what each status of an error says, as the routes that have it document it."""
    said = {
        status: response["description"].rstrip(".")
        for methods in document["paths"].values()
        for route in methods.values()
        for status, response in route["responses"].items()
        if status >= "400"
    }
    yield "## Statuses of errors\n\n| status | meaning |\n|---|---|"
    yield from (f"| {status} | {said[status]} |" for status in sorted(said))
    yield ""
