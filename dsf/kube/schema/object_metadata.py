"""The metadata of an object, and of the objects inside it, such as the manifests of a ManifestWork.

Sources: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/ and
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#rawextension
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from dsf.api import name_syntax
from dsf.kube.errors import BadRequest
from dsf.kube.port import Object
from dsf.kube.schema import field_errors
from dsf.kube.schema.field_errors import ObjectFieldError, wrong, wrong_all
from dsf.kube.schema.pruning import (
    EMBEDDED,
    FLAG,
    TEXT,
    TIME,
    Schema,
    UnknownField,
    joined,
    members,
    pruned,
    without_nulls,
)
from dsf.kube.schema.schema_validation import SchemaValidator

NameCheck = Callable[[str], list[str]]

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
IMMUTABLE = "field is immutable"
_ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all annotations of an object, as in apimachinery."""

_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string", "default": ""}}
_OWNER: Schema = {
    "type": "object",
    "properties": {
        "apiVersion": TEXT,
        "kind": TEXT,
        "name": TEXT,
        "uid": TEXT,
        "controller": FLAG,
        "blockOwnerDeletion": FLAG,
    },
}
OBJECT_META: Schema = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "generateName": TEXT,
        "namespace": TEXT,
        "selfLink": TEXT,
        "uid": TEXT,
        "resourceVersion": TEXT,
        "generation": {"type": "integer", "format": "int64"},
        "creationTimestamp": TIME,
        "deletionTimestamp": TIME,
        "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "ownerReferences": {"type": "array", "items": _OWNER},
        "finalizers": {"type": "array", "items": TEXT},
        "managedFields": {"type": "array", "items": {"type": "object"}},
    },
}
_VALIDATOR = SchemaValidator(OBJECT_META)
_TYPE = ("apiVersion", "kind")
_UNCOUNTED = ("generation", 0)
_NOT_KEPT = ("selfLink", "managedFields")


def is_deleting(obj: Object) -> bool:
    """Return whether an object has a deletionTimestamp."""
    return "deletionTimestamp" in obj["metadata"]


def read(obj: Mapping[str, Any], described: str) -> tuple[Object, list[UnknownField]]:
    """Return the metadata of an object without empty and unknown fields, and the unknown fields.

    Raises BadRequest if a field has the wrong type.
    """
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping | None):
        raise BadRequest(f"{described}: metadata must be an object")
    unknown: list[UnknownField] = []
    known = _VALIDATOR.completed(metadata or {})
    if known is None:
        known, unknown = pruned(metadata or {}, OBJECT_META, root=False)
        known = without_nulls(known, OBJECT_META)
        known = {key: _without_null_values(value) for key, value in known.items()}
        if errors := _VALIDATOR.errors(known, "metadata"):
            raise BadRequest(f"{described}: {errors[0]}")
    kept = {
        key: value
        for key, value in known.items()
        if key not in _NOT_KEPT and value not in ("", {}, []) and (key, value) != _UNCOUNTED
    }
    if owners := kept.get("ownerReferences"):
        kept["ownerReferences"] = list({tuple(sorted(o.items())): o for o in owners}.values())
    return kept, [UnknownField(f"metadata.{field.path}") for field in unknown]


def errors(metadata: Object, *, namespaced: bool, name_check: NameCheck) -> list[ObjectFieldError]:
    """Return the errors in the metadata of a new object."""
    found: list[ObjectFieldError] = []
    prefix, name = metadata.get("generateName", ""), metadata.get("name", "")
    if prefix:
        # A prefix may end with "-", because a generated suffix follows it.
        problems = name_check(f"{prefix[:-1]}a" if prefix.endswith("-") else prefix)
        found += wrong_all("metadata.generateName", prefix, problems)
    if not name:
        found.append(field_errors.required("metadata.name", "name or generateName is required"))
    else:
        found += wrong_all("metadata.name", name, name_check(name))
    if namespaced:
        namespace = metadata.get("namespace", "")
        found += wrong_all("metadata.namespace", namespace, name_syntax.dns_label(namespace))
    return found + common_errors(metadata)


def update_errors(new: Object, old: Object) -> list[ObjectFieldError]:
    """Return the errors in metadata that replaces the `old` metadata."""
    found: list[ObjectFieldError] = []
    if "deletionTimestamp" in old:
        added = sorted(set(new.get("finalizers", ())) - set(old.get("finalizers", ())))
        if added:
            problem = (
                "no new finalizers can be added if the object is being deleted, found new "
                f"finalizers {field_errors.shown(added)}"
            )
            found.append(field_errors.forbidden("metadata.finalizers", problem))
    found += [
        wrong(f"metadata.{key}", new.get(key), IMMUTABLE)
        for key in ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")
        if new.get(key) != old.get(key)
    ]
    return found + common_errors(new)


