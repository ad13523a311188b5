"""Requires a bearer token on every path of the HTTP API and of MCP, except health, docs, page.

Where tokens come from an OAuth issuer, clients without one learn it here (RFC 9728).
"""

from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dsf.kube.access_reviews import UserInfo
from dsf.kube.errors import KubeError
from optimizer.api.problem_details import hub_error_response, refusal
from optimizer.operations.access.authorized_optimizer import audit_failed_login, unauthorized
from optimizer.operations.access.delegated_auth import DelegatedAuth, bearer_token
from optimizer.operations.access.protected_resource import WELL_KNOWN, ProtectedResource

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
            response = refusal(unauthorized(), {"WWW-Authenticate": challenge})
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
