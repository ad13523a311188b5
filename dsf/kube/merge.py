"""JSON merge patch: apply one, and work out the smallest one between two documents.

Source: RFC 7386. Arguments are never changed and results share nothing with them.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any


def patched(target: Any, patch: Any) -> Any:
    """Return `target` with `patch` applied: null removes a key, anything but an object replaces."""
    if not isinstance(patch, Mapping):
        return deepcopy(patch)
    result = dict(deepcopy(target)) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), value)
    return result


def patch_between(source: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    """Return the smallest patch that turns `source` into `target`; empty where they are equal.

    A null in `target` cannot be expressed by a merge patch and means that the key is absent.
    """
    removed: dict[str, Any] = {
        key: None for key in source if source[key] is not None and target.get(key) is None
    }
    changed = {
        key: _value_between(source.get(key), value)
        for key, value in target.items()
        if value is not None and not same(source.get(key), value)
    }
    return removed | changed


def same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal, where `true` is not 1."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _value_between(before: Any, after: Any) -> Any:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return patch_between(before, after)
    return patched({}, after) if isinstance(after, Mapping) else deepcopy(after)
