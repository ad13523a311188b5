"""CustomResourceDefinitions: their validation, and the resources that they define.

Source: https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dsf.api import name_syntax
from dsf.api.conditions import Condition, merged
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from dsf.kube.resources.resource_catalog import AGE, Column, Resource
from dsf.kube.schema import field_errors, object_metadata
from dsf.kube.schema.field_errors import ObjectFieldError, wrong
from dsf.kube.schema.json_values import frozen, thawed
from dsf.kube.schema.pruning import EMBEDDED, PRESERVE
from dsf.kube.schema.schema_validation import SchemaValidator
from dsf.kube.schema.string_formats import pattern_problem

if TYPE_CHECKING:
    from dsf.kube.schema.validation_rules import ValidationRules

_RULES = "x-kubernetes-validations"
_ESTABLISHED = (
    Condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    Condition(
        "Established", "True", "InitialNamesAccepted", "the initial names have been accepted"
    ),
)

DEFINITIONS = 128
"""CRDs that are read and checked once for all hubs of a process, which mostly have the same."""


def resources(crd: Object) -> tuple[Resource, ...]:
    """Return the resources of a valid CRD, one per served version."""
    return _resources(frozen(crd["spec"]))


@lru_cache(DEFINITIONS)
def _resources(frozen_spec: bytes) -> tuple[Resource, ...]:
    spec = thawed(frozen_spec)
    return tuple(_resource(spec, version) for version in spec["versions"] if version["served"])


def prepared(crd: Object) -> Object:
    """Return a CRD with the names that default from its kind."""
    spec = crd.get("spec", {})
    names = spec.get("names", {})
    kind = names.get("kind", "")
    completed = {"singular": kind.lower(), "listKind": f"{kind}List", **names}
    conversion = spec.get("conversion", {"strategy": "None"})
    return {**crd, "spec": {**spec, "names": completed, "conversion": conversion}}


def established(crd: Object, now: str) -> Object:
    """Return a CRD with the conditions NamesAccepted and Established."""
    versions = [v["name"] for v in crd["spec"]["versions"] if v["storage"]]
    before = crd.get("status", {})
    status = {
        "conditions": before.get("conditions", merged([], _ESTABLISHED, now=now)),
        "acceptedNames": crd["spec"]["names"],
        "storedVersions": list(dict.fromkeys([*before.get("storedVersions", []), *versions])),
    }
    return {**crd, "status": status}


def errors(crd: Object, old: Object | None) -> list[ObjectFieldError]:
    """Return the errors in a CRD; with `old`, also in what changed."""
    spec = crd.get("spec", {})
    return [
        *_name_errors(crd, spec),
        *_version_errors(frozen(spec.get("versions") or [])),
        *(_immutable_errors(spec, old.get("spec", {})) if old else []),
    ]


def _resource(spec: Object, version: Object) -> Resource:
    names = spec["names"]
    schema = version["schema"]["openAPIV3Schema"]
    status = "status" in (version.get("subresources") or {})
    kind = Kind(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        namespaced=spec["scope"] == "Namespaced",
    )
    status_schema = schema.get("properties", {}).get("status", {})
    return Resource(
        kind=kind,
        singular=names["singular"],
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        schema=schema,
        validator=SchemaValidator(schema),
        status_validator=SchemaValidator(status_schema) if status else None,
        embeds=object_metadata.embeds_objects(schema),
        rules=_rules({**schema, EMBEDDED: True}),
        columns=tuple(map(_column, version.get("additionalPrinterColumns") or ())) or (AGE,),
        selectable=tuple(
            item["jsonPath"].lstrip(".") for item in version.get("selectableFields") or ()
        ),
    )


def _rules(schema: Object) -> "ValidationRules | None":
    """Return the rules of a schema, or None without any; ValueError if one is not valid CEL."""
    if _RULES.encode() not in frozen(schema):
        return None
    # The library for CEL needs a second of CPU to be imported.
    from dsf.kube.schema.validation_rules import compiled  # noqa: PLC0415

    return compiled(schema)


def _column(column: Mapping[str, Any]) -> Column:
    return Column(
        column["name"],
        column["type"],
        column["jsonPath"],
        column.get("priority", 0),
        column.get("format", ""),
        column.get("description", ""),
    )


def _name_errors(crd: Object, spec: Mapping[str, Any]) -> Iterator[ObjectFieldError]:
    group, names = spec.get("group", ""), spec.get("names", {})
    for field in ("group", "scope"):
        if not spec.get(field):
            yield field_errors.required(f"spec.{field}")
    for field in ("plural", "kind"):
        if not names.get(field):
            yield field_errors.required(f"spec.names.{field}")
    for field in ("plural", "singular", "listKind", "kind"):
        value = str(names.get(field, ""))
        yield from field_errors.wrong_all(
            f"spec.names.{field}", value, name_syntax.dns_label(value.lower())
        )
    if crd["metadata"].get("name") != f"{names.get('plural')}.{group}":
        problem = 'must be spec.names.plural+"."+spec.group'
        yield wrong("metadata.name", crd["metadata"].get("name", ""), problem)


@lru_cache(DEFINITIONS)
def _version_errors(versions: bytes) -> tuple[ObjectFieldError, ...]:
    return tuple(_errors_of_versions(thawed(versions)))


def _errors_of_versions(versions: list[Object]) -> Iterator[ObjectFieldError]:
    if sum(bool(version.get("storage")) for version in versions) != 1:
        problem = "must have exactly one version marked as storage version"
        yield wrong("spec.versions", [v.get("name") for v in versions], problem)
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            yield field_errors.required(f"{path}.schema.openAPIV3Schema", "schemas are required")
        else:
            yield from _schema_errors(schema, f"{path}.schema.openAPIV3Schema")


def _schema_errors(schema: Mapping[str, Any], path: str) -> Iterator[ObjectFieldError]:
    if (
        "type" not in schema
        and not schema.get("x-kubernetes-int-or-string")
        and not schema.get(PRESERVE)
    ):
        yield field_errors.required(f"{path}.type", "must not be empty for specified object fields")
    if "pattern" in schema and (problem := pattern_problem(schema["pattern"])):
        yield wrong(
            f"{path}.pattern", schema["pattern"], f"must be a valid regular expression: {problem}"
        )
    yield from _rule_errors(schema, path)
    if "default" in schema:
        yield from SchemaValidator(schema).errors(schema["default"], f"{path}.default")
    for key, member in schema.get("properties", {}).items():
        yield from _schema_errors(member, f"{path}.properties[{key}]")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield from _schema_errors(schema[key], f"{path}.{key}")


def _rule_errors(schema: Mapping[str, Any], path: str) -> Iterator[ObjectFieldError]:
    for index, rule in enumerate(schema.get(_RULES, ())):
        try:
            _rules({_RULES: [rule]})
        except ValueError as error:
            place = f"{path}.{_RULES}[{index}].rule"
            yield wrong(place, rule.get("rule", ""), f"compilation failed: {error}")


def _immutable_errors(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[ObjectFieldError]:
    for field in ("group", "scope"):
        if new.get(field) != old.get(field):
            yield wrong(f"spec.{field}", new.get(field, ""), "field is immutable")
    for field in ("plural", "kind"):
        if new.get("names", {}).get(field) != old.get("names", {}).get(field):
            yield wrong(f"spec.names.{field}", new["names"].get(field, ""), "field is immutable")
