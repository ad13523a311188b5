from pathlib import Path

import pytest

from dsf.kube.yaml_documents import YamlFileError, documents
from optimizer.cli.object_files import objects, request_of


def _file(tmp_path: Path, text: str, name: str = "a.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_document_of_every_file_is_read_in_order(tmp_path: Path) -> None:
    _file(tmp_path, '{"kind": "B", "apiVersion": "v1"}', "b.json")
    _file(tmp_path, "kind: A\n---\n---\nkind: AA\n", "a.yml")
    _file(tmp_path, "not read", "notes.txt")
    assert [found.value["kind"] for found in documents(tmp_path)] == ["A", "AA", "B"]


def test_the_items_of_a_list_are_objects(tmp_path: Path) -> None:
    text = "{apiVersion: v1, kind: List, items: [{kind: A, apiVersion: v1, metadata: {name: n}}]}"
    (found,) = documents(_file(tmp_path, text))
    assert [item["metadata"]["name"] for item in objects(found)] == ["n"]


def test_times_stay_text(tmp_path: Path) -> None:
    (found,) = documents(_file(tmp_path, "validUntil: 2026-11-20T12:00:00Z"))
    assert found.value == {"validUntil": "2026-11-20T12:00:00Z"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "a: ["),
        ("a.yaml", "!!python/object/apply:os.system [ls]"),
        ("a.json", "{"),
        ("a.json", "[" * 100_000),
    ],
)
def test_a_file_that_does_not_parse_is_named(tmp_path: Path, name: str, text: str) -> None:
    path = _file(tmp_path, text, name)
    with pytest.raises(YamlFileError) as caught:
        list(documents(path))
    assert str(path) in str(caught.value)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(YamlFileError, match=r"a\.yaml"):
        list(documents(path))


def test_an_object_without_a_name_is_refused(tmp_path: Path) -> None:
    (found,) = documents(_file(tmp_path, "{apiVersion: v1, kind: A}"))
    with pytest.raises(YamlFileError, match=r"without metadata\.name"):
        list(objects(found))


def test_a_wrong_request_names_its_fields(tmp_path: Path) -> None:
    (found,) = documents(_file(tmp_path, "{targetWorkloads: [{}], namespace: default}"))
    with pytest.raises(YamlFileError, match=r"targetWorkloads\[0\]\.name: Field required"):
        request_of(found)
