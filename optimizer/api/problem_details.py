"""Errors of the HTTP API as `application/problem+json`.

Source: RFC 9457. A response names the field of a wrong value and never echoes the value, which may
not be valid text.
"""

from collections.abc import Callable, Iterable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from dsf.api.untrusted_text import MESSAGE_LIMIT, joined, quoted
from dsf.kube.errors import KubeError, Unreachable
from dsf.runtime.problem_details import MEDIA_TYPE, TYPE, problem_type
from optimizer.operations.access.caller import CallerGone
from optimizer.operations.access.rights import lacking_own_right
from optimizer.wire.request_problem import (
    CALLER_GONE,
    TOO_MANY_REQUESTS,
    UNAVAILABLE,
    FieldProblem,
    RequestProblem,
    field_problems,
    known_fields,
)

RETRY_AFTER_SECONDS = 5
"""Seconds to wait before a retry, when the hub could not be read or the optimizer was busy."""

_BEARER = "A token that the hub verifies, such as that of `kubectl create token`."
_INTERNAL = 500
_EVERYWHERE = (400, 403, 408, 413, 421, 422, 503)
_OF_CALLERS = (401, 429)
"""What only paths with a token answer: the others count no requests."""
_TEMPORARY = frozenset({TOO_MANY_REQUESTS, UNAVAILABLE})
RETRY_LATER = {"Retry-After": str(RETRY_AFTER_SECONDS)}
_TITLES = {
    400: ("MalformedRequest", "The request can't be read"),
    408: ("RequestTimeout", "The request did not arrive in time"),
    404: ("NotFound", "There is nothing at this path"),
    405: ("MethodNotAllowed", "This path has other methods"),
    413: ("BodyTooLarge", "The body is too large"),
    503: ("TooManyConnections", "The optimizer is busy"),
    403: ("ForbiddenOrigin", "A web page of another origin asks"),
    421: ("MisdirectedRequest", "This is another server"),
}


class ProblemDetails(BaseModel):
    """An error (RFC 9457); `reason` is the last part of `type` in CamelCase."""

    type: str = Field(examples=[f"{TYPE}unknown-name"])
    title: str
    status: int
    detail: str
    reason: str = Field(examples=["UnknownName"])
    errors: list[FieldProblem] = []


def documented(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses of some HTTP codes, besides those that `describe` adds."""
    texts = {
        400: "The request is not HTTP, or its body is not JSON in UTF-8.",
        401: "The caller is not authenticated.",
        403: "The caller, or the optimizer itself, lacks a right on the hub; `detail` says which."
        " Or a page of another origin asks.",
        404: "The namespace does not exist on the hub, or the plan is not recorded.",
        408: "The request did not arrive in time.",
        409: "Objects on the hub, or another writer, prevent it.",
        413: "The body is too large.",
        421: "The Host header names another server.",
        422: "A field is wrong, or names an object that does not exist; see `errors`.",
        429: "The caller sends too many requests, or too many plans or streams are open at once.",
        503: "The hub can't be reached, or refused a request, or all connections are in use.",
    }
    schema = {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}
    found: dict[int | str, dict[str, Any]] = {
        code: {"description": texts[code], "content": {MEDIA_TYPE: schema}} for code in codes
    }
    for code in _TEMPORARY & set(codes):
        found[code]["headers"] = {
            "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}
        }
    return found


def describe(openapi: dict[str, Any], is_open: Callable[[str], bool]) -> dict[str, Any]:
    """Add to an OpenAPI document the schema of problem details, and what each operation may answer.

    Those are the answers of the server and the guards before every operation. `is_open` returns
    whether a path needs no token.
    """
    for path, operations in openapi["paths"].items():
        before = documented(*_EVERYWHERE, *(() if is_open(path) else _OF_CALLERS))
        for operation in operations.values():
            responses = operation["responses"] | {str(code): said for code, said in before.items()}
            operation["responses"] = dict(sorted(responses.items()))
    schema = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    nested = schema.pop("$defs")
    openapi["components"]["schemas"] |= {**nested, ProblemDetails.__name__: schema}
    bearer = {"type": "http", "scheme": "bearer", "description": _BEARER}
    openapi["components"]["securitySchemes"] = {"bearer": bearer}
    return openapi


def refusal(problem: RequestProblem, headers: dict[str, str] | None = None) -> Response:
    """Return the response that says why a request is refused."""
    return _response(
        problem.status,
        problem.reason,
        title=problem.title,
        detail=problem.detail,
        errors=problem.errors,
        headers=headers or (RETRY_LATER if problem.status in _TEMPORARY else None),
    )


def install(app: FastAPI) -> None:
    """Make an app respond to every error with problem details."""
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(KubeError, _kube)
    app.add_exception_handler(CallerGone, _gone)
    app.add_exception_handler(Exception, _unexpected)


async def _validation(request: Request, error: Exception) -> Response:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    body = getattr(request.scope.get("route"), "body_field", None)
    errors = field_problems(found, known_fields(body.field_info.annotation) if body else None)
    detail = joined((f"{item.field}: {item.message}" for item in errors), 5, separator="; ")
    return _response(
        422, "InvalidField", title="The request is not valid", detail=detail, errors=errors
    )


async def _http(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's signature
    if not isinstance(error, HTTPException):
        raise error
    return error_response(error)


def error_response(error: HTTPException) -> Response:
    """Return the response of an HTTP error."""
    reason, title = _TITLES.get(error.status_code, ("HttpError", str(error.detail)))
    return _response(
        error.status_code,
        reason,
        title=title,
        detail=str(error.detail),
        headers=dict(error.headers or {}),
    )


async def _kube(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's signature
    return hub_error_response(error)


def hub_error_response(error: Exception) -> Response:
    """Return the response to a request that failed because the hub is unreachable or refuses."""
    lacking = lacking_own_right(error) if isinstance(error, KubeError) else None
    if lacking is not None:
        return refusal(lacking)
    unreachable = isinstance(error, Unreachable)
    return _response(
        UNAVAILABLE,
        "HubUnreachable" if unreachable else "HubRefused",
        title="The hub can't be reached" if unreachable else "The hub refused",
        detail=str(error) if unreachable else f"the hub said {quoted(str(error), MESSAGE_LIMIT)}",
        headers=RETRY_LATER,
    )


async def _gone(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's signature
    return refusal(CALLER_GONE)


async def _unexpected(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's signature
    return _response(
        _INTERNAL,
        "InternalError",
        title="The optimizer failed",
        detail="this is a bug in the optimizer; see its log",
    )


def _response(
    status: int,
    reason: str,
    *,
    title: str,
    detail: str,
    errors: Iterable[FieldProblem] = (),
    headers: dict[str, str] | None = None,
) -> Response:
    body = ProblemDetails(
        type=problem_type(reason),
        title=title,
        status=status,
        detail=_clean(detail),
        reason=reason,
        errors=[
            FieldProblem(
                field=_clean(item.field), message=_clean(item.message), available=item.available
            )
            for item in errors
        ],
    )
    return JSONResponse(
        body.model_dump(), status_code=status, headers=headers, media_type=MEDIA_TYPE
    )


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()[:2000]
