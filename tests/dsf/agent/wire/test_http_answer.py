import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.wire.http_answer import RETRY_AFTER_LIMIT, HttpAnswer, retry_after, status_failure

DATE = "Fri, 20 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "120"}, 120),
        ({"retry-after": " 0 "}, 0),
        ({"retry-after": "99999999999999999999"}, RETRY_AFTER_LIMIT),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "1.5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:30 GMT", "date": DATE}, 30),
        ({"retry-after": "Fri, 20 Nov 2026 11:00:00 GMT", "date": DATE}, 0),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:30 GMT"}, None),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:30 -0000", "date": DATE}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers) == expected


@given(st.text(), st.text())
def test_any_header_gives_a_value(after: str, date: str) -> None:
    found = retry_after({"retry-after": after, "date": date})
    assert found is None or 0 <= found <= RETRY_AFTER_LIMIT


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_for_a_pause_is_heard(status: int) -> None:
    failure = status_failure("scoring", "http://h/", HttpAnswer(status, "", b"", retry_after=9.0))
    assert failure.retry_after == 9.0
    assert "9" not in failure.message.replace(str(status), "")
