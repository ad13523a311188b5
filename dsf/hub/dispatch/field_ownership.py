"""Which fields of a status a client owns by server-side apply.

A client that applies again has to state all fields that it owns: those that it leaves out are
removed. Who writes one more field in the name of another client needs the others as they are.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/; FieldsV1 in meta/v1, and
fieldpath/serialize-pe.go of sigs.k8s.io/structured-merge-diff.
"""

import json
from collections.abc import Mapping
from typing import Any

from dsf.kube.port import Object


def applied_status(obj: Object, manager: str) -> dict[str, Any]:
    """Return the part of an object's status that `manager` owns by applies; empty if it has none.

    Lists keep their order. What `managedFields` name and the status lacks is left out.
    """
    for entry in obj["metadata"].get("managedFields") or ():
        told = (entry.get("manager"), entry.get("operation"), entry.get("subresource"))
        if told == (manager, "Apply", "status"):
            fields = (entry.get("fieldsV1") or {}).get("f:status") or {}
            return dict(_owned(obj.get("status") or {}, fields))
    return {}


def _owned(value: Any, fields: Mapping[str, Any]) -> Any:
    parts = {key: part for key, part in fields.items() if key != "."}
    if isinstance(value, Mapping) and (parts or "." in fields):
        named = ((key.removeprefix("f:"), part) for key, part in parts.items())
        return {name: _owned(value[name], part) for name, part in named if name in value}
    if isinstance(value, list) and (parts or "." in fields):
        keys = [(json.loads(key[2:]), part) for key, part in parts.items() if key[:2] == "k:"]
        values = [json.loads(key[2:]) for key in parts if key[:2] == "v:"]
        return [
            _owned(item, part) | key if key else item
            for item in value
            for key, part in [*_keyed(item, keys), *(({}, {}) for one in values if one == item)]
        ]
    return value


def _keyed(item: Any, keys: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return the key of a list's item that is owned, and what of the item is; empty if none."""
    return [
        (key, part)
        for key, part in keys
        if isinstance(item, Mapping) and all(item.get(name) == key[name] for name in key)
    ]
