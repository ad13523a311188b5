"""Strategic merge patch, as `kubectl apply` sends it for built-in kinds.

Lists of items with a merge key merge by that key, and lists of finalizers as sets. All other lists
are replaced. Source:
https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/
"""

from collections.abc import Mapping
from typing import Any

_MERGE_KEYS = {
    "ownerReferences": "uid",
    "conditions": "type",
    "addresses": "type",
    "taints": "key",
}
_SETS = frozenset({"finalizers"})
_ORDER, _DELETED, _RETAINED = "$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys"


def merged(target: Any, patch: Any) -> Any:
    """Return the target with the patch applied; neither argument is changed."""
    if not isinstance(patch, Mapping):
        return patch
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    result = dict(target) if isinstance(target, Mapping) else {}
    if _RETAINED in patch:
        result = {key: value for key, value in result.items() if key in patch[_RETAINED]}
    for key, value in patch.items():
        if key.startswith(_DELETED):
            name = key.removeprefix(_DELETED)
            result[name] = [item for item in result.get(name) or [] if item not in value]
        elif key.startswith("$"):
            continue
        elif value is None:
            result.pop(key, None)
        else:
            result[key] = _member(key, result.get(key), value)
    return _ordered(result, patch)


def _member(key: str, target: Any, value: Any) -> Any:
    if isinstance(value, list) and key in _MERGE_KEYS:
        return _merged_list(target or [], value, _MERGE_KEYS[key])
    if isinstance(value, list) and key in _SETS:
        return [*(target or []), *(item for item in value if item not in (target or []))]
    return merged(target, value)


def _merged_list(target: list[Any], patch: list[Any], key: str) -> list[Any]:
    if any(_directive(item) == "replace" for item in patch):
        return [item for item in patch if _directive(item) != "replace"]
    items = {item.get(key): item for item in target if isinstance(item, Mapping)}
    for item in patch:
        if _directive(item) == "delete":
            items.pop(item.get(key), None)
        elif isinstance(item, Mapping):
            items[item.get(key)] = merged(items.get(item.get(key)), item)
    return list(items.values())


def _ordered(result: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    for directive, order in patch.items():
        name = directive.removeprefix(_ORDER)
        if name != directive and isinstance(result.get(name), list) and isinstance(order, list):
            key = _MERGE_KEYS.get(name)
            places = {_identity(item, key): place for place, item in enumerate(order)}
            result[name] = sorted(
                result[name],
                key=lambda item: places.get(_identity(item, key), len(places)),
            )
    return result


def _identity(item: Any, key: str | None) -> str:
    return str(item.get(key) if key and isinstance(item, Mapping) else item)


def _directive(item: Any) -> Any:
    return item.get("$patch") if isinstance(item, Mapping) else None
