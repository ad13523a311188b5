"""Validation rules (`x-kubernetes-validations`) in CEL.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import cel
from cel import stdlib

from dsf.kube.schema import field_errors
from dsf.kube.schema.field_errors import OMITTED, ObjectFieldError
from dsf.kube.schema.pruning import EMBEDDED, Schema

_RESERVED = frozenset(
    (  # noqa: SIM905 - one word after the other is easier to compare with the source
        "true false null in as break const continue else for function if import let loop package "
        "namespace return var void while"
    ).split()
)
_ESCAPES = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_FAILURES = (ValueError, TypeError, LookupError, RuntimeError, ArithmeticError)
_UNKNOWN = ("messageExpression", "optionalOldSelf", "reason")
"""Fields of a rule that no CRD of ours and none of OCM's has."""


def _extensions() -> frozenset[str]:
    context = cel.Context()
    stdlib.add_stdlib_to_context(context)
    return frozenset(context.functions)


_EXTENSIONS = _extensions()


@dataclass(frozen=True, slots=True)
class _Rule:
    source: str
    program: cel.Program
    message: str
    field: str
    on_transition: bool
    extended: bool


@dataclass(frozen=True, slots=True)
class ValidationRules:
    """The validation rules of a schema and of its nested schemas."""

    schema: Schema
    rules: tuple[_Rule, ...]
    properties: Mapping[str, "ValidationRules"]
    items: "ValidationRules | None"
    additional: "ValidationRules | None"

    def errors(self, value: Any, old: Any = None, field: str = "") -> Iterator[ObjectFieldError]:
        """Yield an error for each rule that a value breaks; transition rules need an old value."""
        if value is None:
            return
        for rule in self.rules:
            if old is None and rule.on_transition:
                continue
            if error := _broken(rule, self.schema, value, old, field):
                yield error
        for path, inner, item, old_item in self._inner(value, old):
            yield from inner.errors(item, old_item, f"{field}{path}" if field else path.lstrip("."))

    def _inner(self, value: Any, old: Any) -> Iterator[tuple[str, "ValidationRules", Any, Any]]:
        if isinstance(value, list) and self.items is not None:
            for index, item in enumerate(value):
                yield f"[{index}]", self.items, item, _counterpart(self.schema, item, old)
        if isinstance(value, dict):
            for key, item in value.items():
                inner = self.properties.get(key, self.additional)
                if inner is not None:
                    yield f".{key}", inner, item, old.get(key) if isinstance(old, dict) else None


def compiled(schema: Schema) -> ValidationRules | None:
    """Return the rules of a schema, or None without any; ValueError if one is not valid CEL."""
    rules = tuple(_rule(item) for item in schema.get("x-kubernetes-validations", ()))
    inner = {key: compiled(member) for key, member in schema.get("properties", {}).items()}
    properties = {key: rules_in for key, rules_in in inner.items() if rules_in is not None}
    items = compiled(schema["items"]) if isinstance(schema.get("items"), Mapping) else None
    other = schema.get("additionalProperties")
    additional = compiled(other) if isinstance(other, Mapping) else None
    if not (rules or properties or items or additional):
        return None
    return ValidationRules(schema, rules, properties, items, additional)


def _rule(item: Mapping[str, Any]) -> _Rule:
    if unknown := [field for field in _UNKNOWN if field in item]:
        raise ValueError(f"the embedded hub evaluates no {unknown[0]}")
    program = cel.compile(item["rule"])
    return _Rule(
        source=item["rule"],
        program=program,
        message=item.get("message") or f"failed rule: {item['rule']}",
        field=item.get("fieldPath", ""),
        on_transition="oldSelf" in program.variables(),
        extended=not _EXTENSIONS.isdisjoint(program.functions()),
    )


def _broken(
    rule: _Rule, schema: Schema, value: Any, old: Any, field: str
) -> ObjectFieldError | None:
    shown = OMITTED if isinstance(value, dict | list) else value
    try:
        context = cel.Context({"self": _seen(schema, value)})
        if rule.on_transition:
            context.add_variable("oldSelf", _seen(schema, old))
        if rule.extended:
            stdlib.add_stdlib_to_context(context)
        if rule.program.execute(context) is True:
            return None
    except _FAILURES as error:
        first_line = str(error).strip().split("\n")[0]
        return field_errors.wrong(field, shown, f"{first_line} evaluating rule: {rule.source}")
    path = f"{field}{rule.field}" if field else rule.field.lstrip(".")
    return field_errors.wrong(path, shown, rule.message)


def _seen(schema: Schema, value: Any) -> Any:
    """Return a value as rules see it: only fields of the schema, with types of CEL.

    Names of fields are escaped, keys of maps are not.
    """
    if isinstance(value, list):
        items = schema.get("items", {})
        return [_seen(items, item) for item in value]
    if isinstance(value, dict):
        name = str if isinstance(schema.get("additionalProperties"), Mapping) else _escaped
        return {name(key): _seen(member, value[key]) for key, member in _visible(schema, value)}
    if isinstance(value, str) and schema.get("format") in {"date-time", "datetime"}:
        return datetime.fromisoformat(value)
    return float(value) if schema.get("type") == "number" and type(value) is int else value


_METADATA: Schema = {"properties": {"name": {}, "generateName": {}}}


def _visible(schema: Schema, value: Mapping[str, Any]) -> Iterator[tuple[str, Schema]]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    additional = schema.get("additionalProperties")
    for key in value:
        if key == "metadata" and schema.get(EMBEDDED):
            yield key, _METADATA
        elif key in properties:
            yield key, properties[key]
        elif isinstance(additional, Mapping):
            yield key, additional
        elif schema.get(EMBEDDED) and key in {"apiVersion", "kind"}:
            yield key, {}


def _escaped(key: str) -> str:
    if key in _RESERVED:
        return f"__{key}__"
    for plain, escape in _ESCAPES:
        key = key.replace(plain, escape)
    return key


def _counterpart(schema: Schema, item: Any, old: Any) -> Any:
    """Return the old item of a list of type map that has the same keys."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        return None
    keys = _keys(schema, item)
    return next((other for other in old if _keys(schema, other) == keys), None)


def _keys(schema: Schema, item: Any) -> list[Any]:
    names = schema.get("x-kubernetes-list-map-keys", ())
    return [item.get(name) for name in names] if isinstance(item, dict) else []
