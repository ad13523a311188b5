"""Pruning and defaulting by a structural schema: unknown fields, nulls and defaults.

Schemas are the `openAPIV3Schema` of a CustomResourceDefinition. Source:
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsf.kube.schema.json_values import copied

Schema = Mapping[str, Any]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANYTHING: Schema = {"type": "object", PRESERVE: True}
META = frozenset({"apiVersion", "kind", "metadata"})
"""Fields that every object has, whatever its schema says of them."""


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that the schema lacks, and the fields that it knows at that place."""

    path: str
    known: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f'unknown field "{self.path}"'


def pruned(value: Any, schema: Schema, *, root: bool = True) -> tuple[Any, list[UnknownField]]:
    """Return a value without its unknown fields, and the unknown fields in order of their paths.

    At the root of an object (`root`), `apiVersion`, `kind` and `metadata` are always known.
    """
    found: list[UnknownField] = []
    result = _pruned(value, {**schema, EMBEDDED: True} if root else schema, "", found)
    return result, sorted(found, key=lambda unknown: unknown.path)


def _pruned(value: Any, schema: Schema | None, path: str, found: list[UnknownField]) -> Any:
    if isinstance(value, list):
        items = schema.get("items") if schema else None
        if items is None and schema and schema.get(PRESERVE):
            return value
        return [_pruned(item, items, f"{path}[{i}]", found) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {
        key: _pruned(item, _child(schema, key), joined(path, key), found)
        for key, item in value.items()
        if _keeps(schema, key) or _noted(joined(path, key), schema, found)
    }


def _keeps(schema: Schema | None, key: str) -> bool:
    if schema is None:
        return False
    return bool(
        key in schema.get("properties", {})
        or schema.get("additionalProperties")
        or schema.get(PRESERVE)
        or (schema.get(EMBEDDED) and key in META)
    )


def _child(schema: Schema | None, key: str) -> Schema | None:
    """Return the schema of a member; without one, the member is kept as it is."""
    if schema is None:
        return None
    if schema.get(EMBEDDED) and key in META:
        return ANYTHING
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if key in properties:
        return properties[key]
    additional = schema.get("additionalProperties")
    return additional if isinstance(additional, Mapping) else ANYTHING


def _noted(path: str, schema: Schema | None, found: list[UnknownField]) -> bool:
    if path not in META:
        found.append(UnknownField(path, tuple((schema or {}).get("properties", {}))))
    return False


def without_nulls(value: Any, schema: Schema | None) -> Any:
    """Return a value without nulls that the schema neither allows nor replaces with a default."""
    if isinstance(value, list):
        items = schema.get("items") if schema else None
        return [without_nulls(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_nulls(item, member)
        for key, item, member in members(value, schema)
        if not (item is None and _not_nullable(member) and "default" not in (member or {}))
    }


def defaulted(value: Any, schema: Schema | None) -> Any:
    """Return a value with defaults for missing members and for nulls that are not nullable."""
    if schema is None:
        return value
    if isinstance(value, list):
        items = schema.get("items")
        return [defaulted(_default(item, items), items) for item in value]
    if not isinstance(value, dict):
        return value
    missing = {
        key: copied(member["default"])
        for key, member in schema.get("properties", {}).items()
        if "default" in member and key not in value
    }
    return {
        key: defaulted(_default(item, member), member)
        for key, item, member in members({**value, **missing}, schema)
    }


def _default(item: Any, schema: Schema | None) -> Any:
    if item is None and _not_nullable(schema) and schema is not None:
        return copied(schema.get("default"))
    return item


def _not_nullable(schema: Schema | None) -> bool:
    return schema is not None and not schema.get("nullable", False)


def members(
    value: Mapping[str, Any], schema: Schema | None
) -> Iterator[tuple[str, Any, Schema | None]]:
    """Yield the members of a mapping: key, value and schema."""
    properties = schema.get("properties", {}) if schema else {}
    additional = schema.get("additionalProperties") if schema else None
    others = additional if isinstance(additional, Mapping) else None
    for key, item in value.items():
        yield key, item, properties.get(key, others)


def joined(path: str, key: str) -> str:
    """Return the path of a member; `path` is empty at the root of an object."""
    return f"{path}.{key}" if path else key
