"""JSON merge patch: apply a patch, and compute the smallest patch between two documents.

Arguments are never changed, and results share nothing with them. Source: RFC 7386. As in an API
server, but unlike the RFC, objects inside lists also lose their null members.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any


def merged(target: Any, patch: Any) -> Any:
    """Return `target` with `patch` applied: null removes, an object merges, the rest replaces."""
    if not isinstance(patch, Mapping):
        return without_nulls(patch)
    old = target if isinstance(target, Mapping) else {}
    result = {key: None if key in patch else deepcopy(value) for key, value in old.items()}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(old.get(key), value)
    return result


def patch_between(source: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    """Return the smallest patch that turns `source` into `target`; empty if they are equal.

    A merge patch cannot set null, so a null on either side counts as an absent key.
    """
    source, target = without_nulls(source), without_nulls(target)
    removed: dict[str, Any] = dict.fromkeys(key for key in source if key not in target)
    changed = {
        key: _value_between(source.get(key), value)
        for key, value in target.items()
        if key not in source or not same(source[key], value)
    }
    return removed | changed


def same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal; unlike in Python, `true` differs from 1."""
    if type(left) is str:
        return bool(left == right)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def without_nulls(value: Any) -> Any:
    """Return a copy of `value` whose objects have no null members; nulls in lists stay."""
    if type(value) is str:
        return value
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if not isinstance(value, Mapping):
        return deepcopy(value)
    return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}


def _value_between(before: Any, after: Any) -> Any:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return patch_between(before, after)
    return after
