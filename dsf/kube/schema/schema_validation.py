"""Structural schemas compiled to types of msgspec, which checks values at the speed of C.

Only values without errors are decided here. What a type cannot express, and every other value, is
left to `schema_errors`, which says what is wrong.
"""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from math import ceil, floor
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from dsf.kube.schema import string_formats
from dsf.kube.schema.field_errors import ObjectFieldError
from dsf.kube.schema.pruning import META, PRESERVE, Schema

_MEANINGLESS = frozenset(
    {
        "type",
        "description",
        "title",
        "example",
        "default",
        "nullable",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-map-type",
        "x-kubernetes-validations",
    }
)
"""Keywords that say nothing about a value, or that others read."""
_LIST_TYPE, _MAP_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EXPRESSED: Mapping[str | None, frozenset[str]] = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format", "enum"}),
    "integer": frozenset({"minimum", "maximum", "format"}),
    "number": frozenset({"minimum", "maximum", "format"}),
    "boolean": frozenset(),
    "array": frozenset({"items", "minItems", "maxItems", _LIST_TYPE, _MAP_KEYS}),
    "object": frozenset({"properties", "required", "additionalProperties", PRESERVE}),
    None: frozenset({_INT_OR_STRING, "pattern"}),
}


class SchemaValidator:
    """A structural schema, compiled for validation when it is first used."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def completed(self, value: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return an object with its defaults; None if a field is unknown, null or maybe wrong.

        `apiVersion`, `kind` and `metadata` are left out of the schema.
        """
        try:
            read = msgspec.convert(value, self._pruning_type, dec_hook=_read)
            found: dict[str, Any] = msgspec.to_builtins(read, enc_hook=attrgetter("value"))
        except (msgspec.ValidationError, TypeError, ValueError):
            return None
        return found

    def errors(self, value: Any, field: str = "") -> list[ObjectFieldError]:
        """Return the errors in a value; `field` is its path in the object."""
        try:
            msgspec.convert(value, self._type, dec_hook=_read)
        except (msgspec.ValidationError, TypeError, ValueError):
            return self._explained(value, field)
        return []

    @cached_property
    def _pruning_type(self) -> Any:
        properties = {
            name: member
            for name, member in self._schema.get("properties", {}).items()
            if name not in META
        }
        required = [name for name in self._schema.get("required", ()) if name not in META]
        schema = {**self._schema, "properties": properties, "required": required}
        return _type(schema, prunes=True)

    @cached_property
    def _type(self) -> Any:
        return _type(self._schema, prunes=False)

    @cached_property
    def _explained(self) -> Callable[[Any, str], list[ObjectFieldError]]:
        # jsonschema costs a quarter of a second, and most programs never meet a wrong value.
        from dsf.kube.schema.schema_errors import SchemaErrors  # noqa: PLC0415

        return SchemaErrors(self._schema).errors


class _Checked:
    """A value that a function has checked, because msgspec can't."""

    __slots__ = ("value",)
    check: ClassVar[Callable[[Any], Any]]

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Checked) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _checked(check: Callable[[Any], Any]) -> type[_Checked]:
    """Return a type whose values `check` returns; it raises ValueError for others."""
    return type("_CheckedBy", (_Checked,), {"__slots__": (), "check": staticmethod(check)})


def _read(of: type[_Checked], value: Any) -> _Checked:
    return of(of.check(value))


def _undecided(value: Any) -> Any:
    raise ValueError("the compiled schema can't tell", value)


_UNDECIDED = _checked(_undecided)


def _type(schema: Schema, *, prunes: bool) -> Any:
    """Return the type of the values that a schema allows.

    `prunes`: of those that also have neither unknown fields nor missing defaults.
    """
    kind = schema.get("type")
    if not schema.keys() <= _MEANINGLESS | _EXPRESSED.get(kind, frozenset()):
        return _UNDECIDED
    made = _TYPES[kind](schema, prunes)
    return made | None if schema.get("nullable") and made is not _UNDECIDED else made


def _text(schema: Schema, _: bool) -> Any:
    keywords = schema.keys() - _MEANINGLESS
    if keywords == {"enum"}:
        return Literal[tuple(schema["enum"])]
    if keywords <= {"minLength", "maxLength"}:
        limits = (schema.get("minLength"), schema.get("maxLength"))
        return Annotated[str, msgspec.Meta(min_length=limits[0], max_length=limits[1])]
    return _checked_text(schema)


