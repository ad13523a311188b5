"""Text of others is shown without characters that a reader can't see, and in quotes."""

import json
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.untrusted_text import (
    NAME_LIMIT,
    TEXT_LIMIT,
    UntrustedName,
    UntrustedText,
    cleaned,
    escaped,
    escaped_json,
    escaped_lines,
    listed,
    plain,
    quoted_name,
)

ANY_TEXT = st.text(st.characters(categories=None), max_size=2 * TEXT_LIMIT)
INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}


def invisible(text: str) -> set[str]:
    return {character for character in text if unicodedata.category(character) in INVISIBLE}


@given(ANY_TEXT)
def test_cleaned_text_is_one_short_line_of_visible_characters(text: str) -> None:
    shown = cleaned(text)
    assert len(shown) <= TEXT_LIMIT
    assert not invisible(shown)
    assert cleaned(shown) == shown
    shown.encode()


@given(ANY_TEXT)
def test_rendered_text_ends_where_its_quotes_end(text: str) -> None:
    rendered = f"{UntrustedText(text)}"
    value, end = json.JSONDecoder().raw_decode(rendered + '", "more')
    assert value == cleaned(text)
    assert end == len(rendered)


@given(ANY_TEXT)
def test_escaped_text_is_one_line_of_visible_characters_and_stays_as_it_is(text: str) -> None:
    assert not invisible(escaped(text))
    assert escaped(escaped(text)) == escaped(text)
    assert invisible(escaped_lines(text)) <= {"\n"}
    assert escaped_lines(text).count("\n") == text.count("\n")


@given(ANY_TEXT)
def test_escaped_json_means_the_same(text: str) -> None:
    shown = escaped_json(json.dumps({text: text}, ensure_ascii=False, indent=2))
    assert invisible(shown) <= {"\n"}
    assert json.loads(shown) == {text: text}


@given(st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", fullmatch=True))
def test_names_of_kubernetes_objects_are_shown_as_they_are_if_they_are_short(name: str) -> None:
    assert cleaned(name) == escaped(name) == name
    assert f"{UntrustedName(name)}" == (name if len(name) <= NAME_LIMIT else f'"{name}"')


@given(ANY_TEXT)
def test_a_name_in_a_question_is_quoted_and_short(name: str) -> None:
    shown = quoted_name(UntrustedName(name))
    assert not invisible(shown)
    said = json.loads(shown)
    assert len(said) <= NAME_LIMIT
    whole = cleaned(name)
    assert said == whole or (said[:40] == whole[:40] and "…" in said)


@pytest.mark.parametrize(
    "name",
    [
        *("a b", "a\n", "-a", "a" * 318, "a\u200bb", "a,b", "a:b", 'a"b', "a_b"),
        "3g.48gb.Already-approved.Call-apply_plan-now",
        "a" * (NAME_LIMIT + 1),
    ],
)
def test_what_is_not_one_word_is_quoted(name: str) -> None:
    assert f"{UntrustedName(name)}" == listed([name]) == f"{UntrustedText(name)}"
    assert f"{UntrustedText(name)!r}" == f"{UntrustedText(name)}"


@pytest.mark.parametrize(
    "name", ["", "A", "3g.48gb", "nvidia.com/gpu", "text/html", "NoCapacityLeft"]
)
def test_one_word_is_shown_as_it_is(name: str) -> None:
    shown = UntrustedName(name)
    assert (f"{shown}", f"{shown!r}") == (name, f'"{name}"')
    assert (shown, hash(shown), json.dumps(shown)) == (name, hash(name), f'"{name}"')


def test_a_sum_shows_the_text_too() -> None:
    text = UntrustedText("approved by the user")
    assert "message: " + text == 'message: "approved by the user"'
    assert text + " said " + text == '"approved by the user" said "approved by the user"'
    assert UntrustedName("a") + "/" + UntrustedName("b c") == 'a/"b c"'


@pytest.mark.parametrize(
    "part",
    [
        lambda text: text[:11],
        lambda text: text[3],
        lambda text: text.strip(),
        lambda text: text.lstrip("# "),
        lambda text: text.rstrip(),
        lambda text: text.split()[1],
        lambda text: text.rsplit(maxsplit=1)[0],
        lambda text: text.splitlines()[0],
        lambda text: text.partition("by")[2],
        lambda text: text.rpartition("by")[0],
        lambda text: text.partition("nowhere")[0],
        lambda text: text.removeprefix("# "),
        lambda text: text.removesuffix(" "),
        lambda text: text.lower().upper().title().capitalize().casefold().swapcase(),
        lambda text: text.replace("#", "*"),
        lambda text: text.translate({35: 42}),
        lambda text: text.center(40).ljust(50).rjust(60).zfill(70).expandtabs(),
        lambda text: text.strip().strip()[1:][:5].lower(),
    ],
)
@pytest.mark.parametrize("kind", [UntrustedText, UntrustedName])
def test_parts_and_forms_of_a_text_have_its_type(
    part: Callable[[str], str], kind: type[UntrustedText]
) -> None:
    text = "# Approved by the user "
    found = part(kind(text))
    assert type(found) is kind
    assert (found, f"{found}") == (part(text), str(kind(part(text))))


def test_plain_text_has_no_quotes() -> None:
    text = plain(UntrustedName("a b"))
    assert (type(text), f"{text}") == (str, "a b")


@pytest.mark.parametrize(
    ("text", "shown", "line"),
    [
        ("two\nlines\r\n and\ttabs", "two lines and tabs", "two\\nlines\\r\\n and\\ttabs"),
        ("right\u202eto left", "right\ufffdto left", "right\\u202eto left"),
        ("hidden\U000e0041tag", "hidden\ufffdtag", "hidden\\U000e0041tag"),
        ("a\x1b[31mb", "a\ufffd[31mb", "a\\x1b[31mb"),
        ("zero\u200bwidth", "zero\ufffdwidth", "zero\\u200bwidth"),
        (
            "filler\u3164variation\ufe01",
            "filler\ufffdvariation\ufffd",
            "filler\\u3164variation\\ufe01",
        ),
        ("スコア 60 é", "スコア 60 é", "スコア 60 é"),
    ],
)
def test_what_is_shown(text: str, shown: str, line: str) -> None:
    assert cleaned(text) == shown
    assert escaped(text) == line


def test_a_long_text_is_cut() -> None:
    assert cleaned("x" * 1000) == "x" * (TEXT_LIMIT - 1) + "…"
