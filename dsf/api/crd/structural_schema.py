"""Convert a pydantic JSON schema to a structural OpenAPI v3 schema; `status.conditions` in it.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field

from dsf.api.wire_model import WireModel

Schema = dict[str, Any]

INT_OR_STRING = "x-kubernetes-int-or-string"
_RULES = "x-kubernetes-validations"
_KEPT = "x-kubernetes-preserve-unknown-fields"
_COUNTED = {
    "array": {"minLength": "minItems", "maxLength": "maxItems"},
    "object": {"minLength": "minProperties", "maxLength": "maxProperties"},
}
"""What pydantic's limits of a length are called where a text is one of the forms."""
_EXACT = 2**53
"""The largest integer up to which a float can have each."""
_LIMITS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def rule(text: str, message: str, field_path: str | None = None) -> Schema:
    """Return one CEL rule, with the message and the field path of its error."""
    return {"rule": text, "message": message, **({"fieldPath": field_path} if field_path else {})}


def rules(*listed: Schema) -> Schema:
    """Return the schema keyword of CEL rules."""
    return {_RULES: list(listed)}


def required(field: str, message: str) -> Schema:
    """Return the CEL rule of a field that has to be there.

    An API server evaluates no rule of an object that lacks a field in `required`, and its message
    says nothing but the name of the field.
    """
    return rule(f"has(self.{field})", message)


def refused_fields(schema: Schema, advice: Mapping[str, str], type_: str = "object") -> None:
    """Add fields to a schema that are refused, each with what to write instead.

    An API server drops fields that a schema lacks before any rule sees them.
    """
    for field, instead in advice.items():
        kept = {_KEPT: True} if type_ == "object" else {}
        described = {"type": type_, "description": f"Refused: {instead}.", **kept}
        schema["properties"][field] = described
        schema[_RULES].append(rule(f"!has(self.{field})", instead, f".{field}"))


def structural(model: type[BaseModel]) -> Schema:
    """Return the structural schema of a model.

    It has no references, titles, examples and unions with null.
    """
    schema = model.model_json_schema(by_alias=True)
    return _inline(schema, schema.get("$defs", {}))


def _inline(node: Mapping[str, Any], definitions: Mapping[str, Schema]) -> Schema:
    merged = _keeping(_resolve(node, definitions))
    result: Schema = {}
    for key, value in merged.items():
        match key:
            case "title" | "examples" | "$defs":
                continue
            case "ge" | "le":  # pydantic's own limits of a quantity
                continue
            case "properties":
                result[key] = {name: _inline(sub, definitions) for name, sub in value.items()}
            case "additionalProperties" if not isinstance(value, Mapping):
                continue
            case "items" | "additionalProperties":
                result[key] = _inline(value, definitions)
            case "const":
                result["enum"] = [value]
            case "exclusiveMinimum" | "exclusiveMaximum":
                result[key] = True  # OpenAPI v3.0: a flag beside the limit
                result[_LIMITS[key]] = value
            case "default" if value is None:
                continue
            case _:
                result[key] = deepcopy(value)
    return _integer(result) if result.get("type") == "integer" else result


def _integer(schema: Schema) -> Schema:
    """Return the schema of an integer with its format; an API server reads limits as floats."""
    exact = schema.get("maximum", 0) <= _EXACT
    kept = schema if exact else {key: schema[key] for key in schema if key != "maximum"}
    return {**kept, "format": kept.get("format", "int64")}


def _keeping(node: Schema) -> Schema:
    """Return a schema that keeps further properties without describing them.

    A structural schema has either properties or additionalProperties.
    """
    if "properties" not in node or not isinstance(node.get("additionalProperties"), Mapping):
        return node
    return {key: node[key] for key in node if key != "additionalProperties"} | {_KEPT: True}


def _resolve(node: Mapping[str, Any], definitions: Mapping[str, Schema]) -> Schema:
    """Follow references and drop the null branch; sibling keywords win."""
    outer = {key: value for key, value in node.items() if key not in {"$ref", "anyOf"}}
    inner: Mapping[str, Any] = {}
    if "$ref" in node:
        inner = definitions[node["$ref"].rsplit("/", 1)[-1]]
    elif "anyOf" in node:
        inner, outer = _branch(node["anyOf"], outer)
    if not inner:
        return outer
    return {**_resolve(inner, definitions), **outer}


def _branch(branches: Sequence[Schema], outer: Schema) -> tuple[Schema, Schema]:
    """Return the branch of a union that a structural schema can have, and what is said beside it.

    A number or a text is an int-or-string, as quantities of Kubernetes are. Of a list or an object
    and its short form in a text, the text is left out.
    """
    found = [branch for branch in branches if branch.get("type") != "null"]
    if len(found) > 1 and all(branch.get("type") in ("number", "string") for branch in found):
        return {INT_OR_STRING: True}, outer
    *_, text = found
    if len(found) == 2 and text == {"type": "string"}:  # noqa: PLR2004 - the form and its text
        counted = _COUNTED[found[0].get("type", "object")]
        outer = {counted.get(key, key): value for key, value in outer.items()}
        return found[0], outer
    (inner,) = found
    return inner, outer


Item = TypeVar("Item")

AtomicList = Annotated[list[Item], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})]
"""A list that is applied as a whole, not merged item by item."""

Timestamp = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""A time as RFC 3339 writes it."""


class ConditionModel(WireModel):
    """One aspect of the object's current state (`meta/v1` Condition)."""

    type: str = Field(max_length=316, description="The aspect that it is about, such as Ready.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether the aspect holds.")
    reason: str = Field(
        min_length=1,
        max_length=1024,
        pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        description="Why, in one word for programs, such as Unreachable.",
    )
    message: str = Field(max_length=32768, description="Why, in words for people, and what to do.")
    last_transition_time: Timestamp = Field(description="When the status last changed.")
    observed_generation: int | None = Field(
        None,
        ge=0,
        description="metadata.generation that it is about; a lower one than the object's means"
        " that the latest change is not in it yet.",
    )


ConditionList = Annotated[
    list[ConditionModel],
    Field(
        description="The object's state by aspect, one entry for each type.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]