def _checked_text(schema: Schema, *, numbers: bool = False) -> Any:
    """Return the type of texts, and with `numbers` of integers, that meet all keywords."""
    least, most = schema.get("minLength", 0), schema.get("maxLength", float("inf"))
    pattern, format_ = schema.get("pattern", ""), schema.get("format", "")
    allowed = schema.get("enum")

    def check(value: Any) -> Any:
        if numbers and type(value) is int:
            return value
        if (
            type(value) is str
            and least <= len(value) <= most
            and string_formats.matches(value, pattern)
            and string_formats.fits(value, format_)
            and (allowed is None or value in allowed)
        ):
            return value
        raise ValueError

    return _checked(check)


def _integer(schema: Schema, _: bool) -> Any:
    numbers = string_formats.integers(schema.get("format", ""))
    least = max(numbers[0], ceil(schema.get("minimum", numbers[0])))
    most = min(numbers[-1], floor(schema.get("maximum", numbers[-1])))
    if most > 2**63 - 1:
        return _UNDECIDED
    return Annotated[int, msgspec.Meta(ge=least, le=most)]


def _number(schema: Schema, prunes: bool) -> Any:
    limits = msgspec.Meta(ge=schema.get("minimum"), le=schema.get("maximum"))
    return _integer(schema, prunes) | Annotated[float, limits]


def _int_or_string(schema: Schema, _: bool) -> Any:
    return _checked_text(schema, numbers=True) if schema.get(_INT_OR_STRING) else _UNDECIDED


def _list(schema: Schema, prunes: bool) -> Any:
    if not isinstance(schema.get("items"), Mapping):
        return _UNDECIDED
    item: Any = _type(schema["items"], prunes=prunes)
    limits = msgspec.Meta(min_length=schema.get("minItems"), max_length=schema.get("maxItems"))
    made: Any = Annotated[list[item], limits]
    match schema.get(_LIST_TYPE, "atomic"):
        case "atomic":
            return made
        case "set":
            return _checked(partial(_unique, made, lambda member: member))
        case "map" if isinstance(item, type) and issubclass(item, msgspec.Struct):
            named = dict(zip(item.__struct_encode_fields__, item.__struct_fields__, strict=True))
            keys = schema.get(_MAP_KEYS, ())
            if keys and named.keys() >= set(keys):
                key = attrgetter(*(named[name] for name in keys))
                return _checked(partial(_unique, made, key))
    return _UNDECIDED


def _unique(of: Any, key: Callable[[Any], Any], value: Any) -> list[Any]:
    found: list[Any] = msgspec.convert(value, of, dec_hook=_read)
    if len({key(item) for item in found}) < len(found):
        raise ValueError
    return found


def _object(schema: Schema, prunes: bool) -> Any:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    others = schema.get("additionalProperties")
    if others and (properties or required):
        return _UNDECIDED
    if others:
        values: Any = _type(others, prunes=prunes) if isinstance(others, Mapping) else Any
        return dict[str, values]
    if not properties and not required and (schema.get(PRESERVE) or not prunes):
        return dict[str, Any]
    if not properties.keys() >= set(required) or (prunes and schema.get(PRESERVE)):
        return _UNDECIDED
    fields = [
        (f"field{number}", *_field(member, name in required, prunes))
        for number, (name, member) in enumerate(properties.items())
    ]
    return msgspec.defstruct(
        "_Object",
        fields,
        rename=dict(zip((field[0] for field in fields), properties, strict=True)),
        kw_only=True,
        forbid_unknown_fields=prunes,
        gc=False,
    )


def _field(schema: Schema, required: bool, prunes: bool) -> tuple[Any, ...]:
    """Return the type of a member, and its default unless the member is required."""
    of = _type(schema, prunes=prunes)
    if prunes and "default" in schema:
        try:
            msgspec.convert(schema["default"], of, dec_hook=_read)
        except (msgspec.ValidationError, TypeError, ValueError):
            return (_UNDECIDED,)
        default = partial(msgspec.convert, schema["default"], of, dec_hook=_read)
        return of, msgspec.field(default_factory=default)
    return (of,) if required else (of | msgspec.UnsetType, msgspec.UNSET)


_TYPES: Mapping[str | None, Callable[[Schema, bool], Any]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": lambda _, __: bool,
    "array": _list,
    "object": _object,
    None: _int_or_string,
}
