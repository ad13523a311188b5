"""Reviews of tokens, of rights and of the caller: resources that answer, and store nothing.

The hub accepts every caller and allows it everything: reviews of the caller itself say so. Reviews
of others answer from a table, in place of authenticators and RBAC.

Source: https://kubernetes.io/docs/reference/kubernetes-api/ (authentication and authorization)
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from dsf.kube import kinds
from dsf.kube.access_reviews import NonResourceAttributes, ResourceAttributes, Right, UserInfo
from dsf.kube.embedded.builtin_resources import built_in, list_of, map_of, object_of
from dsf.kube.errors import BadRequest
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from dsf.kube.resources.resource_catalog import Resource
from dsf.kube.schema import field_errors
from dsf.kube.schema.pruning import ANYTHING, TEXT, Schema

_AUTHORIZATION = kinds.SUBJECT_ACCESS_REVIEW.group
SELF_SUBJECT_RULES_REVIEW = Kind(
    _AUTHORIZATION, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False
)
CALLER = {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
"""The hub authenticates nobody."""
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


def review_resources(access: AccessTable, now: Callable[[], datetime]) -> list[Resource]:
    """Return the resources that answer from a table; `now` decides which tokens are expired."""
    return [
        _review(
            kinds.TOKEN_REVIEW,
            {"token": TEXT, "audiences": _TEXTS},
            lambda review: _authentication(access, review, now()),
        ),
        _review(
            kinds.SUBJECT_ACCESS_REVIEW,
            {
                "user": TEXT,
                "uid": TEXT,
                "groups": _TEXTS,
                "extra": map_of(_TEXTS),
                "resourceAttributes": ANYTHING,
                "nonResourceAttributes": ANYTHING,
            },
            lambda review: _authorization(access, review),
        ),
        _review(kinds.SELF_SUBJECT_REVIEW, {}, lambda _: {"userInfo": CALLER}),
        _review(
            kinds.SELF_SUBJECT_ACCESS_REVIEW,
            {"resourceAttributes": ANYTHING, "nonResourceAttributes": ANYTHING},
            _own_right,
        ),
        _review(SELF_SUBJECT_RULES_REVIEW, {"namespace": TEXT}, _own_rules),
    ]


def _review(kind: Kind, spec: dict[str, Schema], answer: Callable[[Object], Object]) -> Resource:
    return built_in(
        kind,
        {"spec": object_of(**spec), "status": ANYTHING},
        review=answer,
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


def _own_right(review: Object) -> Object:
    spec: dict[str, Any] = review.get("spec") or {}
    if not (spec.get("resourceAttributes") or spec.get("nonResourceAttributes")):
        problem = field_errors.wrong(
            "spec.resourceAttributes",
            None,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )
        kind = kinds.SELF_SUBJECT_ACCESS_REVIEW
        raise field_errors.invalid(kind.plural, kind.group, "", [problem])
    return {"allowed": True, "reason": "the embedded hub accepts every caller"}


def _own_rules(review: Object) -> Object:
    if not (review.get("spec") or {}).get("namespace"):
        raise BadRequest("no namespace on request")
    return {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    }