def common_errors(metadata: Object) -> list[ObjectFieldError]:
    """Return the errors in labels, annotations, owner references and finalizers."""
    return [
        *_label_errors(metadata.get("labels", {})),
        *_annotation_errors(metadata.get("annotations", {})),
        *_owner_errors(metadata.get("ownerReferences", [])),
        *_finalizer_errors(metadata.get("finalizers", [])),
    ]


def _label_errors(labels: Mapping[str, str]) -> list[ObjectFieldError]:
    found: list[ObjectFieldError] = []
    for key, value in labels.items():
        found += wrong_all("metadata.labels", key, name_syntax.qualified_name(key))
        found += wrong_all("metadata.labels", value, name_syntax.label_value(value))
    return found


def _annotation_errors(annotations: Mapping[str, str]) -> list[ObjectFieldError]:
    found: list[ObjectFieldError] = []
    for key in annotations:
        found += wrong_all("metadata.annotations", key, name_syntax.qualified_name(key.lower()))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _ANNOTATIONS_LIMIT:
        found.append(field_errors.too_long("metadata.annotations", _ANNOTATIONS_LIMIT))
    return found


def _owner_errors(owners: list[Object]) -> list[ObjectFieldError]:
    path = "metadata.ownerReferences"
    found = [
        wrong(f"{path}.{key}", owner.get(key, ""), problem)
        for owner in owners
        for key, problem in (
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        )
        if not owner.get(key)
    ]
    controllers = [f"{o.get('kind')}/{o.get('name')}" for o in owners if o.get("controller")]
    if len(controllers) > 1:
        problem = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        found.append(wrong(path, owners, problem))
    return found


def _finalizer_errors(finalizers: list[str]) -> list[ObjectFieldError]:
    path = "metadata.finalizers"
    found: list[ObjectFieldError] = []
    for finalizer in finalizers:
        found += wrong_all(path, finalizer, name_syntax.qualified_name(finalizer))
    if {ORPHAN, FOREGROUND} <= set(finalizers):
        problem = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        found.append(wrong(path, finalizers, problem))
    return found


def _without_null_values(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: "" if item is None else item for key, item in value.items()}


def embeds_objects(schema: Schema) -> bool:
    """Return whether a schema embeds objects (`x-kubernetes-embedded-resource`) below its root."""
    inner = [*schema.get("properties", {}).values(), schema.get("items")]
    inner.append(schema.get("additionalProperties"))
    found = [member for member in inner if isinstance(member, Mapping)]
    return any(member.get(EMBEDDED) or embeds_objects(member) for member in found)


def embedded_objects(
    value: Any, schema: Schema | None, path: str = ""
) -> Iterator[tuple[str, Object]]:
    """Yield the embedded objects of a value with their paths, the outer ones first."""
    if schema is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from embedded_objects(item, schema.get("items"), f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.get(EMBEDDED) and path:
            yield path, value
        for key, item, member in members(value, schema):
            yield from embedded_objects(item, member, joined(path, key))


def read_embedded(value: Any, schema: Schema, described: str) -> list[UnknownField]:
    """Prune the metadata of the embedded objects of a value in place; return the unknown fields.

    Raises BadRequest if a type or a metadata field has the wrong type.
    """
    unknown: list[UnknownField] = []
    for path, obj in embedded_objects(value, schema):
        for key in _TYPE:
            if not isinstance(obj.get(key, ""), str):
                error = wrong(f"{path}.{key}", obj[key], "must be a string")
                raise BadRequest(f"{described}: {error}")
        if "metadata" in obj:
            obj["metadata"], found = read(obj, f"{described}: {path}")
            unknown += [UnknownField(f"{path}.{field.path}") for field in found]
    return unknown


def embedded_errors(value: Any, schema: Schema) -> Iterator[ObjectFieldError]:
    """Yield the errors in the types and the metadata of embedded objects."""
    for path, obj in embedded_objects(value, schema):
        yield from _errors_of_embedded(obj, path)


def _errors_of_embedded(obj: Mapping[str, Any], path: str) -> Iterator[ObjectFieldError]:
    for key in _TYPE:
        if key not in obj:
            yield field_errors.required(f"{path}.{key}")
        elif not obj[key]:
            yield wrong(f"{path}.{key}", obj[key], "must not be empty")
    if obj.get("apiVersion", "").count("/") > 1:
        problem = f"unexpected GroupVersion string: {obj['apiVersion']}"
        yield wrong(f"{path}.apiVersion", obj["apiVersion"], problem)
    if obj.get("kind") and not re.fullmatch("[a-z]([-a-z0-9]{0,61}[a-z0-9])?", obj["kind"].lower()):
        problem = "may have mixed case, but should otherwise be a DNS-1035 label"
        yield wrong(f"{path}.kind", obj["kind"], problem)
    if "metadata" in obj:
        meta = {"name": "unnamed", **obj["metadata"]}
        found = errors(meta, namespaced="namespace" in meta, name_check=_path_segment_problems)
        yield from (replace(error, field=f"{path}.{error.field}") for error in found)


def _path_segment_problems(name: str) -> list[str]:
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in "/%" if part in name]
