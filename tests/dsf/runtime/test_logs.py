"""Structured logs, and texts that they never contain."""

import io
import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.kube.redaction import REDACTED, redact
from dsf.runtime.logs import Format, JsonFormatter, TextFormatter, set_up


def logged(format_: Format, message: str, level: str = "info", **extra: Any) -> str:
    stream = io.StringIO()
    set_up(level, format_, stream)
    logging.getLogger("dsf.test").info(message, extra=extra)
    return stream.getvalue()


def test_a_line_of_text_has_fields_and_quotes_where_it_must() -> None:
    line = logged("text", "reconcile failed", key="a", retry_in=1.5, none=None)
    assert line.partition(" ")[2] == (
        'level=info logger=dsf.test message="reconcile failed" key=a retry_in=1.5 none=null\n'
    )
    assert line.startswith("time=20")


def test_a_line_of_json_is_an_object() -> None:
    document = json.loads(logged("json", "reconcile failed", key="a", retry_in=1.5))
    del document["time"]
    assert document == {
        "level": "info",
        "logger": "dsf.test",
        "message": "reconcile failed",
        "key": "a",
        "retry_in": 1.5,
    }


def test_the_level_is_kept_and_an_unknown_one_refused() -> None:
    assert logged("text", "quiet", level="WARNING") == ""
    with pytest.raises(ValueError, match="LOUD"):
        set_up("loud")


def test_talkative_libraries_are_heard_from_warnings_on() -> None:
    stream = io.StringIO()
    set_up("debug", "text", stream)
    logging.getLogger("httpx").info("HTTP Request: GET https://host/?key=value")
    assert stream.getvalue() == ""


def record(message: str, **extra: Any) -> logging.LogRecord:
    return logging.makeLogRecord({"msg": message, "name": "n", "levelname": "INFO", **extra})


@given(message=st.text(), value=st.text())
def test_nothing_that_is_logged_makes_a_second_line(message: str, value: str) -> None:
    for formatter in (TextFormatter(), JsonFormatter()):
        assert len(formatter.format(record(message, field=value)).splitlines()) == 1


def test_an_exception_is_a_field_without_its_credentials() -> None:
    error = ValueError("Invalid header value b'Bearer canary'")
    line = TextFormatter().format(record("broken", exc_info=(ValueError, error, None)))
    assert "ValueError: Invalid header value" in line
    assert "canary" not in line


JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Authorization: Bearer canary-1", "Authorization: Bearer"),
        ("{'authorization': 'bearer canary=='}", "authorization"),
        ("Basic Y2FuYXJ5: is wrong", "is wrong"),
        (f"the token {JWT} is expired", "is expired"),
        ("https://me:canary@proxy:3128/path", "@proxy:3128/path"),
        ('{"token": "canary", "kind": "Config"}', '"kind": "Config"'),
        ("password=canary host=h", "host=h"),
        ("GET http://host/config?access_token=canary&a=b", "a=b"),
        ("client_secret: canary", "client_secret"),
        ("https://me:a@canary@proxy:3128/path", "@proxy:3128/path"),
    ],
)
def test_credentials_are_taken_out_and_the_rest_is_left(text: str, kept: str) -> None:
    result = redact(text)
    assert REDACTED in result
    assert kept in result
    assert not any(secret in result for secret in ("canary", "Y2FuYXJ5", JWT))


@given(st.text())
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    assert redact(redact(text)) == redact(text)
