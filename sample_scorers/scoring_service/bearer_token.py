# SPDX-License-Identifier: Apache-2.0
"""The check of a scorer's bearer token (RFC 6750): every POST without it is refused with 401.

The token is in a file, so that a Kubernetes Secret can be mounted and rotated: each request reads
it. GET requests need no token, because the hub sends none to `/healthz` and `/config`.
"""

import hmac
from pathlib import Path

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from .problem_details import ProblemResponse, problem, refuse


def require_token(app: FastAPI, token_file: Path) -> None:
    """Let `app` answer a POST only if it carries the token of a file."""
    # The innermost middleware, so that a refusal is counted in /metrics.
    app.user_middleware.append(Middleware(_BearerTokenCheck, token_file=token_file))


class _BearerTokenCheck:
    """ASGI middleware that lets a POST pass only with the token of a file."""

    def __init__(self, app: ASGIApp, token_file: Path) -> None:
        self._app = app
        self._token_file = token_file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or hand it on."""
        refusal = self._refusal(Headers(scope=scope)) if _needs_token(scope) else None
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await refuse(refusal, receive, send)

    def _refusal(self, headers: Headers) -> ProblemResponse | None:
        expected = read_token(self._token_file)
        if expected is None:
            return problem(503, "the scorer can't read its token file; its operator must mend that")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            detail = "send the token of this scorer as Authorization: Bearer <token>"
            return problem(401, detail, headers={"WWW-Authenticate": "Bearer"})
        # In constant time, so that the time of an answer doesn't tell how much of a guess is right.
        if not hmac.compare_digest(token.strip().encode("latin-1"), expected.encode()):
            detail = "the token is not that of this scorer; check spec.scoring.auth.tokenSecretRef"
            return problem(
                401, detail, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'}
            )
        return None


def read_token(file: Path) -> str | None:
    """Return the token in a file; None if the file can't be read or is empty."""
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _needs_token(scope: Scope) -> bool:
    return bool(scope["type"] == "http" and scope["method"] == "POST")
