"""Compiled schemas decide as the schema's definition does: pruning, defaults, and each keyword."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dsf.api.crd.definitions import crds
from dsf.kube.resources.ocm import ocm_crds
from dsf.kube.schema.json_values import accepted
from dsf.kube.schema.object_metadata import OBJECT_META
from dsf.kube.schema.pruning import META, PRESERVE, Schema, defaulted, pruned, without_nulls
from dsf.kube.schema.schema_errors import SchemaErrors
from dsf.kube.schema.schema_validation import SchemaValidator

SCHEMAS: dict[str, Schema] = {
    crd["spec"]["names"]["kind"]: version["schema"]["openAPIV3Schema"]
    for crd in (*ocm_crds(), *map(accepted, crds()))
    for version in crd["spec"]["versions"]
} | {"ObjectMeta": OBJECT_META}

VALIDATORS = {name: SchemaValidator(schema) for name, schema in SCHEMAS.items()}

TEXTS = (
    "",
    "a",
    "a/b",
    "True",
    "1Ki",
    "2026-11-20T12:00:00Z",
    "x" * 400,
    "1\n",
    "é",
    "100%",
    "None",
)
NUMBERS = (0, 1, -1, 100, 101, 2**31, 2**63 - 1, 2**63, 0.5, 1.0, 1e300, -0.5)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from((*NUMBERS, *TEXTS)),
    st.just([]),
    st.just({}),
    st.just([None]),
    st.just({"a": 1}),
)


@st.composite
def near(draw: st.DrawFn, schema: Schema) -> Any:
    """Draw a value that a schema allows, but for a few places."""
    if draw(st.integers(0, 24)) == 0:
        return draw(ODD)
    match schema.get("type"):
        case "object":
            return _object(draw, schema)
        case "array":
            items = [draw(near(schema.get("items", {}))) for _ in range(draw(st.integers(0, 3)))]
            return items + items[:1] if draw(st.integers(0, 5)) == 0 else items
        case "string":
            drawn = st.sampled_from((*schema.get("enum", TEXTS), *TEXTS))
        case "integer" | "number":
            limits = [schema[key] for key in ("minimum", "maximum") if key in schema]
            drawn = st.sampled_from((*limits, *NUMBERS))
        case other:
            drawn = st.booleans() if other == "boolean" else ODD
    return draw(drawn)


def _object(draw: st.DrawFn, schema: Schema) -> dict[str, Any]:
    properties = schema.get("properties", {})
    found = {
        name: draw(near(member))
        for name, member in properties.items()
        if name in schema.get("required", ()) or draw(st.booleans())
    }
    others = schema.get("additionalProperties") or ({} if schema.get(PRESERVE) else None)
    if others is not None:
        found |= {name: draw(near(others)) for name in draw(st.sets(st.sampled_from(TEXTS)))}
    if draw(st.integers(0, 9)) == 0:
        found["unknown"] = draw(ODD)
    return found


@pytest.mark.parametrize("name", SCHEMAS)
@given(st.data())
def test_a_compiled_schema_agrees_with_its_definition(name: str, data: st.DataObject) -> None:
    value = accepted(data.draw(near(SCHEMAS[name])))
    explained = SchemaErrors(SCHEMAS[name]).errors(value)
    assert list(map(str, VALIDATORS[name].errors(value))) == list(map(str, explained))
    if isinstance(value, dict):
        agrees_on_what_is_stored(name, {k: v for k, v in value.items() if k not in META})


def agrees_on_what_is_stored(name: str, value: dict[str, Any]) -> None:
    completed = VALIDATORS[name].completed(value)
    if completed is None:
        return
    schema = SCHEMAS[name]
    kept, unknown = pruned(value, schema, root=name != "ObjectMeta")
    assert unknown == []
    stored = defaulted(without_nulls(kept, schema), schema)
    wanted = {key: item for key, item in stored.items() if key not in META}
    assert json.dumps(completed, sort_keys=True) == json.dumps(wanted, sort_keys=True)
    said = [str(error) for error in SchemaErrors(schema).errors(completed)]
    assert [text for text in said if not text.startswith(tuple(META))] == []


ALL: Schema = {
    "type": "object",
    "properties": {
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}},
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key"],
            "items": {
                "type": "object",
                "properties": {"key": {"type": "string", "pattern": "^a", "default": "a"}},
            },
        },
        "some": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "boolean"}},
        "short": {"type": "string", "minLength": 1, "maxLength": 2, "nullable": True},
        "byte": {"type": "string", "format": "byte"},
        "ratio": {"type": "number", "minimum": 0.5, "maximum": 2},
        "whole": {"type": "integer", "minimum": 1, "format": "int32"},
        "large": {"type": "integer", "format": "uint64"},
        "either": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+$"},
        "chosen": {"type": "string", "enum": ["a", "b"], "default": "b"},
        "bare": {"type": "object"},
        "free": {"type": "object", PRESERVE: True},
    },
}
SCHEMAS["every keyword"] = ALL
VALIDATORS["every keyword"] = SchemaValidator(ALL)


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({}, True),
        ({"set": [1, 2, 1.5]}, True),
        ({"set": [1, 2, 1]}, False),
        ({"map": [{"key": "a"}, {"key": "ab"}]}, True),
        ({"map": [{"key": "a"}, {"key": "a"}]}, False),
        ({"map": [{}, {"key": "a"}]}, False),
        ({"map": [{"key": "b"}]}, False),
        ({"some": []}, False),
        ({"some": [True, False]}, True),
        ({"some": [True] * 3}, False),
        ({"some": [1]}, False),
        ({"short": None}, True),
        ({"short": "éé"}, True),
        ({"short": ""}, False),
        ({"short": "abc"}, False),
        ({"byte": "aGVq"}, True),
        ({"byte": "a"}, False),
        ({"ratio": 0.5}, True),
        ({"ratio": 2}, True),
        ({"ratio": 0}, False),
        ({"ratio": 2.5}, False),
        ({"whole": 1}, True),
        ({"whole": 0}, False),
        ({"whole": 2**31}, False),
        ({"whole": True}, False),
        ({"large": 2**40}, True),
        ({"either": 5}, True),
        ({"either": "5"}, True),
        ({"either": "5\n"}, False),
        ({"either": 5.5}, False),
        ({"chosen": "c"}, False),
        ({"free": {"a": [None, {}]}}, True),
        ({"bare": {}}, True),
    ],
)
def test_each_keyword_decides(value: dict[str, Any], fits: bool) -> None:
    kept = defaulted(without_nulls(value, ALL), ALL)
    assert (VALIDATORS["every keyword"].errors(kept) == []) == fits
    completed = VALIDATORS["every keyword"].completed(value)
    assert completed == (kept if fits and "large" not in value else None)
    assert completed is not value
    agrees_on_what_is_stored("every keyword", value)


@pytest.mark.parametrize("value", [{"x": 1}, {"bare": {"a": 1}}, {"either": None}, {"map": [1]}])
def test_what_is_unknown_or_null_is_left_to_pruning(value: dict[str, Any]) -> None:
    assert VALIDATORS["every keyword"].completed(value) is None


@given(st.text(max_size=30))
@example("1" * 50_000 + "x")
def test_patterns_match_in_linear_time(text: str) -> None:
    value = {"allocatable": {"cpu": text}}
    schema = SCHEMAS["ManagedCluster"]["properties"]["status"]
    errors = SchemaValidator(schema).errors(value)
    assert list(map(str, errors)) == list(map(str, SchemaErrors(schema).errors(value)))
