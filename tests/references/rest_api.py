"""Writes docs/reference/rest-api.md from the OpenAPI document of the optimizer.

Run `make references` after a change of a route.
"""

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from dsf.kube.embedded.hub import EmbeddedHub
from optimizer.api.app import create_app
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request_problem import ProblemKind
from tests.repository import ROOT

CONSTRAINTS = {
    "const": "`{}`",
    "enum": "one of {}",
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "length at least {}",
    "maxLength": "length at most {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} entries",
}
"""What keywords of JSON Schema say of a value; patterns are those of names.md."""

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
    parts = (_routes(document), _fields(document), _errors(document), _reasons())
    return "\n".join((_HEAD, *chain.from_iterable(parts)))


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


def _fields(document: dict[str, Any]) -> Iterator[str]:
    """Yield what each field of each request may be, and what it is if it is not stated."""
    yield "## Fields of requests\n\nThe bounds of each field, and its value where it is left out.\n"
    yield "| schema | field | default | constraints |\n|---|---|---|---|"
    schemas = document["components"]["schemas"]
    for name in sorted(_of_requests(document)):
        required = schemas[name].get("required", ())
        for field, stated in schemas[name].get("properties", {}).items():
            default = "required" if field in required else f"`{json.dumps(stated.get('default'))}`"
            yield f"| {name} | `{field}` | {default} | {', '.join(_constraints(stated))} |"
    yield ""


def _of_requests(document: dict[str, Any]) -> set[str]:
    """Return the names of the schemas of all request bodies, with those that they refer to."""
    bodies = (
        route["requestBody"]
        for methods in document["paths"].values()
        for route in methods.values()
        if "requestBody" in route
    )
    names, left = set[str](), list(_references(list(bodies)))
    while left:
        name = left.pop()
        if name not in names:
            names.add(name)
            left += _references(document["components"]["schemas"][name])
    return names


def _references(schema: Any) -> list[str]:
    return re.findall(r"#/components/schemas/(\w+)", json.dumps(schema))


def _constraints(schema: dict[str, Any], where: str = "") -> Iterator[str]:
    """Yield the bounds of a value, of what it may be instead, and of its items."""
    for key, words in CONSTRAINTS.items():
        value = schema.get(key)
        if key == "enum" and value:
            value = ", ".join(f"`{item}`" for item in filter(None, value))
        if value is not None:
            yield where + words.format(f"{value:.15g}" if isinstance(value, float) else value)
    for each in schema.get("anyOf", ()):
        yield from _constraints(each, where)
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            yield from _constraints(schema[part], "each ")


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


def _reasons() -> Iterator[str]:
    """Yield what each reason of a refusal says; one reason may have several titles."""
    titles = dict[tuple[int, str], list[str]]()
    for kind in set(ProblemKind) - {ProblemKind.CALLER_GONE}:  # nobody is there to read that one
        status, reason, title = kind.value
        titles.setdefault((status, reason), []).append(title)
    yield "## Reasons of refusals\n\nA wrong field may have another reason, with the status 422.\n"
    yield "| status | `reason` | title |\n|---|---|---|"
    for (status, reason), said in sorted(titles.items()):
        yield f"| {status} | `{reason}` | {', or: '.join(sorted(said))} |"
    yield ""
