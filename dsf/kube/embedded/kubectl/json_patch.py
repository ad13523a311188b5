"""JSON Patch: apply a list of operations.

Source: RFC 6902, and RFC 6901 for its pointers.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from dsf.kube import json_merge_patch
from dsf.kube.schema.json_values import copied

LONGEST = 10_000
"""Operations in one JSON patch, as in kube-apiserver."""


class PatchError(ValueError):
    """An operation is malformed or does not fit the document."""


def patched(document: Any, operations: Any) -> Any:
    """Return a document with the operations applied in order; raises PatchError."""
    if not isinstance(operations, list) or len(operations) > LONGEST:
        raise PatchError(f"a JSON patch is a list of at most {LONGEST} operations")
    result = copied(document)
    for place, operation in enumerate(operations):
        if not isinstance(operation, Mapping):
            raise PatchError(f"operation {place} is not an object")
        try:
            result = _applied(result, operation)
        except (LookupError, TypeError, ValueError) as error:
            raise PatchError(f"operation {place} ({operation.get('op')}): {error}") from error
    return result


def _applied(document: Any, operation: Mapping[str, Any]) -> Any:
    keys = _keys(operation["path"])
    match operation["op"]:
        case "add":
            return _added(document, keys, copied(operation["value"]))
        case "remove":
            return _removed(document, keys)
        case "replace":
            _at(document, keys)
            return _added(_removed(document, keys), keys, copied(operation["value"]))
        case "move":
            source = _keys(operation["from"])
            moved = _at(document, source)
            return _added(_removed(document, source), keys, moved)
        case "copy":
            return _added(document, keys, copied(_at(document, _keys(operation["from"]))))
        case "test":
            if not json_merge_patch.same(_at(document, keys), operation["value"]):
                raise ValueError(f"testing value at {operation['path']!r} failed")
            return document
    raise ValueError("op must be add, remove, replace, move, copy or test")


def _keys(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise ValueError(f"{pointer!r} is not a JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _at(document: Any, keys: Iterable[str]) -> Any:
    for key in keys:
        document = document[_index(document, key)]
    return document


def _added(document: Any, keys: list[str], value: Any) -> Any:
    if not keys:
        return value
    parent = _at(document, keys[:-1])
    if isinstance(parent, list):
        place = len(parent) if keys[-1] == "-" else _index(parent, keys[-1])
        if place > len(parent):
            raise LookupError(f"index {place} is out of bounds")
        parent.insert(place, value)
    else:
        parent[_index(parent, keys[-1])] = value
    return document


def _removed(document: Any, keys: list[str]) -> Any:
    if not keys:
        return None
    parent = _at(document, keys[:-1])
    del parent[_index(parent, keys[-1])]
    return document


def _index(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return key
    if not isinstance(container, list):
        raise TypeError(f"{type(container).__name__} has no member {key!r}")
    if not (key.isascii() and key.isdigit()):
        raise ValueError(f"{key!r} is not an index")
    return int(key)
