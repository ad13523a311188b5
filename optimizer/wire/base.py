"""The base classes of every part of a request and of a result.

A request refuses unknown fields, so that a misspelt field is not ignored silently.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    TypeAdapter,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from dsf.api import name_syntax
from dsf.api.untrusted_text import UntrustedName, UntrustedText, listed, one_line
from dsf.api.wire_model import first_error_only
from dsf.kube.port import Object

MAX_FIELDS = 20
"""Fields that one object of a request may have, unless its model has more."""

ObjectName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=name_syntax.DNS_SUBDOMAIN_LENGTH,
        pattern=name_syntax.DNS_SUBDOMAIN,
        description="Name of a Kubernetes object.",
    ),
]

Name = Annotated[str, AfterValidator(UntrustedName)]
"""A name that the request or an object on the hub chose: an object, a device, an app, a score."""

Text = Annotated[str, AfterValidator(UntrustedText)]
"""What somebody wrote for people, such as a description."""

Sentence = Annotated[str, AfterValidator(one_line)]
"""Words of this program, which may quote others."""


def _named(obj: Object) -> Object:
    """Return an object that has what `changes` reads; a record may have been made by hand."""
    named = [obj.get("metadata"), *(obj.get("subjects") or ())]
    if not isinstance(obj.get("kind"), str) or not all(
        isinstance(part, dict) and isinstance(part.get("name"), str) for part in named
    ):
        raise ValueError("no generated object")
    for field in ("labels", "annotations"):
        texts = obj["metadata"].get(field) or {}
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise ValueError(f"{field} of no generated object")
    return obj


GeneratedObject = Annotated[Object, AfterValidator(_named)]
"""An object that the optimizer generates, as a record has it."""


def _untrusted(part: Any) -> Any:
    """Return a JSON value in which each text has the type of text that others wrote."""
    match part:
        case str():
            return UntrustedText(part)
        case Mapping():
            return {UntrustedText(key): _untrusted(value) for key, value in part.items()}
        case list() | tuple():
            return [_untrusted(value) for value in part]
        case _:
            return part


Document = Annotated[dict[str, Any], AfterValidator(_untrusted)]
"""A whole JSON object that others wrote, such as a Kubernetes object or a recorded request."""


class RequestPart(BaseModel):
    """A frozen part of a request; names are camelCase on the wire."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
    )

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, value: Any) -> Any:
        most = max(MAX_FIELDS, len(cls.model_fields))
        if isinstance(value, Mapping) and len(value) > most:
            raise ValueError(f"must have at most {most} fields")
        return value


class ResultPart(BaseModel):
    """A frozen part of a result; names are snake_case, as in the wire contract.

    A result always has all fields, so its schema requires those with a default too.
    """

    model_config = ConfigDict(
        frozen=True,
        json_schema_serialization_defaults_required=True,
        defer_build=True,  # a command uses few of them
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema, in which a collection is validated up to its first wrong item."""
        return first_error_only(handler(source))


def require_unique(names: Sequence[str], what: str) -> None:
    """Raise ValueError if a name occurs twice."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"{what} named twice: {listed(twice[:10])}")


_Schema = Mapping[str, Any]
_TIME = "2026-11-28T06:00:00Z"


def written_forms(field: FieldInfo, within: Sequence[str | int] = ()) -> list[str]:
    """Return how a field of a request is written as JSON, each alternative that is no text.

    `within`: the path of the part that is meant.
    """
    annotation: Any = Annotated[field.annotation, *field.metadata, None]
    schema = TypeAdapter[Any](annotation).json_schema()
    for part in within:
        schema = _inner(schema, part, schema.get("$defs", {}))
    forms = [_example(item, schema.get("$defs", {})) for item in _alternatives(schema)]
    return [json.dumps(form) for form in forms if isinstance(form, list | dict)]


def _inner(schema: _Schema, part: str | int, defs: _Schema) -> dict[str, Any]:
    found: Any = {}
    for item in _alternatives(_resolved(schema, defs)):
        inner = _resolved(item, defs)
        if isinstance(part, int):
            found = inner.get("items")
        else:
            found = inner.get("properties", {}).get(part) or _values(inner)
        if found:
            break
    return {**_resolved(found or {}, defs), "$defs": defs}


def _values(schema: _Schema) -> Any:
    """Return the schema of the values of an object with any names; None if it has none."""
    return next(iter(schema.get("patternProperties", {}).values()), None) or schema.get(
        "additionalProperties"
    )


def _resolved(schema: _Schema, defs: _Schema) -> _Schema:
    return defs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _alternatives(schema: _Schema) -> list[_Schema]:
    return [{**schema, "anyOf": None, **item} for item in schema.get("anyOf") or [schema]]


def _example(schema: _Schema, defs: _Schema) -> Any:
    """Return an example of a schema: what it must have, and fields that have examples."""
    schema = _resolved(_alternatives(_resolved(schema, defs))[0], defs)
    kind = schema.get("type")
    if examples := schema.get("examples") or schema.get("enum"):
        return examples[0]
    if kind == "array":
        least = schema.get("minItems") or schema.get("minLength", 1)
        return [_example(schema["items"], defs)] * least
    if kind == "object":
        fields = schema.get("properties", {})
        needed = schema.get("required", ())
        names = [name for name in fields if name in needed or "examples" in fields[name]]
        found = {name: _example(fields[name], defs) for name in names or [*fields][:1]}
        return found or {"name": _example(_values(schema) or {}, defs)}
    if kind in ("number", "integer", "boolean"):
        return kind == "boolean" or max(1, schema.get("minimum", 1))
    return _TIME if schema.get("format") == "date-time" else "name"
