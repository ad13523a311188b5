"""The built-in kinds of Kubernetes that the product needs, with their own validation.

Source: https://kubernetes.io/docs/reference/kubernetes-api/
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from dsf.api import name_syntax
from dsf.kube import kinds
from dsf.kube.kinds import Kind
from dsf.kube.port import Object
from dsf.kube.resources import custom_resource_definitions
from dsf.kube.resources.resource_catalog import AGE, Column, Resource
from dsf.kube.schema import field_errors
from dsf.kube.schema.field_errors import ObjectFieldError, wrong_all
from dsf.kube.schema.pruning import ANYTHING, FLAG, TEXT, TIME, Schema
from dsf.kube.schema.schema_validation import SchemaValidator

_INTEGER: Schema = {"type": "integer", "format": "int32"}
_SIZE_LIMIT = 1024 * 1024
"""Bytes of data in a ConfigMap or a Secret, as in kube-apiserver."""


@cache
def resources() -> tuple[Resource, ...]:
    """Return the built-in resources."""
    return (
        built_in(
            kinds.CONFIG_MAP,
            {
                "data": map_of({"type": "string", "default": ""}),
                "binaryData": map_of({"type": "string", "format": "byte"}),
                "immutable": FLAG,
            },
            short_names=("cm",),
            columns=(Column("Data", "integer", _size("data", "binaryData")), AGE),
            prepare=_without_empty("data", "binaryData"),
            check=_config_map_errors,
        ),
        _event(),
        built_in(
            kinds.NAMESPACE,
            {"spec": object_of(finalizers=list_of(TEXT))},
            status=True,
            short_names=("ns",),
            columns=(Column("Status", "string", ".status.phase"), AGE),
            selectable=("status.phase",),
            name_check=name_syntax.dns_label,
            prepare=_namespace_prepared,
        ),
        built_in(
            kinds.NODE,
            {"spec": ANYTHING},
            status=True,
            short_names=("no",),
            columns=(
                Column("Status", "string", _node_status),
                Column("Roles", "string", _node_roles),
                AGE,
                Column("Version", "string", ".status.nodeInfo.kubeletVersion"),
            ),
            selectable=("spec.unschedulable",),
        ),
        built_in(
            kinds.POD,
            {"spec": ANYTHING},
            status=True,
            short_names=("po",),
            categories=("all",),
            columns=(Column("Status", "string", ".status.phase"), AGE),
            selectable=("spec.nodeName", "status.phase"),
        ),
        built_in(kinds.RESOURCE_CLAIM, {"spec": ANYTHING}, status=True, columns=(AGE,)),
        built_in(kinds.DEVICE_CLASS, {"spec": ANYTHING}, columns=(AGE,)),
        built_in(kinds.RESOURCE_SLICE, {"spec": ANYTHING}, columns=(AGE,)),
        built_in(
            kinds.SECRET,
            {
                "data": map_of({"type": "string", "format": "byte"}),
                "stringData": map_of(TEXT),
                "type": {"type": "string", "default": "Opaque"},
                "immutable": FLAG,
            },
            columns=(
                Column("Type", "string", ".type"),
                Column("Data", "integer", _size("data")),
                AGE,
            ),
            selectable=("type",),
            prepare=_secret_prepared,
            check=_secret_errors,
        ),
        built_in(
            kinds.LEASE,
            {
                "spec": object_of(
                    holderIdentity=TEXT,
                    leaseDurationSeconds=_INTEGER,
                    acquireTime=TIME,
                    renewTime=TIME,
                    leaseTransitions=_INTEGER,
                    strategy=TEXT,
                    preferredHolder=TEXT,
                )
            },
            columns=(Column("Holder", "string", ".spec.holderIdentity"), AGE),
            create_on_update=True,
            unconditional_update=False,
            check=_lease_errors,
        ),
        _custom_resource_definition(),
    )


def built_in(
    kind: Kind, properties: Mapping[str, Schema], *, status: bool = False, **behaviour: Any
) -> Resource:
    """Return a resource with these properties besides the usual ones."""
    schema = object_of(
        apiVersion=TEXT,
        kind=TEXT,
        metadata={"type": "object"},
        **properties,
        **({"status": ANYTHING} if status else {}),
    )
    return Resource(
        kind=kind,
        singular=kind.kind.lower(),
        schema=schema,
        validator=SchemaValidator(schema),
        status_validator=SchemaValidator(ANYTHING) if status else None,
        **{"custom": False, "counts_generations": False, "unconditional_update": True, **behaviour},
    )


def object_of(**properties: Schema) -> Schema:
    """Return the schema of an object with these fields."""
    return {"type": "object", "properties": properties}


def map_of(values: Schema) -> Schema:
    """Return the schema of a map with these values."""
    return {"type": "object", "additionalProperties": values}


def list_of(items: Schema) -> Schema:
    """Return the schema of a list with these items."""
    return {"type": "array", "items": items}


def _event() -> Resource:
    reference = object_of(
        **dict.fromkeys(
            ("apiVersion", "kind", "name", "namespace", "uid", "resourceVersion", "fieldPath"), TEXT
        )
    )
    return built_in(
        kinds.EVENT,
        {
            **dict.fromkeys(
                ("reason", "message", "type", "action", "reportingComponent", "reportingInstance"),
                TEXT,
            ),
            **dict.fromkeys(("firstTimestamp", "lastTimestamp", "eventTime"), TIME),
            "count": _INTEGER,
            "involvedObject": reference,
            "related": reference,
            "source": object_of(component=TEXT, host=TEXT),
            "series": object_of(count=_INTEGER, lastObservedTime=TIME),
        },
        short_names=("ev",),
        columns=(
            Column("Last Seen", "date", ".lastTimestamp"),
            Column("Type", "string", ".type"),
            Column("Reason", "string", ".reason"),
            Column("Object", "string", _event_object),
            Column("Message", "string", ".message"),
        ),
        create_on_update=True,
        selectable=(
            *(f"involvedObject.{field}" for field in reference["properties"]),
            "reason",
            "reportingComponent",
            "source",
            "type",
        ),
        check=_event_errors,
    )


def _custom_resource_definition() -> Resource:
    names = object_of(
        plural=TEXT,
        singular=TEXT,
        kind=TEXT,
        listKind=TEXT,
        shortNames=list_of(TEXT),
        categories=list_of(TEXT),
    )
    column = object_of(
        **dict.fromkeys(("name", "type", "format", "description", "jsonPath"), TEXT),
        priority=_INTEGER,
    )
    version = object_of(
        name=TEXT,
        served=FLAG,
        storage=FLAG,
        deprecated=FLAG,
        deprecationWarning=TEXT,
        schema=object_of(openAPIV3Schema=ANYTHING),
        subresources=object_of(status=ANYTHING, scale=ANYTHING),
        additionalPrinterColumns=list_of(column),
        selectableFields=list_of(object_of(jsonPath=TEXT)),
    )
    spec = object_of(
        group=TEXT,
        names=names,
        scope={"type": "string"},
        versions=list_of(version),
        conversion=ANYTHING,
        preserveUnknownFields=FLAG,
    )
    return built_in(
        kinds.CUSTOM_RESOURCE_DEFINITION,
        {"spec": spec},
        status=True,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        columns=(Column("Created At", "string", ".metadata.creationTimestamp"),),
        counts_generations=True,
        unconditional_update=False,
        prepare=custom_resource_definitions.prepared,
        check=custom_resource_definitions.errors,
    )


def _without_empty(*keys: str) -> Callable[[Object], Object]:
    def prepare(obj: Object) -> Object:
        return {key: value for key, value in obj.items() if value or key not in keys}

    return prepare


def _config_map_errors(new: Object, old: Object | None) -> list[ObjectFieldError]:
    data, binary = new.get("data", {}), new.get("binaryData", {})
    return [
        *_key_errors(data, "data"),
        *_key_errors(binary, "binaryData"),
        *(
            field_errors.wrong(f"data[{key}]", key, "duplicate of key present in binaryData")
            for key in data
            if key in binary
        ),
        *_size_errors([*data.values(), *binary.values()]),
        *_immutable_errors(new, old, ("data", "binaryData", "immutable")),
    ]


def _secret_prepared(secret: Object) -> Object:
    plain = secret.get("stringData", {})
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
    data = {**secret.get("data", {}), **encoded}
    rest = {key: value for key, value in secret.items() if key not in {"data", "stringData"}}
    return {**rest, **({"data": data} if data else {})}


def _secret_errors(new: Object, old: Object | None) -> list[ObjectFieldError]:
    data = new.get("data", {})
    found = [
        *_key_errors(data, "data"),
        *_size_errors(data.values()),
        *_immutable_errors(new, old, ("data", "immutable")),
    ]
    if old and old.get("type") != new.get("type"):
        found.append(field_errors.wrong("type", new.get("type"), "field is immutable"))
    return found


def _key_errors(data: Mapping[str, str], field: str) -> Iterator[ObjectFieldError]:
    for key in data:
        yield from wrong_all(f"{field}[{key}]", key, name_syntax.config_key(key))


def _size_errors(values: Any) -> list[ObjectFieldError]:
    size = sum(len(value.encode()) for value in values)
    return [field_errors.too_long("", _SIZE_LIMIT)] if size > _SIZE_LIMIT else []


def _immutable_errors(
    new: Object, old: Object | None, keys: tuple[str, ...]
) -> Iterator[ObjectFieldError]:
    if old and old.get("immutable"):
        for key in keys:
            if new.get(key) != old.get(key):
                yield field_errors.forbidden(key, "field is immutable when `immutable` is set")


def _namespace_prepared(namespace: Object) -> Object:
    metadata = namespace["metadata"]
    finalizers = namespace.get("spec", {}).get("finalizers", [])
    label = {"kubernetes.io/metadata.name": metadata["name"]} if metadata.get("name") else {}
    return {
        **namespace,
        "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **label}},
        "spec": {"finalizers": list(dict.fromkeys([*finalizers, "kubernetes"]))},
        "status": {"phase": "Active", **namespace.get("status", {})},
    }


def _lease_errors(lease: Object, _: Object | None) -> Iterator[ObjectFieldError]:
    spec = lease.get("spec", {})
    for field, least in (("leaseDurationSeconds", 1), ("leaseTransitions", 0)):
        if spec.get(field, least) < least:
            problem = (
                f"must be greater than or equal to {least}"
                if not least
                else "must be greater than 0"
            )
            yield field_errors.wrong(f"spec.{field}", spec[field], problem)


def _event_errors(event: Object, _: Object | None) -> Iterator[ObjectFieldError]:
    involved = event.get("involvedObject", {}).get("namespace") or "default"
    if involved != event["metadata"].get("namespace"):
        problem = "does not match event.namespace"
        yield field_errors.wrong("involvedObject.namespace", involved, problem)


def _size(*keys: str) -> Callable[[Object], int]:
    return lambda obj: sum(len(obj.get(key) or {}) for key in keys)


def _node_status(node: Object) -> str:
    conditions = node.get("status", {}).get("conditions") or []
    ready = next((c.get("status") for c in conditions if c.get("type") == "Ready"), None)
    parts = ["Ready" if ready == "True" else "NotReady" if ready else "Unknown"]
    return ",".join(
        [*parts, *(["SchedulingDisabled"] if node.get("spec", {}).get("unschedulable") else [])]
    )


def _node_roles(node: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels", {})
    return (
        ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix)))
        or "<none>"
    )


def _event_object(event: Object) -> str:
    involved = event.get("involvedObject", {})
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"
