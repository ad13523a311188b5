"""What a request must be before an operation answers it; each guard refuses with problem details.

- `Authentication`: it has a bearer token, on every path of the HTTP API and of MCP but those of
  health, documentation and page. Clients without one learn of an OAuth issuer here (RFC 9728).
- `HostGuard`: it is for this server, and no web page of another name (DNS rebinding) or of another
  origin asks. A browser sends the name that it looked up as Host, and the page that asks as Origin.
- `BodyLimit`: its body is of bounded size. Starlette's own limit responds in plain text.
- `DeclaredRoute`: it says nothing that its operation does not declare, so that nothing that a
  caller says is ignored. Of a name that an object has twice, JSON parsers take the last.
"""

import json
from collections.abc import Callable, Collection, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dsf.api.host_header import LOOPBACK, MALFORMED_HOST, host_name
from dsf.api.untrusted_text import NAME_LIMIT, quoted
from dsf.kube.access_reviews import UserInfo
from dsf.kube.errors import KubeError
from optimizer.api.problem_details import error_response, hub_error_response, refusal
from optimizer.operations.access.authorized_optimizer import UNAUTHENTICATED, audit_failed_login
from optimizer.operations.access.delegated_auth import (
    WELL_KNOWN,
    DelegatedAuth,
    ProtectedResource,
    bearer_token,
)

MALFORMED = 400
MISDIRECTED = 421
FORBIDDEN_ORIGIN = 403
TOO_LARGE = 413
EMPTY = (b"", b"{}")
"""Bodies that say nothing; some clients send an empty object with each POST."""
NO_BODY = "this operation takes no body"
TWICE = "is given more than once"


@dataclass(slots=True)
class HostGuard:
    """ASGI middleware: responds 421 if the Host is not this server, 403 if the Origin is not.

    It accepts loopback names, the address that the request came in on, and the names that the
    operator allows. A malformed Host is a 400, after which the connection closes.

    Case and port of the `allowed` names are ignored.
    """

    app: ASGIApp
    allowed: Collection[str] = ()

    def __post_init__(self) -> None:
        self.allowed = frozenset(host_name(name) or name for name in self.allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refused = self._refusal(scope) if scope["type"] == "http" else None
        await (error_response(refused) if refused else self.app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> HTTPException | None:
        headers = Headers(scope=scope)
        host = host_name(headers.get("host", ""))
        if host is None:
            return HTTPException(MALFORMED, MALFORMED_HOST, headers={"Connection": "close"})
        if not self._ours(scope, host):
            return HTTPException(
                MISDIRECTED, "the Host header names another server; see --allowed-host"
            )
        origin = headers.get("origin")
        if origin is not None and not self._ours(scope, host_name(origin.partition("://")[2])):
            return HTTPException(
                FORBIDDEN_ORIGIN, "a page of another origin asks; see --allowed-host"
            )
        return None

    def _ours(self, scope: Scope, name: str | None) -> bool:
        return name in LOOPBACK or name == _address(scope) or name in self.allowed


def _address(scope: Scope) -> str:
    address = str((scope.get("server") or ("", None))[0])
    return f"[{address}]" if ":" in address else address


@dataclass(slots=True)
class BodyLimit:
    """ASGI middleware: responds 413 to bodies of more than `most` bytes, announced or not."""

    app: ASGIApp
    most: int

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif _announced(scope) > self.most:
            await error_response(self._error())(scope, receive, send)
        else:
            await self.app(scope, self._counting(receive), send)

    def _counting(self, receive: Receive) -> Receive:
        total = 0

        async def counted() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b""))
            if total > self.most:
                raise self._error()
            return message

        return counted

    def _error(self) -> HTTPException:
        return HTTPException(TOO_LARGE, f"a body has at most {self.most} bytes")


