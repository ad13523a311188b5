"""A guard against web pages: of another name (DNS rebinding), and of another origin.

A browser sends the name that it looked up as Host, and the page that asks as Origin. The guard
accepts loopback names, the address that the request came in on, and the names that the operator
allows.
"""

from collections.abc import Collection
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from dsf.api.host_header import MALFORMED_HOST, host_name
from optimizer.api.problem_details import error_response

MALFORMED = 400
MISDIRECTED = 421
FORBIDDEN_ORIGIN = 403
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(slots=True)
class HostGuard:
    """ASGI middleware: responds 421 if the Host is not this server, 403 if the Origin is not.

    A malformed Host is a 400, after which the connection closes.

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
