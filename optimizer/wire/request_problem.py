"""A request that can't be fulfilled, as a value with the fields of RFC 9457.

Messages about wrong fields never echo what was sent, and suggest the known field that an unknown
one resembles.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, get_args

from pydantic import BaseModel, Field, ValidationError

from dsf.api.untrusted_text import UntrustedName, one_line
from optimizer.wire.request import OptimizeRequest

UNAUTHORIZED = 401
FORBIDDEN = 403
NOT_FOUND = 404
UNPROCESSABLE = 422
CONFLICT = 409
TOO_MANY_REQUESTS = 429
CLIENT_CLOSED_REQUEST = 499
"""The number of nginx; it is never received."""
UNAVAILABLE = 503


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One wrong field."""

    field: Annotated[str, Field(examples=["clusters[0].name"])]
    message: str
    available: Annotated[tuple[str, ...], Field(description="What exists instead.")] = ()

    def __post_init__(self) -> None:
        """Give each text the type by which a message shows it."""
        object.__setattr__(self, "field", one_line(self.field))
        object.__setattr__(self, "message", one_line(self.message))
        object.__setattr__(self, "available", tuple(map(UntrustedName, self.available)))


@dataclass(frozen=True, slots=True)
class RequestProblem:
    """Why nothing was done: `reason` is CamelCase, `status` the HTTP status that fits it.

    Reasons: Unauthorized (401), Forbidden (403), OptimizerForbidden (403), ReadOnly (403),
    UnknownNamespace (404), TooManyRequests (429), UnknownName (422), LowerIsBetter (422),
    TooManyPlaces (422), TooManyScores (422), NotGenerated (409), StalePlan (409), PlanChanged
    (409), AnotherWriter (409), RollbackRefused (409), NoEarlierPlan (409), UnusableRecord (409),
    PlanNotRecorded (409), UnknownPlan (404), RolloutInProgress (409), RolloutEnded (409),
    AlreadyTurningBack (409), StepwiseNeedsRecord (409), NoRollout (404), StepwiseNeedsOwnRights
    (422), TooManyMoves (422), RolloutTooLarge (422), NoPlacementOptimization (404),
    NotAwaitingApproval (409), StaleApproval (409), ContradictoryConstraints (422),
    UnknownConstraint (422), ConstraintNotWritten (409), Busy (429), CallerGone (499), HubRefused
    (503).
    """

    status: int
    reason: str
    title: str
    detail: str
    errors: tuple[FieldProblem, ...] = ()

    def __post_init__(self) -> None:
        """Quote what others wrote in the detail."""
        object.__setattr__(self, "detail", one_line(self.detail))


def optimizer_forbidden(
    missing: str, written: str, errors: tuple[FieldProblem, ...] = ()
) -> RequestProblem:
    """Return the problem that the hub forbids something to the optimizer itself.

    `missing`: the rights that it lacks; `written`: what became of the writes.
    """
    return RequestProblem(
        status=FORBIDDEN,
        reason="OptimizerForbidden",
        title="The optimizer itself lacks a right",
        detail=f"the optimizer may not: {missing}; {written}. Grant its service account"
        " this right with a Role and a RoleBinding, or a ClusterRole and a ClusterRoleBinding",
        errors=errors,
    )


CALLER_GONE = RequestProblem(
    status=CLIENT_CLOSED_REQUEST,
    reason="CallerGone",
    title="The caller did not wait",
    detail="nothing was written, because the caller disconnected",
)


MAX_COMPARED_LENGTH = 64  # of a name that is compared with others

KnownFields = Mapping[str, Sequence[str]]
"""By the field that holds an object (empty for the whole), the fields that it can have."""


def known_fields(model: type[BaseModel]) -> dict[str, list[str]]:
    """Return the fields of a model and of those that it holds, by their names on the wire."""
    found: dict[str, list[str]] = {"": _names(model)}
    for name, inner in _inner(model):
        below = known_fields(inner)
        found = {**below, **found, name: below.pop("")}
    return found


def suggested_field(location: Sequence[str | int], known: KnownFields) -> str | None:
    """Return the known field most similar to the unknown one at a location; None if none is."""
    *outer, name = (part for part in location if isinstance(part, str))
    possible = {field.lower(): field for field in known.get(outer[-1] if outer else "", ())}
    near = get_close_matches(name[:MAX_COMPARED_LENGTH].lower(), possible, n=1)
    return possible[near[0]] if near else None


def _names(model: type[BaseModel]) -> list[str]:
    fields = model.model_fields.items()
    return [field.serialization_alias or field.alias or name for name, field in fields]


def _inner(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    for name, field in zip(_names(model), model.model_fields.values(), strict=True):
        yield from ((name, inner) for inner in _models(field.annotation))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation speaks of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


REQUEST_FIELDS = known_fields(OptimizeRequest)
"""The fields of a request and of its parts, from which suggestions for misspelt fields come."""

_SOURCES = ("body", "query", "path")
_NO_OBJECT = "must be an object"
_NO_BODY = "must be a JSON object, sent with Content-Type: application/json"
_MESSAGES = {
    "json_invalid": "not valid JSON: {error}",
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
    detail = "; ".join(f"{item.field}: {item.message}" for item in problems[:5])
    return RequestProblem(
        UNPROCESSABLE, "InvalidRequest", "The request is not valid", detail, problems
    )


def refused_fields(reason: str, title: str, *problems: FieldProblem) -> RequestProblem:
    """Return the problem of a request whose fields ask for what can't be done; all are told."""
    detail = "; ".join(item.message for item in problems)
    return RequestProblem(UNPROCESSABLE, reason, title, detail, problems)


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
