"""Headers with which a client acts as another user.

Source: https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/
"""

from dsf.kube.access_reviews import UserInfo


def impersonation_headers(user: UserInfo) -> tuple[tuple[str, str], ...]:
    """Return the headers that name a user and its groups.

    The uid and the extra fields stay out: RBAC does not read them, and each would need a right
    of its own.
    """
    groups = (("Impersonate-Group", group) for group in user.groups)
    return (("Impersonate-User", user.name), *groups)
