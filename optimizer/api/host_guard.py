"""A guard against DNS rebinding: a web page must not reach this server under its own name.

A browser sends the name that it looked up as Host. The guard accepts loopback names, the address
that the request came in on, and the names that the operator allows.
"""

from collections.abc import Collection
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from optimizer.api.problem_details import error_response

MISDIRECTED = 421
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(slots=True)
class HostGuard:
    """ASGI middleware: responds 421 to requests whose Host is not this server.

    Case and port of the `allowed` names are ignored.
    """

    app: ASGIApp
    allowed: Collection[str] = ()

    def __post_init__(self) -> None:
        self.allowed = frozenset(map(_without_port, self.allowed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or self._ours(scope):
            await self.app(scope, receive, send)
        else:
            await error_response(
                HTTPException(
                    MISDIRECTED, "the Host header names another server; see --allowed-host"
                )
            )(scope, receive, send)

    def _ours(self, scope: Scope) -> bool:
        host = _without_port(Headers(scope=scope).get("host", ""))
        return host in LOOPBACK or host == _address(scope) or host in self.allowed


def _without_port(host: str) -> str:
    name = host.lower()
    return name.partition("]")[0] + "]" if name.startswith("[") else name.partition(":")[0]


def _address(scope: Scope) -> str:
    address = str((scope.get("server") or ("", None))[0])
    return f"[{address}]" if ":" in address else address
