"""Excerpts of answers: cut, on one line, and without the secrets of the call in any notation."""

from base64 import b64encode
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dsf.agent.wire.foreign_text import DATA_LIMIT, EXCERPT_LIMIT, CallSecrets, call_secrets

TOKEN = "canary+0af3/Zz91==~b7c5d2e8f6"
SECRETS = call_secrets("https://scorer/", {"Authorization": f"Bearer {TOKEN}"})


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        f"token {TOKEN}, again {TOKEN}",
        quote(TOKEN, safe=""),
        TOKEN.replace("/", "\\/"),
        "".join(f"\\u{ord(character):04X}" for character in TOKEN),
        "x" * (EXCERPT_LIMIT - 10) + TOKEN,
        TOKEN * 50,
        ("".join(f"\\u{ord(character):04x}" for character in TOKEN)) * 50,
        f"{TOKEN}%{TOKEN}",
    ],
)
def test_a_secret_is_left_out_of_excerpts(text: str) -> None:
    for form in (text, text.encode(), bytearray(text.encode())):
        found = SECRETS.excerpt(form)
        assert TOKEN[:DATA_LIMIT] not in found
        assert "canary" not in found.replace("\\", "")
        assert len(found) <= EXCERPT_LIMIT + 1


@example(before="", after="%", size=44)
@given(before=st.text(max_size=1300), after=st.text(max_size=40), size=st.integers(8, 3000))
def test_no_part_of_a_long_secret_remains_at_the_cut(before: str, after: str, size: int) -> None:
    token = ("0123456789abcdefghijklmnopqrstuvwxyz" * 100)[:size]
    found = CallSecrets((token,)).excerpt(before + token + after + token)
    assert token[:DATA_LIMIT] not in found


def test_passwords_of_urls_are_secrets_too() -> None:
    secrets = call_secrets("https://me:p%40ssword@scorer/", {})
    basic = b64encode(b"me:p@ssword").decode()
    for text in ("p%40ssword", "p@ssword", f"got {basic}"):
        assert "ssword" not in secrets.excerpt(text)
        assert basic not in secrets.excerpt(text)


def test_text_without_secrets_stays_as_it_is() -> None:
    assert SECRETS.excerpt("50%20 of\n\t\\u0041") == "50%20 of \\u0041"
    assert call_secrets("http://[::1", {}).values == ()


def test_short_secrets_are_not_looked_for_in_data() -> None:
    body = f'{{"node": "test-{TOKEN}"}}'.encode()
    assert CallSecrets(("test", TOKEN)).suspected_in(body).values == (TOKEN,)
    assert SECRETS.suspected_in(b'{"node": "n1"}').values == ()
    assert SECRETS.suspected_in(b'{"node": "\\u0063"}').values == (TOKEN,)


def test_secrets_have_no_repr() -> None:
    found = call_secrets("https://scorer/", {"Authorization": f"Bearer {TOKEN}"})
    assert found.values == (TOKEN,)
    assert TOKEN not in repr(found)
