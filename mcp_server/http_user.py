"""The user of the HTTP request that a tool runs for."""

from fastmcp.server.dependencies import get_http_request

from dsf.kube.access_reviews import UserInfo
from optimizer.api.authentication import user_of


def user() -> UserInfo | None:
    """Return the authenticated user; None on standard input and output, or if nobody is asked."""
    try:
        return user_of(get_http_request())
    except RuntimeError:
        return None
