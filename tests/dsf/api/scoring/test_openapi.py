"""The contract as documents: valid, equal to those in docs/, and accepting what we accept."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dsf.api.scoring.openapi import BODIES, EXAMPLES, json_schemas, openapi
from dsf.cli.root import root
from tests.command_line import invoked
from tests.repository import ROOT

PUBLISHED = ROOT / "docs" / "scoring-api"


def accepted(name: str, document: Any) -> bool:
    validator = jsonschema.Draft202012Validator(json_schemas()[name])
    return bool(validator.is_valid(document))


def config(**source: Any) -> dict[str, Any]:
    return {"name": "x", "source": source, "scoring": {"params": {"name": "s", "interval": 30}}}


def test_the_documents_in_docs_are_what_the_command_writes(tmp_path: Path) -> None:
    code, out, _ = invoked(root, "scorer", "openapi", "--output-dir", str(tmp_path))
    assert code == 0
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text() for path in PUBLISHED.iterdir()}, "make crds"
    assert sorted(out.split()) == sorted(str(tmp_path / name) for name in written)


def test_the_command_prints_the_document() -> None:
    assert yaml.safe_load(invoked(root, "scorer", "openapi")[1]) == openapi()


def test_a_folder_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, err = invoked(root, "scorer", "openapi", "--output-dir", str(tmp_path / "file" / "x"))
    assert (code, err.count("\n")) == (1, 1)
    assert "cannot write to" in err


@pytest.mark.parametrize("name", BODIES)
def test_a_schema_is_valid_and_accepts_its_example(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schemas()[name])
    assert accepted(name, EXAMPLES[BODIES[name]])
    BODIES[name].model_validate(EXAMPLES[BODIES[name]])


def test_every_reference_of_the_document_is_defined() -> None:
    document = openapi()
    defined = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    bodies = {f"#/components/schemas/{model.__name__}" for model in BODIES.values()}
    assert bodies <= set(references_in(document)) == defined


def references_in(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if "$ref" in node else []
        return own + [found for value in node.values() for found in references_in(value)]
    if isinstance(node, list):
        return [found for value in node for found in references_in(value)]
    return []


@pytest.mark.parametrize("type_", ["Prometheus", "prometheus", "NONE", "openTelemetry"])
def test_a_source_type_has_any_letter_case(type_: str) -> None:
    assert accepted("config", config(type=type_))


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("config", config(type="graphite")),
        ("config", config(params={"step": 0})),
        ("config", {"name": "x", "source": {}}),
        ("scoring-request", {"data": [{"metric": {}, "values": [[0, 1]]}]}),
        ("scoring-request", {"data": [{"metric": {"pod": 1}, "values": []}]}),
        ("scoring-response", {"results": [{"metric": {}, "score": "high"}]}),
        ("scoring-response", {"results": [{"metric": {}}]}),
    ],
)
def test_a_schema_refuses_what_we_refuse(name: str, document: Any) -> None:
    assert not accepted(name, document)


def test_no_pattern_needs_more_than_ecma_262() -> None:
    assert "(?" not in str(json_schemas()) + str(openapi())
    assert "x-kubernetes" not in str(json_schemas()) + str(openapi())
