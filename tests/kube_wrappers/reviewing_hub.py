"""An embedded hub that answers reviews of other users from a table, as authenticators and RBAC do.

The product's own hub accepts every caller, so it knows no tokens and no rights.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dsf.kube import kinds
from dsf.kube.access_reviews import NonResourceAttributes, ResourceAttributes, Right, UserInfo
from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.builtin_resources import list_of, map_of
from dsf.kube.embedded.reviews import review
from dsf.kube.errors import BadRequest
from dsf.kube.port import Object
from dsf.kube.schema import field_errors
from dsf.kube.schema.pruning import ANYTHING, TEXT

_TEXTS = list_of(TEXT)

API_SERVER_AUDIENCE = "https://kubernetes.default.svc"
"""The audience of a token that names none, and of a review that asks for none."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token of a user, its audiences, and when it expires."""

    user: UserInfo
    audiences: tuple[str, ...] = (API_SERVER_AUDIENCE,)
    expires: datetime | None = None


@dataclass(frozen=True, slots=True)
class AccessTable:
    """Issued tokens by their text, and rights by the name of a user.

    A right without a namespace holds in all namespaces, as that of a ClusterRoleBinding.
    """

    tokens: Mapping[str, IssuedToken] = field(default_factory=dict, repr=False)
    rights: Mapping[str, Collection[Right]] = field(default_factory=dict)

    def token(self, text: str, audiences: Collection[str], now: datetime) -> IssuedToken | None:
        """Return a token that is not expired and has one of the audiences, or None."""
        found = self.tokens.get(text)
        if found is None or (found.expires and found.expires <= now):
            return None
        return found if set(found.audiences) & set(audiences) else None

    def allows(self, user: str, asked: Right) -> bool:
        """Return whether a user has a right, in the namespace asked for or in all of them."""
        enough: set[Right] = {asked}
        if isinstance(asked, ResourceAttributes):
            enough.add(replace(asked, namespace=""))
        return not enough.isdisjoint(self.rights.get(user, ()))


NOBODY = AccessTable()
"""Knows no token and no right."""


class ReviewingHub(EmbeddedHub):
    """An embedded hub with reviews of others; itself it accepts every caller."""

    def __init__(
        self, *, access: AccessTable = NOBODY, now: Callable[[], datetime] = utc_now, **rest: Any
    ) -> None:
        super().__init__(now=now, **rest)
        self.server.catalog.add(
            review(
                kinds.TOKEN_REVIEW,
                {"token": TEXT, "audiences": _TEXTS},
                lambda asked: _authentication(access, asked, now()),
            )
        )
        self.server.catalog.add(
            review(
                kinds.SUBJECT_ACCESS_REVIEW,
                {
                    "user": TEXT,
                    "uid": TEXT,
                    "groups": _TEXTS,
                    "extra": map_of(_TEXTS),
                    "resourceAttributes": ANYTHING,
                    "nonResourceAttributes": ANYTHING,
                },
                lambda asked: _authorization(access, asked),
            )
        )


def _authentication(access: AccessTable, review: Object, now: datetime) -> Object:
    spec: dict[str, Any] = review.get("spec") or {}
    if not spec.get("token"):
        raise BadRequest("token is required for TokenReview in authentication")
    asked = spec.get("audiences") or [API_SERVER_AUDIENCE]
    token = access.token(spec["token"], asked, now)
    if token is None:
        return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
    user = token.user
    return {
        "authenticated": True,
        "user": {
            "username": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra},
        },
        "audiences": [audience for audience in asked if audience in token.audiences],
    }


def _authorization(access: AccessTable, review: Object) -> Object:
    spec: dict[str, Any] = review.get("spec") or {}
    if not (spec.get("user") or spec.get("groups")):
        problem = field_errors.wrong(
            "spec.user", "", "at least one of user or group must be specified"
        )
        kind = kinds.SUBJECT_ACCESS_REVIEW
        raise field_errors.invalid(kind.plural, kind.group, "", [problem])
    return {"allowed": access.allows(str(spec.get("user") or ""), _asked(spec))}


def _asked(spec: Mapping[str, Any]) -> Right:
    if path := spec.get("nonResourceAttributes"):
        return NonResourceAttributes(str(path.get("verb") or ""), str(path.get("path") or ""))
    attributes = spec.get("resourceAttributes") or {}
    return ResourceAttributes(
        *(str(attributes.get(key) or "") for key in ("verb", "group", "resource", "namespace"))
    )
