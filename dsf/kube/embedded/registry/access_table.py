"""The tokens and rights that an embedded hub knows, in place of authenticators and RBAC."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from dsf.kube.access_reviews import ResourceAttributes, Right, UserInfo

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
