"""Who a caller is, and what a caller may do: reviews of tokens, of rights, of ourselves as values.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authentication/#webhook-token-authentication
and https://kubernetes.io/docs/reference/access-authn-authz/authorization/
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dsf.kube.errors import Forbidden, KubeError
from dsf.kube.kinds import SELF_SUBJECT_ACCESS_REVIEW, SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW, Kind

SYSTEM = "system:"
"""How the users and groups begin that Kubernetes keeps for itself.

Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#referring-to-subjects
"""
_ADDED_GROUPS = ("authenticated", "serviceaccounts")
_NON_RESOURCE = "nonResourceAttributes"
_NOT_AUTHORIZED = re.compile(
    r'cannot ([a-z]+) resource "([a-z0-9./-]+)" in API group "([a-z0-9.-]*)"'
    r'(?: in the namespace "([a-z0-9.-]+)"| at the cluster scope)'
)
"""How the API server words that no authorizer allows a call.

Source: forbiddenMessage in k8s.io/apiserver, pkg/endpoints/handlers/responsewriters/errors.go
"""


@dataclass(frozen=True, slots=True)
class UserInfo:
    """A user as the API server knows it; a service account is a user, too."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


def impersonated(user: UserInfo) -> UserInfo | None:
    """Return a user as others may act in its name: without its groups of Kubernetes itself.

    Those that every user and service account has stay, because the API server adds them. None for
    users that begin with `system:`, such as the parts of a control plane, except service accounts.
    """
    if user.name.startswith(SYSTEM) and not user.name.startswith(f"{SYSTEM}serviceaccount:"):
        return None
    return replace(user, groups=tuple(each for each in user.groups if _may_be_acted_for(each)))


def _may_be_acted_for(group: str) -> bool:
    return not group.startswith(SYSTEM) or group.removeprefix(SYSTEM).startswith(_ADDED_GROUPS)


@dataclass(frozen=True, slots=True)
class ResourceAttributes:
    """One right: a verb on a resource; without a namespace, in all namespaces."""

    verb: str
    group: str
    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        where = f"in namespace {self.namespace}" if self.namespace else "in all namespaces"
        return f"{self.verb} {resource} {where}"


@dataclass(frozen=True, slots=True)
class NonResourceAttributes:
    """The right to use a verb on a path that is no resource of the API server, such as /metrics."""

    verb: str
    path: str

    def __str__(self) -> str:
        return f"{self.verb} the non-resource URL {self.path}"


Right = ResourceAttributes | NonResourceAttributes
"""What a SubjectAccessReview asks about."""


def right(verb: str, kind: Kind, namespace: str = "") -> ResourceAttributes:
    """Return the right to use a verb on a kind in a namespace, or in all namespaces."""
    return ResourceAttributes(verb, kind.group, kind.plural, namespace)


def missing_right(error: KubeError) -> ResourceAttributes | None:
    """Return the right that our own user lacks on the API server; None for every other error.

    Admission refuses with Forbidden too, as does a namespace that is being deleted: no right helps.
    """
    refusal = _NOT_AUTHORIZED.search(error.message) if isinstance(error, Forbidden) else None
    if refusal is None:
        return None
    verb, resource, group, namespace = refusal.groups(default="")
    return ResourceAttributes(verb, group, resource, namespace)


def own_user_name(review: Mapping[str, Any]) -> str:
    """Return the name under which the API server knows us, from its SelfSubjectReview."""
    return str(((review.get("status") or {}).get("userInfo") or {}).get("username") or "")


def token_review(token: str, audiences: Collection[str]) -> dict[str, Any]:
    """Return the TokenReview that asks whose token this is, for one of these audiences."""
    spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    return TOKEN_REVIEW.object(spec=spec)


def authenticated_user(
    review: Mapping[str, Any], audiences: Collection[str] = ()
) -> UserInfo | None:
    """Return the user that a TokenReview found, or None.

    A token without one of the audiences is not accepted: a server that knows no audiences
    returns none.
    """
    status = review.get("status") or {}
    user = status.get("user") or {}
    if status.get("authenticated") is not True or not user.get("username"):
        return None
    if audiences and not set(audiences) & set(status.get("audiences") or ()):
        return None
    return UserInfo(
        name=user["username"],
        uid=user.get("uid") or "",
        groups=tuple(user.get("groups") or ()),
        extra=tuple((key, tuple(values)) for key, values in (user.get("extra") or {}).items()),
    )


def subject_access_review(user: UserInfo, asked: Right) -> dict[str, Any]:
    """Return the SubjectAccessReview that asks whether a user has a right."""
    return SUBJECT_ACCESS_REVIEW.object(
        spec={
            **_attributes(asked),
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {key: list(values) for key, values in user.extra},
        }
    )


def self_subject_access_review(asked: Right) -> dict[str, Any]:
    """Return the SelfSubjectAccessReview that asks whether we have a right ourselves."""
    return SELF_SUBJECT_ACCESS_REVIEW.object(spec=_attributes(asked))


def _attributes(asked: Right) -> dict[str, Any]:
    field = "resourceAttributes" if isinstance(asked, ResourceAttributes) else _NON_RESOURCE
    return {field: {key: value for key, value in asdict(asked).items() if value}}


def is_allowed(review: Mapping[str, Any]) -> bool:
    """Return whether a review of a right allows what it asked for."""
    status = review.get("status") or {}
    return status.get("allowed") is True and status.get("denied") is not True
