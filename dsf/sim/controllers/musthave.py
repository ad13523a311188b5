"""Subset comparison: an object has what a manifest states, whatever else it has.

Both the work agent and the `musthave` compliance type of configuration policies compare this way.
"""

from collections.abc import Mapping
from typing import Any

from dsf.kube.changes import Change, Create, Patch
from dsf.kube.kinds import Kind
from dsf.kube.port import Object

Reference = tuple[Kind, str | None, str]
"""Kind, namespace (None where the kind has none) and name of an object."""

Observed = Mapping[Reference, Object | None]


def contains(actual: Any, wanted: Any) -> bool:
    """Tell whether `actual` holds all that `wanted` states; list items may stand in any order."""
    if isinstance(wanted, Mapping):
        return isinstance(actual, Mapping) and all(
            contains(actual.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(actual, list) and all(
            any(contains(have, item) for have in actual) for item in wanted
        )
    return bool(actual == wanted)


def ensure(reference: Reference, manifest: Object, observed: Observed) -> list[Change]:
    """Return the change after which the object has what the manifest states."""
    kind, namespace, name = reference
    before = observed.get(reference)
    if before is None:
        return [Create(kind, manifest)]
    if contains(before, manifest):
        return []
    body = {key: value for key, value in manifest.items() if key not in {"apiVersion", "kind"}}
    return [Patch(kind, name, namespace, body)]
