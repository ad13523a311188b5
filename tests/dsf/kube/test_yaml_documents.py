"""Documents of files: what is read, what names its place, and what it costs."""

import sys
from pathlib import Path
from types import FrameType

import pytest

from dsf.kube.yaml_documents import YamlFileError, documents, parsed_yaml

CALLS_PER_VALUE = 20
"""Calls of Python for each value; with a scanner in Python there are 140."""


def test_libyaml_scans_what_is_read() -> None:
    text = "items:\n" + "- metadata: {name: a, namespace: b}\n" * 100
    calls = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        (found,) = parsed_yaml(text)
    finally:
        sys.setprofile(None)
    assert len(found["items"]) == 100
    assert calls < CALLS_PER_VALUE * 100 * 6


def test_documents_come_by_path_with_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "c.json").write_text('{"a": [3]}')
    (tmp_path / "b.yml").write_text("a: 1\n---\n---\nwhen: 2026-01-01\n")
    (tmp_path / "other.txt").write_text("a: [")
    read = [(str(document), document.value) for document in documents(tmp_path)]
    assert read == [
        (f"{tmp_path}/b.yml, document 1", {"a": 1}),
        (f"{tmp_path}/b.yml, document 3", {"when": "2026-01-01"}),
        (f"{tmp_path}/z/c.json, document 1", {"a": [3]}),
    ]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.yaml", b"a: [", "a.yaml, line 1: "),
        ("a.yaml", b"a: 1\na: 2\n", "a.yaml, line 2: the key 'a' occurs twice"),
        ("a.yaml", b"1: 2\n", "a.yaml, line 1: the key 1 is not text"),
        ("a.json", b"{", "a.json: "),
        ("a.json", b'{"a": 1, "a": 2}', "a.json: the key 'a' occurs twice"),
        ("a.json", b'{"a": NaN}', "a.json: NaN is not a JSON value"),
        ("a.yaml", b"\xff\xfe\x00\x01", "a.yaml: "),
        ("a.yaml", None, "a.yaml: No such file"),
    ],
)
def test_a_problem_names_its_place_in_one_line(
    tmp_path: Path, name: str, text: bytes | None, problem: str
) -> None:
    file = tmp_path / name
    if text is None:
        file.symlink_to(tmp_path / "gone")
    else:
        file.write_bytes(text)
    for place in (tmp_path, file):
        with pytest.raises(YamlFileError) as refused:
            list(documents(place))
        assert str(refused.value).startswith(f"{tmp_path}/{problem}")
        assert "\n" not in str(refused.value)
