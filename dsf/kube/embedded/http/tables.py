"""Server-side tables, which `kubectl get` asks for.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#receiving-resources-as-tables
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from dsf.api.times import shown_duration
from dsf.kube.port import Object
from dsf.kube.resources.resource_catalog import Column, Resource

Included = Literal["None", "Metadata", "Object"]

_NAME = Column("Name", "string", ".metadata.name", format="name", description="Name must be unique")
_SEGMENT = re.compile(r"""\.(\w+)(?:\[\?\(@\.(\w+)==(['"])(.*?)\3\)\])?""")
_UNKNOWN_AGE, _FUTURE_AGE = "<unknown>", "<invalid>"


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
    """Return the value at a JSONPath, or None.

    The columns of our kinds and of OCM's have the forms `.a.b` and `.a[?(@.type=="Ready")].b`; a
    path of another form finds nothing.
    """
    if _SEGMENT.sub("", path):
        return None
    for name, key, _, text in _SEGMENT.findall(path):
        value = value.get(name) if isinstance(value, Mapping) else None
        if key:
            items = value if isinstance(value, list) else ()
            matching = (i for i in items if isinstance(i, Mapping) and i.get(key) == text)
            value = next(matching, None)
    return value


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
