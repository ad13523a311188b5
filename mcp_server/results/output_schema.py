"""Output schemas in few words: the fields of a result and their types, without what is inside."""

from collections.abc import Mapping
from typing import Any

from optimizer.wire.base import ResultPart


def outline(result: type[ResultPart]) -> dict[str, Any]:
    """Return the JSON schema of a result one level deep.

    A full schema of all results takes five times the tokens of everything else that tools say.
    """
    full = result.model_json_schema(mode="serialization")
    fields = full.get("properties", {})
    return {
        "type": "object",
        "properties": {name: {"type": _type(field)} for name, field in fields.items()},
    }


def _type(field: Mapping[str, Any]) -> Any:
    if "type" in field:
        return field["type"]
    if "$ref" in field:
        return "object"
    if "anyOf" in field:
        found = [_type(option) for option in field["anyOf"]]
        return found if len(found) > 1 else found[0]
    return "string"
