"""Objects inside objects (`x-kubernetes-embedded-resource`): the manifests of a ManifestWork.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#rawextension
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dsf.kube.errors import BadRequest
from dsf.kube.schema import field_errors, object_metadata
from dsf.kube.schema.field_errors import ObjectFieldError, wrong
from dsf.kube.schema.pruning import EMBEDDED, Schema, UnknownField, joined, members

_TYPE = ("apiVersion", "kind")


def has_any(schema: Schema) -> bool:
    """Return whether a schema embeds objects below its root."""
    inner = [*schema.get("properties", {}).values(), schema.get("items")]
    inner.append(schema.get("additionalProperties"))
    found = [member for member in inner if isinstance(member, Mapping)]
    return any(member.get(EMBEDDED) or has_any(member) for member in found)


def read(
    value: Any, schema: Schema | None, described: str, path: str = ""
) -> tuple[Any, list[UnknownField]]:
    """Return a value with the metadata of its embedded objects pruned, and the unknown fields.

    Raises BadRequest if a type or a metadata field has the wrong type.
    """
    unknown: list[UnknownField] = []

    def walked(item: Any, of: Schema | None, place: str) -> Any:
        if isinstance(item, list):
            items = of.get("items") if of else None
            return [walked(inner, items, f"{place}[{i}]") for i, inner in enumerate(item)]
        if not isinstance(item, dict) or of is None:
            return item
        if of.get(EMBEDDED) and place:
            item = _typed(item, described, place, unknown)
        return {
            key: walked(inner, member, joined(place, key))
            for key, inner, member in members(item, of)
        }

    return walked(value, schema, path), unknown


def errors(value: Any, schema: Schema | None, path: str = "") -> Iterator[ObjectFieldError]:
    """Yield the errors in the types and the metadata of embedded objects."""
    if schema is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from errors(item, schema.get("items"), f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.get(EMBEDDED) and path:
            yield from _errors(value, path)
        for key, item, member in members(value, schema):
            yield from errors(item, member, joined(path, key))


def _typed(obj: dict[str, Any], described: str, path: str, unknown: list[UnknownField]) -> Any:
    for key in _TYPE:
        if key in obj and not isinstance(obj[key], str):
            error = wrong(f"{path}.{key}", obj[key], "must be a string")
            raise BadRequest(f"{described}: {error}")
    if "metadata" not in obj:
        return obj
    meta, found = object_metadata.read(obj, f"{described}: {path}")
    unknown += [UnknownField(f"{path}.{field.path}") for field in found]
    return {**obj, "metadata": meta}


def _errors(obj: Mapping[str, Any], path: str) -> Iterator[ObjectFieldError]:
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
        found = object_metadata.errors(
            meta, namespaced="namespace" in meta, name_check=_path_segment_problems
        )
        yield from (replace(error, field=f"{path}.{error.field}") for error in found)


def _path_segment_problems(name: str) -> list[str]:
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{part}'" for part in "/%" if part in name]