def _announced(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else 0


class DeclaredRoute(APIRoute):
    """An operation that refuses what its OpenAPI document does not declare, with 422.

    No operation has a parameter that is a list, or in a header. A path that is not in the document,
    such as that of the page, takes what browsers and links add.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()
        if not self.include_in_schema:
            return answer
        named = {item.alias for item in get_flat_params(self.dependant)}
        declared = named - self.param_convertors.keys()  # those of the path
        takes_body = self.body_field is not None

        async def answered(request: Request) -> Response:
            errors = [*_undeclared(request, declared)]
            if not takes_body and await request.body() not in EMPTY:
                errors.append({"type": "no_body", "loc": ("body",), "msg": NO_BODY})
            if errors:
                raise RequestValidationError(errors)
            return await answer(_Request(request.scope, request.receive))

        return answered


class _Request(Request):
    """A request whose body names each member of an object once."""

    async def json(self) -> Any:
        """Return the body; JSONDecodeError if it is not JSON, or names a member twice."""
        return json.loads(await self.body(), object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        message = f"{quoted(twice, NAME_LIMIT)} is named twice in one object"
        raise json.JSONDecodeError(message, "", 0)
    return found


def _undeclared(request: Request, declared: set[str]) -> Iterator[dict[str, Any]]:
    """Yield an error for each query parameter that is not declared, or given more than once."""
    given = request.query_params
    for name in given:
        if name not in declared:
            yield {"type": "extra_forbidden", "loc": ("query", name), "msg": ""}
        elif len(given.getlist(name)) > 1:
            yield {"type": "repeated", "loc": ("query", name), "msg": TWICE}


OPEN_PATHS = ("/", "/healthz", "/readyz", "/docs", "/redoc", "/openapi.json")
"""Kubelets have no token; the page and the documentation are the same in every installation."""
OPEN_FOLDERS = ("/static-offline-docs/",)
"""The scripts of the documentation."""

_USER = "user"
_CHALLENGE = 'Bearer realm="dynamic-scoring-optimizer"'
"""Source: RFC 6750, section 3."""


@dataclass(slots=True)
class Authentication:
    """ASGI middleware: responds 401 to requests without a valid token, before a body is read.

    `user_of` returns the user of a request that passed.
    """

    app: ASGIApp
    auth: DelegatedAuth
    resource: ProtectedResource | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its user, or refuse it."""
        if scope["type"] == "lifespan" or is_open(scope["path"]):
            await self.app(scope, receive, send)
            return
        if self.resource and scope["path"].startswith(WELL_KNOWN):
            path = scope["path"].removeprefix(WELL_KNOWN)
            await JSONResponse(
                self.resource.metadata(_origin(scope), path),
                headers={"Access-Control-Allow-Origin": "*"},
            )(scope, receive, send)
            return
        given = Headers(scope=scope).getlist("authorization")
        token = bearer_token(given[0]) if len(given) == 1 else ""
        try:
            user = await self.auth.authenticate(token) if token else None
        except KubeError as error:
            await hub_error_response(error)(scope, receive, send)
            return
        if user is None:
            address, _ = scope.get("client") or ("", 0)
            audit_failed_login(token_sent=bool(given), address=address)
            wrong = ', error="invalid_token"' if given else ""
            challenge = _CHALLENGE + wrong + self._where_tokens_are(scope)
            response = refusal(UNAUTHENTICATED, {"WWW-Authenticate": challenge})
            await response(scope, receive, send)
            return
        await self.app({**scope, _USER: user}, receive, send)

    def _where_tokens_are(self, scope: Scope) -> str:
        if self.resource is None:
            return ""
        path = scope["path"].rstrip("/")
        return f', resource_metadata="{self.resource.metadata_url(_origin(scope), path)}"'


def user_of(request: HTTPConnection) -> UserInfo | None:
    """Return the user of a request that passed the middleware, or None without one."""
    user = request.scope.get(_USER)
    return user if isinstance(user, UserInfo) else None


def is_open(path: str) -> bool:
    """Return whether a path needs no token."""
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDERS)


def _origin(scope: Scope) -> str:
    """Return the URL by which a request reached this server; the guard has checked its Host."""
    return f"{scope['scheme']}://{Headers(scope=scope).get('host', '')}"
