"""What the errors of an API server say."""

import pytest

from dsf.kube.errors import TooManyRequests, Unreachable, retry_after


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (TooManyRequests("busy", details={"retryAfterSeconds": 7}), 7),
        (TooManyRequests("busy", details={"retryAfterSeconds": 86_400}), 300),
        (TooManyRequests("busy", details={"retryAfterSeconds": 10**400}), 300),
        (TooManyRequests("busy", details={"retryAfterSeconds": float("nan")}), 0),
        (TooManyRequests("busy", details={"retryAfterSeconds": "soon"}), 0),
        (TooManyRequests("busy"), 0),
        (Unreachable("gone"), 0),
    ],
)
def test_the_server_may_ask_to_stay_away(error: Exception, seconds: float) -> None:
    assert retry_after(error) == seconds
