"""Authentication and authorization delegated to the hub, as Kubernetes' own servers do it.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/ (TokenReview) and
https://kubernetes.io/docs/reference/access-authn-authz/authorization/ (SubjectAccessReview).
Where a client gets a token: OAuth 2.0 protected resource metadata, RFC 9728; MCP 2025-11-25,
authorization.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from dsf.kube.access_reviews import (
    Right,
    UserInfo,
    authenticated_user,
    is_allowed,
    subject_access_review,
    token_review,
)
from dsf.kube.kinds import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW
from dsf.kube.port import Kube
from dsf.runtime.lru_cache import LruCache

K = TypeVar("K")
V = TypeVar("V")

CACHE_SECONDS = 10.0
"""A right that is granted or withdrawn counts after so long; as in Kubernetes' own servers.

Source: k8s.io/apiserver, DelegatingAuthenticationOptions and DelegatingAuthorizationOptions.
"""
CACHE_ENTRIES = 4096
"""Answers kept: some hundred callers with ten rights each, in about a megabyte."""
MOST_REVIEWS = 32
"""Questions to the hub at a time: callers with forged tokens can't flood it."""


class ReviewCache(Generic[K, V]):
    """Remembers at most `entries` answers, each for `seconds` of a clock."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        seconds: float = CACHE_SECONDS,
        entries: int = CACHE_ENTRIES,
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._answers: LruCache[K, tuple[float, V]] = LruCache(entries)
        self._asking = asyncio.Semaphore(MOST_REVIEWS)

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the remembered answer, or ask; an error of `ask` is not remembered."""
        if (known := self._known(key)) is not None:
            return known[1]
        async with self._asking:
            if (known := self._known(key)) is not None:
                return known[1]
            asked_at = self._clock()
            answer = await ask()
        self._answers.put(key, (asked_at, answer))
        return answer

    def _known(self, key: K) -> tuple[float, V] | None:
        found = self._answers.get(key)
        return found if found and self._clock() < found[0] + self._seconds else None


DEFAULT_AUDIENCE = "dynamic-scoring-optimizer"
"""The audience of tokens for this server. The API server does not accept such a token."""

_MOST_TOKEN_CHARACTERS = 16_384
"""A longer token is refused without a question to the hub; real ones have a few thousand."""
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*)")
"""Source: RFC 6750, section 2.1."""


def bearer_token(authorization: str) -> str:
    """Return the token of an Authorization header, or "" if it carries none."""
    found = _BEARER.fullmatch(authorization.strip())
    return found[1] if found and len(found[1]) <= _MOST_TOKEN_CHARACTERS else ""


class DelegatedAuth:
    """Asks the hub who a caller is and what it may do, and caches the answers for seconds.

    The cache has the SHA-256 of a token; the token itself is neither cached nor logged. All calls
    raise KubeError if the hub can't be asked.
    """

    def __init__(
        self,
        kube: Kube,
        audiences: Collection[str] = (DEFAULT_AUDIENCE,),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._audiences = tuple(audiences)
        self._users: ReviewCache[bytes, UserInfo | None] = ReviewCache(clock)
        self._rights: ReviewCache[tuple[UserInfo, Right], bool] = ReviewCache(clock)

    async def authenticate(self, token: str) -> UserInfo | None:
        """Return whose token this is, or None if it is not valid for this server."""
        return await self._users.get(
            hashlib.sha256(token.encode()).digest(), lambda: self._review_token(token)
        )

    async def missing(self, user: UserInfo, rights: Collection[Right]) -> tuple[Right, ...]:
        """Return the rights that a user does not have."""
        allowed = await asyncio.gather(*(self._may(user, right) for right in rights))
        return tuple(right for right, has in zip(rights, allowed, strict=True) if not has)

    async def _may(self, user: UserInfo, right: Right) -> bool:
        return await self._rights.get((user, right), lambda: self._review_access(user, right))

    async def _review_token(self, token: str) -> UserInfo | None:
        review = await self._kube.create(TOKEN_REVIEW, token_review(token, self._audiences))
        return authenticated_user(review, self._audiences)

    async def _review_access(self, user: UserInfo, right: Right) -> bool:
        asked = subject_access_review(user, right)
        return is_allowed(await self._kube.create(SUBJECT_ACCESS_REVIEW, asked))


WELL_KNOWN = "/.well-known/oauth-protected-resource"
"""Path of the metadata; the path of a resource, such as `/mcp`, follows it (RFC 9728, 3.1)."""


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """This server as a resource whose tokens `issuers` make.

    `url`: its public URL without a path. If it is empty, it is the one that a request names.
    """

    issuers: tuple[str, ...]
    url: str = ""

    def metadata(self, asked: str, path: str) -> dict[str, object]:
        """Return the document of the resource at a path; `asked`: the URL of the request."""
        return {
            "resource": f"{self.url or asked}{path}",
            "resource_name": "Dynamic Scoring Framework",
            "authorization_servers": list(self.issuers),
            "bearer_methods_supported": ["header"],
        }

    def metadata_url(self, asked: str, path: str) -> str:
        """Return where the metadata of the resource at a path is."""
        return f"{self.url or asked}{WELL_KNOWN}{path}"
