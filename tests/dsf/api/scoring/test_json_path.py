"""JSONPath as kubectl takes it: each form, and texts that are none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.scoring.json_path import JsonPath, parse
from dsf.api.untrusted_text import InvalidInput

OBJ: dict[str, Any] = {
    "metadata": {"labels": {"a.b/c": "x", "plain": "y"}},
    "items": [{"n": 1, "t": "p"}, {"n": 2, "t": "q"}, "text"],
    "map": {"one": 1, "two": 2},
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".metadata.labels.plain", ["y"]),
        ("$.metadata.labels.plain", ["y"]),
        ("{.metadata.labels.plain}", ["y"]),
        ("{ $.metadata['labels'].plain }", ["y"]),
        (".metadata.labels['a.b/c']", ["x"]),
        ('.metadata.labels["a.b/c"]', ["x"]),
        (r".metadata.labels.a\.b/c", ["x"]),
        (".items[0].n", [1]),
        (".items[-1]", ["text"]),
        (".items[-9]", []),
        (".items[9]", []),
        (".items[*].n", [1, 2]),
        (".map.*", [1, 2]),
        (".map[*]", [1, 2]),
        ('.items[?(@.t=="q")].n', [2]),
        (".items[?( @.t == 'q' )].n", [2]),
        (".items[?(@.t=='')].n", []),
        (".items.n", []),
        (".map[0]", []),
        (".metadata.labels.plain.deeper[*].still", []),
    ],
)
def test_each_form_finds_what_kubectl_finds(text: str, found: list[Any]) -> None:
    path = parse(text)
    assert isinstance(path, JsonPath), path
    assert path.find(OBJ) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "$",
        "{}",
        "a",
        "..a",
        ".a[",
        ".a[]",
        ".a[1:2]",
        ".a[?(@.b>1)]",
        ".a b",
        f".{'a' * 512}",
    ],
)
def test_other_forms_are_refused(text: str) -> None:
    path = parse(text)
    assert isinstance(path, InvalidInput)
    assert path.reason == "InvalidPath"


@given(st.text(alphabet=".[]*?(@)='\"\\a0{}$-", max_size=30))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    path = parse(text)
    if isinstance(path, JsonPath):
        assert isinstance(path.find(OBJ), list)
