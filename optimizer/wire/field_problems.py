"""Turns what is wrong with a request into fields and messages that never echo what was sent."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from optimizer.wire.request import REQUEST_FIELDS, OptimizeRequest
from optimizer.wire.request_problem import UNPROCESSABLE, FieldProblem, RequestProblem
from optimizer.wire.spelling_suggestions import KnownFields, suggested_field

_SOURCES = ("body", "query", "path")
_NO_OBJECT = "must be an object"
_NO_BODY = "must be a JSON object, sent with Content-Type: application/json"
_MESSAGES = {
    "json_invalid": "not valid JSON",
    "extra_forbidden": "unknown field",
    "model_attributes_type": _NO_OBJECT,
    "model_type": _NO_OBJECT,
    "tuple_type": "must be a list",
    "too_short": "must list at least {min_length}",
    "too_long": "must list at most {max_length}",
}
_MEMBER = re.compile(r"Value error, (\w+): (.+)", re.DOTALL)


def field_problems(
    found: Iterable[Mapping[str, Any]], known: KnownFields | None = None
) -> tuple[FieldProblem, ...]:
    """Return one problem per wrong field; with `known` fields an unknown one says what it may mean.

    `found` is what `ValidationError.errors()` returns. An error of a list or object that has a
    wrong member is left out: it only repeats the member's.
    """
    errors = list(found)
    places = {tuple(item["loc"]) for item in errors}
    inner = {place[:length] for place in places for length in range(len(place))}
    return tuple(
        FieldProblem(_field(item), _message(item, known or {}))
        for item in errors
        if tuple(item["loc"]) not in inner
    )


def validated_request(body: Mapping[str, Any]) -> OptimizeRequest | RequestProblem:
    """Return the request of a body, or the problem that names each wrong field."""
    try:
        return OptimizeRequest.model_validate(body)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        return invalid_request(field_problems(found, REQUEST_FIELDS))


def dry_request(body: Mapping[str, Any]) -> OptimizeRequest | RequestProblem:
    """Return the request of a body for a plan that is only shown; a problem if it wants a write."""
    request = validated_request({"dryRun": True, **body})
    if isinstance(request, RequestProblem) or request.dry_run:
        return request
    message = "this only plans; leave it out, and apply the plan that is shown by its digest"
    return invalid_request((FieldProblem("dryRun", message),))


def invalid_request(problems: tuple[FieldProblem, ...]) -> RequestProblem:
    """Return the problem of a request some of whose fields are wrong."""
    return RequestProblem(
        status=UNPROCESSABLE,
        reason="InvalidRequest",
        title="The request is not valid",
        detail="; ".join(f"{item.field}: {item.message}" for item in problems[:5]),
        errors=problems,
    )


def _field(item: Mapping[str, Any]) -> str:
    if item["type"] == "json_invalid":
        return "body"
    parts = _location(item)
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    member = _of_member(item)
    return (text + (f".{member[1]}" if member else "")).lstrip(".") or "body"


def _location(item: Mapping[str, Any]) -> Sequence[str | int]:
    location: Sequence[str | int] = item["loc"]
    if item["type"] == "extra_forbidden" and len(location) == 1:  # a field of that name
        return location
    return location[1:] if location and location[0] in _SOURCES else location


def _message(item: Mapping[str, Any], known: KnownFields) -> str:
    if item["type"] == "extra_forbidden" and item["loc"][0] != "query":
        near = suggested_field(_location(item), known)
        if near == item["loc"][-1]:
            return "not taken here; say it in an annotation, or to POST /optimize"
        return f"unknown field; did you mean {near}?" if near else "unknown field"
    message = _MESSAGES.get(item["type"])
    if message == _NO_OBJECT and tuple(item["loc"]) == ("body",):  # of an HTTP request
        return _NO_BODY
    if message is None:
        member = _of_member(item)
        return member[2] if member else str(item["msg"]).removeprefix("Value error, ")
    return message.format_map(item.get("ctx", {}))


def _of_member(item: Mapping[str, Any]) -> re.Match[str] | None:
    """Return the member that the error of a whole object names first, and what is said of it."""
    if item["type"] != "value_error" or not isinstance(item.get("input"), Mapping):
        return None
    return _MEMBER.fullmatch(str(item["msg"]))
