"""Text from the cluster stays data."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_server.untrusted_text import TEXT_LIMIT, clean, cleaned, quoted
from optimizer.wire.result import ScoreEntry, ScoreObject, Unplaced

ANY_TEXT = st.text(st.characters(categories=None), max_size=2 * TEXT_LIMIT)


@given(ANY_TEXT)
def test_shown_text_is_one_short_line_of_visible_characters(text: str) -> None:
    shown = clean(text)
    assert len(shown) <= TEXT_LIMIT
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert clean(shown) == shown
    shown.encode()


@given(ANY_TEXT)
def test_quoted_text_ends_where_its_quotes_end(text: str) -> None:
    value, end = json.JSONDecoder().raw_decode(quoted(text) + '", "more')
    assert value == clean(text)
    assert end == len(quoted(text))


@given(st.from_regex(r"[a-z0-9][a-z0-9.-]{0,251}[a-z0-9]", fullmatch=True))
def test_names_of_kubernetes_objects_are_shown_as_they_are(name: str) -> None:
    assert clean(name) == name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\r\n and\ttabs", "two lines and tabs"),
        ("right\u202eto left", "right\ufffdto left"),
        ("hidden\U000e0041tag", "hidden\ufffdtag"),
        ("x" * 1000, "x" * (TEXT_LIMIT - 1) + "…"),
        ("スコア 60 é", "スコア 60 é"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_every_text_of_a_model_is_cleaned() -> None:
    score = ScoreObject(
        cluster="worker01",
        name="s",
        description="a\nb",
        scores=(ScoreEntry(name="c\u202ed", value=1),),
    )
    assert cleaned(score).description == "a b"
    assert cleaned(score).scores[0] == ScoreEntry(name="c\ufffdd", value=1)
    assert cleaned(Unplaced(workload="w", reason="R", message="x" * 5000)).message.endswith("…")
