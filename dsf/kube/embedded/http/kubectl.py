"""What kubectl asks for besides objects: discovery, OpenAPI schemas, and tables of objects.

Sources: https://kubernetes.io/docs/concepts/overview/kubernetes-api/ and
https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from dsf.api.scoring import json_path
from dsf.api.times import shown_duration
from dsf.api.untrusted_text import InvalidInput
from dsf.kube.port import Object
from dsf.kube.resources.resource_catalog import Column, Resource

VERSION: Object = {
    "major": "1",
    "minor": "35",
    "gitVersion": "v1.35.0+embedded",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "embedded",
}
_VERBS = ["delete", "get", "list", "patch", "create", "update", "watch"]
_STATUS_VERBS = ["get", "patch", "update"]

Included = Literal["None", "Metadata", "Object"]

_NAME = Column("Name", "string", ".metadata.name", format="name", description="Name must be unique")
_UNKNOWN_AGE, _FUTURE_AGE = "<unknown>", "<invalid>"


def api_versions() -> Object:
    """Return the versions of the core group."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(resources: Iterable[Resource]) -> Object:
    """Return all groups but the core group."""
    names = dict.fromkeys(r.kind.group for r in resources if r.kind.group)
    listed = [found for name in names if (found := group(resources, name))]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(resources: Iterable[Resource], name: str) -> Object | None:
    """Return one group, or None if it is not served."""
    versions = sorted({r.kind.version for r in resources if r.kind.group == name}, key=_age)
    if not versions:
        return None
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": listed,
        "preferredVersion": listed[0],
    }


def resource_list(resources: Iterable[Resource], group_name: str, version: str) -> Object | None:
    """Return the resources of a group and version, or None without any."""
    served = [r for r in resources if (r.kind.group, r.kind.version) == (group_name, version)]
    if not served:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].kind.api_version,
        "resources": [entry for resource in served for entry in _entries(resource)],
    }


def openapi_index(resources: Iterable[Resource]) -> Object:
    """Return the paths of the OpenAPI documents by group and version."""
    places = dict.fromkeys(_place(resource) for resource in resources)
    return {
        "paths": {
            place: {"serverRelativeURL": f"/openapi/v3/{place}?hash=embedded"} for place in places
        }
    }


def openapi(resources: Iterable[Resource], place: str) -> Object | None:
    """Return the OpenAPI document of `api/v1` or `apis/GROUP/VERSION`, or None."""
    served = [resource for resource in resources if _place(resource) == place]
    if not served:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": {path: item for resource in served for path, item in _paths(resource)},
        "components": {
            "schemas": {
                _schema_name(resource): {
                    **resource.schema,
                    "x-kubernetes-group-version-kind": [_type(resource)],
                }
                for resource in served
            }
        },
    }


def _age(version: str) -> tuple[int, int, int]:
    """Return the sort key of a version: stable versions first, then the newest."""
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if not found:
        return 3, 0, 0
    major, stage, minor = found.groups()
    return [None, "beta", "alpha"].index(stage), -int(major), -int(minor or 0)


def _entries(resource: Resource) -> list[Object]:
    kind = resource.kind
    entry: dict[str, Any] = {
        "name": kind.plural,
        "singularName": resource.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": ["create"] if resource.review else _VERBS,
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    status = {
        "name": f"{kind.plural}/status",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": _STATUS_VERBS,
    }
    return [entry, *([status] if resource.has_status else [])]


def _place(resource: Resource) -> str:
    kind = resource.kind
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _paths(resource: Resource) -> list[tuple[str, Object]]:
    kind = resource.kind
    path = kind.path("{namespace}" if kind.namespaced else None, "{name}")
    operation = {
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string"}}
            for name in ("dryRun", "fieldManager", "fieldValidation")
        ],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-group-version-kind": _type(resource),
        "x-kubernetes-action": "patch",
    }
    return [(path, {"patch": operation})]


def _schema_name(resource: Resource) -> str:
    kind = resource.kind
    reversed_group = ".".join(reversed((kind.group or "core.api.k8s.io").split(".")))
    return f"{reversed_group}.{kind.version}.{kind.kind}"


def _type(resource: Resource) -> Object:
    kind = resource.kind
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def table(
    resource: Resource,
    objects: Iterable[Object],
    *,
    now: datetime,
    metadata: Mapping[str, Any],
    include: Included = "Metadata",
) -> Object:
    """Return a `meta.k8s.io/v1` Table; ages are as of `now`."""
    columns = (_NAME, *resource.columns)
    rows = [
        {
            "cells": [cell(column, obj, now) for column in columns],
            **({} if include == "None" else {"object": _included(obj, include)}),
        }
        for obj in objects
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": [
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            }
            for column in columns
        ],
        "rows": rows,
    }


def cell(column: Column, obj: Object, now: datetime) -> Any:
    """Return the value of a column for an object, or None if it has none."""
    if callable(column.path):
        return column.path(obj)
    value = value_at(obj, column.path)
    if value is None:
        return None
    match column.type:
        case "date":
            return age(str(value), now)
        case "string":
            return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        case "integer":
            return int(value) if isinstance(value, int | float) else None
    return value


def value_at(value: Any, path: str) -> Any:
    """Return the first value at a JSONPath, or None."""
    parsed = json_path.parse(path)
    return None if isinstance(parsed, InvalidInput) else next(iter(parsed.find(value)), None)


def age(time: str, now: datetime) -> str:
    """Return the age of an RFC 3339 time, in one unit."""
    try:
        seconds = int((now - datetime.fromisoformat(time)).total_seconds())
    except (ValueError, TypeError):
        return _UNKNOWN_AGE
    return _FUTURE_AGE if seconds < -1 else shown_duration(max(seconds, 0))


def _included(obj: Object, include: Included) -> Object:
    if include == "Object":
        return obj
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
