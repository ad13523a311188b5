"""JSON merge patch.

Source: RFC 7386.
"""

from collections.abc import Mapping
from typing import Any


def merged(target: Any, patch: Any) -> Any:
    """Return the target with a merge patch applied; neither argument is changed.

    A null in the patch removes, a mapping merges, anything else replaces.
    """
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
