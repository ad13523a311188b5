"""Output schemas in few words: the fields of a result, and of the items of a few lists."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from optimizer.wire.base import ResultPart


def outline(result: type[ResultPart], inner: Collection[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of a result one level deep; of the lists in `inner`, also their items.

    A full schema of all results takes five times the tokens of everything else that tools say.
    """
    full = _schema(result)
    definitions = full.get("$defs", {})
    return {
        "type": "object",
        "properties": {
            name: {"type": _type(field), **(_items(field, definitions) if name in inner else {})}
            for name, field in full.get("properties", {}).items()
        },
    }


@cache
def _schema(result: type[ResultPart]) -> Mapping[str, Any]:
    return result.model_json_schema(mode="serialization")


def _type(field: Mapping[str, Any]) -> Any:
    if "type" in field:
        return field["type"]
    if "$ref" in field:
        return "object"
    if "anyOf" in field:
        found = [_type(option) for option in field["anyOf"]]
        return found if len(found) > 1 else found[0]
    return "string"


def _items(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the names of the fields that each item of a list has."""
    item = definitions[field["items"]["$ref"].rpartition("/")[2]]
    return {"items": {"properties": {name: {} for name in item["properties"]}}}
