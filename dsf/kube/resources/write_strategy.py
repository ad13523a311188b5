"""The object that a write stores, computed from the old object and the object that was sent.

Kubernetes calls this the strategy of a resource. Source:
https://kubernetes.io/docs/reference/using-api/api-concepts/ and the behaviour of the real API
server, against which the contract suite runs too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dsf.kube.errors import BadRequest
from dsf.kube.kinds import CUSTOM_RESOURCE_DEFINITION
from dsf.kube.port import Object
from dsf.kube.resources.custom_resource_definitions import DEFINITIONS
from dsf.kube.resources.resource_catalog import Resource
from dsf.kube.schema import field_errors, object_metadata
from dsf.kube.schema.field_errors import ObjectFieldError
from dsf.kube.schema.json_values import frozen, thawed
from dsf.kube.schema.pruning import META, UnknownField, defaulted, pruned, without_nulls

_SYSTEM = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)


@dataclass(frozen=True, slots=True)
class DecodedObject:
    """An object after pruning and defaulting, and its unknown fields."""

    obj: Object
    unknown: tuple[UnknownField, ...]


def decoded(resource: Resource, sent: Mapping[str, Any]) -> DecodedObject:
    """Prune and default an object; raises BadRequest if it is of another kind or malformed."""
    if resource.kind == CUSTOM_RESOURCE_DEFINITION:
        return _decoded_definition(resource, frozen(sent))
    return _decoded(resource, sent)


@lru_cache(DEFINITIONS)
def _decoded_definition(resource: Resource, sent: bytes) -> DecodedObject:
    return _decoded(resource, thawed(sent))


def _decoded(resource: Resource, sent: Mapping[str, Any]) -> DecodedObject:
    kind = resource.kind
    described = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
    api_version = sent.get("apiVersion") or kind.api_version
    if api_version != kind.api_version:
        raise BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API "
            f"version ({kind.api_version})"
        )
    if (sent_kind := sent.get("kind") or kind.kind) != kind.kind:
        raise BadRequest(
            f'{sent_kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"kind must be {kind.kind}"
        )
    meta, unknown_meta = object_metadata.read(sent, described)
    known, unknown = _known(resource, sent, described)
    obj = {**known, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    if not resource.custom and (errors := resource.validator.errors(obj)):
        raise BadRequest(f"{described}: {errors[0]}")
    return DecodedObject(obj, (*unknown_meta, *unknown))


def _known(
    resource: Resource, sent: Mapping[str, Any], described: str
) -> tuple[Object, list[UnknownField]]:
    """Return an object without metadata, pruned and with defaults, and its unknown fields."""
    body = {key: value for key, value in sent.items() if key not in META}
    known, unknown = resource.validator.completed(body), list[UnknownField]()
    is_complete = known is not None
    if known is None:
        known, unknown = pruned(body, resource.schema)
    if resource.embeds:
        unknown += object_metadata.read_embedded(known, resource.schema, described)
    if not is_complete:
        known = defaulted(without_nulls(known, resource.schema), resource.schema)
    return known, unknown


def strict_problem(resource: Resource, unknown: tuple[UnknownField, ...]) -> str:
    """Return the message for unknown fields, with the fields that exist at their place."""
    kind = resource.kind
    listed = ", ".join(map(str, unknown))
    known = {field.path.rpartition(".")[0]: field.known for field in unknown if field.known}
    hints = "".join(
        f"; {place or kind.kind} has {', '.join(names)}" for place, names in known.items()
    )
    return (
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict '
        f"decoding error: {listed}{hints}"
    )


def created(resource: Resource, sent: Object, *, name: str, uid: str, now: str) -> Object:
    """Return the object that a create stores."""
    meta = {key: value for key, value in sent["metadata"].items() if key not in _SYSTEM}
    if not resource.kind.namespaced:
        meta.pop("namespace", None)
    meta = {**meta, "name": name, "uid": uid, "creationTimestamp": now}
    if resource.counts_generations:
        meta["generation"] = 1
    body = {key: value for key, value in sent.items() if key != "status" or not resource.has_status}
    return resource.prepare({**body, "metadata": meta})


def replaced(resource: Resource, old: Object, sent: Object) -> Object:
    """Return the object that an update stores; the status stays as it is."""
    body = {key: value for key, value in sent.items() if key != "status" or not resource.has_status}
    if resource.has_status and "status" in old:
        body["status"] = old["status"]
    new = resource.prepare({**body, "metadata": _kept(resource, old, sent)})
    if resource.counts_generations and _content(new) != _content(old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return new


def with_status(old: Object, sent: Object) -> Object:
    """Return the object that a write of the status stores; all else stays as it is."""
    body = {key: value for key, value in old.items() if key != "status"}
    return {**body, "status": sent["status"]} if "status" in sent else body


def status_written(new: Object, *, now: str) -> Object:
    """Return an object whose status was just written, which its managedFields tell.

    Of managedFields, only this entry is kept.
    """
    written = {
        "manager": "embedded-hub",
        "operation": "Update",
        "apiVersion": new["apiVersion"],
        "time": now,
        "subresource": "status",
    }
    return {**new, "metadata": {**new["metadata"], "managedFields": [written]}}


def marked(old: Object, *, now: str) -> Object:
    """Return an object that waits for its deletion, with a deletionTimestamp."""
    meta = {**old["metadata"], "deletionGracePeriodSeconds": 0}
    if "deletionTimestamp" not in meta:
        meta["deletionTimestamp"] = now
        if "generation" in meta:
            meta["generation"] += 1
    return {**old, "metadata": meta}


def check_created(resource: Resource, new: Object) -> None:
    """Raise Invalid if a new object is not valid."""
    scoped = resource.kind.namespaced
    errors = object_metadata.errors(
        new["metadata"], namespaced=scoped, name_check=resource.name_check
    )
    _raise(resource, new, errors + _content_errors(resource, new, None))


def check_replaced(resource: Resource, new: Object, old: Object) -> None:
    """Raise Invalid if an object must not replace the old object."""
    errors = object_metadata.update_errors(new["metadata"], old["metadata"])
    _raise(resource, new, errors + _content_errors(resource, new, old))


def check_status(resource: Resource, new: Object, old: Object) -> None:
    """Raise Invalid if a status must not replace the old status."""
    errors: list[ObjectFieldError] = []
    if resource.status_validator and "status" in new:
        errors += resource.status_validator.errors(new["status"], "status")
    _raise(resource, new, errors + _rule_errors(resource, new, old, errors))


def _kept(resource: Resource, old: Object, sent: Object) -> Object:
    """Return the metadata that was sent, with the server-set fields of the old metadata."""
    before, meta = old["metadata"], dict(sent["metadata"])
    for key in ("creationTimestamp", "generation", "resourceVersion"):
        meta.pop(key, None)
        if key in before:
            meta[key] = before[key]
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"):
        if key in before:
            meta[key] = before[key]
    if not resource.kind.namespaced:
        meta.pop("namespace", None)
    return {**meta, "uid": meta.get("uid", before["uid"])}


def _content(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key != "metadata"}


def _content_errors(resource: Resource, new: Object, old: Object | None) -> list[ObjectFieldError]:
    errors = resource.validator.errors(new) if resource.custom else []
    errors = [*errors, *resource.check(new, old)]
    if resource.embeds:
        errors += object_metadata.embedded_errors(new, resource.schema)
    return errors + _rule_errors(resource, new, old, errors)


def _rule_errors(
    resource: Resource, new: Object, old: Object | None, errors: list[ObjectFieldError]
) -> list[ObjectFieldError]:
    if resource.rules is None:
        return []
    if any(error.blocking for error in errors):
        return [field_errors.wrong("<nil>", None, field_errors.RULES_NOT_CHECKED)]
    return list(resource.rules.errors(new, old))


def _raise(resource: Resource, obj: Object, errors: list[ObjectFieldError]) -> None:
    if errors:
        kind, name = resource.kind, obj["metadata"].get("name", "")
        raise field_errors.invalid(kind.kind, kind.group, name, errors)
