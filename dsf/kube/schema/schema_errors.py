"""What is wrong with a value by a structural schema, in the API server's words.

The library `jsonschema` checks the keywords. This module adds what OpenAPI and Kubernetes add or
treat differently.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator as JsonValidator
from jsonschema.validators import extend

from dsf.kube.schema import field_errors, string_formats
from dsf.kube.schema.field_errors import ObjectFieldError
from dsf.kube.schema.pruning import Schema, joined, members

_SAME = (
    "type",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "multipleOf",
    "required",
    "enum",
    "pattern",
    "format",
)
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


class SchemaErrors:
    """The errors that a structural schema finds."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._validator = _Validator(_translated(schema))

    def errors(self, value: Any, field: str = "") -> list[ObjectFieldError]:
        """Return the errors in a value; `field` is its path in the object."""
        keywords = [_field_error(error, field) for error in self._validator.iter_errors(value)]
        return [*keywords, *_list_errors(value, self._schema, field)]


def _list_errors(value: Any, schema: Schema | None, field: str) -> list[ObjectFieldError]:
    """Return an error for each duplicate in lists of type set and map."""
    if not schema:
        return []
    if isinstance(value, list):
        items = schema.get("items")
        inner = [
            e for i, item in enumerate(value) for e in _list_errors(item, items, f"{field}[{i}]")
        ]
        return [*_duplicates(value, schema, field), *inner]
    if not isinstance(value, dict):
        return []
    return [
        error
        for key, item, member in members(value, schema)
        for error in _list_errors(item, member, joined(field, key))
    ]


def _duplicates(value: list[Any], schema: Schema, field: str) -> list[ObjectFieldError]:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            keys = value
        case "map":
            for index, item in enumerate(value):
                if item is not None and not isinstance(item, dict):
                    problem = "must be an object for an array of list-type map"
                    return [field_errors.wrong(f"{field}[{index}]", item, problem)]
            names = schema.get("x-kubernetes-list-map-keys", [])
            keys = [{name: item[name] for name in names if name in (item or {})} for item in value]
        case _:
            return []
    return [field_errors.duplicate(f"{field}[{index}]", keys[index]) for index in _repeated(keys)]


def _repeated(keys: Iterable[Any]) -> Iterator[int]:
    times: dict[Any, int] = {}
    for index, key in enumerate(keys):
        frozen = _frozen(key)
        times[frozen] = times.get(frozen, 0) + 1
        if times[frozen] == 2:  # noqa: PLR2004 - reported once, at the second occurrence
            yield index


def _frozen(value: Any) -> Any:
    match value:
        case dict():
            return frozenset((key, _frozen(item)) for key, item in value.items())
        case list():
            return tuple(map(_frozen, value))
    return (type(value), value)


def _translated(schema: Schema) -> dict[str, Any]:
    """Return the equivalent JSON Schema 2020-12."""
    result: dict[str, Any] = {key: schema[key] for key in _SAME if key in schema}
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    if schema.get("nullable") and "type" in result:
        result["type"] = [*_listed(result["type"]), "null"]
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive):
            result[exclusive] = result.pop(limit)
    for key in ("allOf", "anyOf", "oneOf"):
        if key in schema:
            result[key] = [_translated(branch) for branch in schema[key]]
    for key in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            result[key] = _translated(schema[key])
    if "properties" in schema:
        result["properties"] = {
            key: _translated(member) for key, member in schema["properties"].items()
        }
    return result


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _required(
    _: JsonValidator, names: Iterable[str], value: Any, __: Schema
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                yield ValidationError("required", path=[name])


def _pattern(_: JsonValidator, pattern: str, value: Any, __: Schema) -> Iterator[ValidationError]:
    if isinstance(value, str) and not string_formats.matches(value, pattern):
        yield ValidationError("pattern")


def _format(_: JsonValidator, format_: str, value: Any, __: Schema) -> Iterator[ValidationError]:
    if not string_formats.fits(value, format_):
        yield ValidationError("format")


_Validator: Any = extend(  # type: ignore[no-untyped-call]  # the stubs leave it untyped
    Draft202012Validator,
    {"required": _required, "pattern": _pattern, "format": _format},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


def _field_error(error: ValidationError, field: str) -> ObjectFieldError:
    inner = _path(error.absolute_path)
    path = joined(field, inner) if inner else field
    keyword, value = str(error.validator), error.instance
    limit: Any = error.validator_value
    size: Any = value
    match keyword:
        case "required":
            return field_errors.required(path)
        case "enum":
            return field_errors.unsupported(path, value, limit)
        case "maxLength":
            return field_errors.too_long(path, limit)
        case "maxItems" | "maxProperties":
            return field_errors.too_many(path, len(size), limit)
        case "type" | "format":
            found = next((name for type_, name in _TYPES if isinstance(value, type_)), "null")
            return _wrong_type(path, inner, found if keyword == "type" else value, limit)
    return field_errors.wrong(path, value, f"{inner} in body {_demand(keyword, limit)}")


def _wrong_type(path: str, inner: str, shown: Any, limit: Any) -> ObjectFieldError:
    expected = ",".join(name for name in _listed(limit) if name != "null")
    text = f"{inner} in body must be of type {expected}: {field_errors.shown(shown)}"
    return ObjectFieldError("FieldValueTypeInvalid", path, text, shown)


def _demand(keyword: str, limit: Any) -> str:
    demands = {
        "minimum": f"should be greater than or equal to {limit}",
        "maximum": f"should be less than or equal to {limit}",
        "exclusiveMinimum": f"should be greater than {limit}",
        "exclusiveMaximum": f"should be less than {limit}",
        "multipleOf": f"should be a multiple of {limit}",
        "minLength": f"should be at least {limit} chars long",
        "minItems": f"should have at least {limit} items",
        "minProperties": f"should have at least {limit} properties",
        "pattern": f"should match '{limit}'",
        "uniqueItems": "shouldn't contain duplicates",
        "anyOf": "must validate at least one schema (anyOf)",
        "oneOf": "must validate one and only one schema (oneOf)",
        "not": "must not validate the schema (not)",
    }
    return demands.get(keyword, f"does not satisfy {keyword}")


def _path(parts: Iterable[str | int]) -> str:
    path = ""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else joined(path, part)
    return path
