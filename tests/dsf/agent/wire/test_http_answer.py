import pytest

from dsf.agent.wire.http_answer import HttpAnswer, status_failure


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_for_a_pause_is_heard(status: int) -> None:
    failure = status_failure("scoring", "http://h/", HttpAnswer(status, "", b"", retry_after=9.0))
    assert failure.retry_after == 9.0
    assert "9" not in failure.message.replace(str(status), "")
