"""What messages repeat of answers: nothing of a server that knows a credential, else an excerpt."""

import json
from base64 import b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dsf.agent.wire.foreign_text import EXCERPT_LIMIT, WITHHELD, CallSecrets, call_secrets
from dsf.kube.redaction import SHORTEST
from tests.spellings import SPELLINGS

TOKEN = "canary+0af3/Zz91==~b7c5d2e8f6"
SECRETS = call_secrets("https://scorer/", {"Authorization": f"Bearer {TOKEN}"})
NONE = call_secrets("https://scorer/", {})
LABELS = st.dictionaries(st.text(max_size=9), st.text(max_size=30), max_size=4)


@given(text=st.text(max_size=2000), told=st.booleans())
def test_a_server_that_knows_a_credential_is_not_quoted(text: str, told: bool) -> None:
    secrets = CallSecrets(sent_before=True) if told else SECRETS
    for form in (text, text.encode(errors="replace"), bytearray(text.encode(errors="replace"))):
        assert secrets.line(form) == secrets.excerpt(form) == ""
        assert secrets.said(form) == (f"; {WITHHELD}" if text else "")


def test_a_word_is_repeated_if_a_closed_set_has_it() -> None:
    assert SECRETS.word("bad_data", {"bad_data"}) == "bad_data"
    assert SECRETS.word(TOKEN, {"bad_data"}) == ""
    assert NONE.word("bad_other", {"bad_data"}) == "bad_other"


@given(text=st.text(max_size=3000))
def test_an_excerpt_of_others_is_one_line_of_limited_length(text: str) -> None:
    found = NONE.excerpt(text)
    assert len(found) <= EXCERPT_LIMIT
    assert found.isprintable()


def test_others_are_quoted_as_they_are() -> None:
    assert NONE.excerpt("50%20 of\n\t\\u0041") == "50%20 of \\u0041"
    assert NONE.said("no such metric") == ': "no such metric"'
    assert NONE.said("") == ""
    assert call_secrets("http://[::1", {}).values == ()


def test_passwords_of_urls_are_secrets_too() -> None:
    secrets = call_secrets("https://me:p%40ssword@scorer/", {})
    basic = b64encode(b"me:p@ssword").decode()
    for text in ("p%40ssword", "p@ssword", f"got {basic}", b"p@ssword".hex()):
        assert secrets.excerpt(text) == ""
        assert secrets.spelled_in(json.dumps({"node": text}).encode()).found_in(text)


@example(token=TOKEN, before="n1 ", after=" x", spelling="base64-after-1")
@given(
    token=st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0189+/=~._-", min_size=SHORTEST, max_size=60),
    before=st.text(max_size=9),
    after=st.text(max_size=9),
    spelling=st.sampled_from(sorted(SPELLINGS)),
)
def test_data_that_spells_a_credential_is_found(
    token: str, before: str, after: str, spelling: str
) -> None:
    text = before + SPELLINGS[spelling](token) + after
    body = json.dumps({"data": [1.5, {"node": text}]}, ensure_ascii=False)
    spelled = CallSecrets((token,)).spelled_in(body.encode(errors="replace"))
    assert spelled.found_in(text) or not _has_letters(token)


def _has_letters(token: str) -> bool:
    """Tell whether enough of a token remains without marks: others are found only as they are."""
    return sum(map(str.isalnum, token)) >= SHORTEST


@given(labels=LABELS)
def test_other_data_is_not_suspected(labels: dict[str, str]) -> None:
    body = json.dumps(labels).encode()
    assert not any(map(SECRETS.spelled_in(body).found_in, labels.values()))


def test_most_data_is_not_searched() -> None:
    assert not SECRETS.spelled_in(b'{"node": "n1"}')
    assert SECRETS.spelled_in(b'{"node": "\\u0063"}')
    assert SECRETS.spelled_in(json.dumps({"node": TOKEN}).encode())


@pytest.mark.parametrize("at", [0, (1 << 20) - 20, (1 << 20) - 3, 1 << 20])
def test_a_credential_is_found_at_any_place_of_large_data(at: int) -> None:
    body = bytearray(b"x" * at + TOKEN.encode().hex().encode() + b"x" * 99)
    assert SECRETS.spelled_in(body)


def test_short_secrets_are_not_looked_for_in_data() -> None:
    body = f'{{"node": "test-{TOKEN}"}}'.encode()
    assert not CallSecrets(("test",)).spelled_in(body)
    assert not CallSecrets(("test", TOKEN)).spelled_in(body).found_in("a-test-node")


def test_secrets_have_no_repr() -> None:
    assert SECRETS.values == (TOKEN,)
    assert TOKEN not in repr(SECRETS)
    assert TOKEN not in repr(SECRETS.spelled_in(TOKEN.encode()))
