"""Compares an object with a manifest: whether it has every field, and which change it needs.

The work agent compares this way, and so does the `musthave` compliance type of configuration
policies.

Source: https://open-cluster-management.io/docs/getting-started/integration/policy-controllers/
"""

from collections.abc import Mapping
from typing import Any

from dsf.kube.changes import Change, Create, Patch, status_patch
from dsf.kube.kinds import Kind, find
from dsf.kube.port import Object

Reference = tuple[Kind, str | None, str]
"""Kind, namespace (None where the kind has none) and name of an object."""

Observed = Mapping[Reference, Object | None]


def reference_of(manifest: Object) -> Reference | None:
    """Return what a manifest refers to; None without a name, or if the kind is unknown."""
    kind, metadata = find(manifest), manifest.get("metadata", {})
    if kind is None or not metadata.get("name"):
        return None
    namespace = metadata.get("namespace", "default") if kind.namespaced else None
    return (kind, namespace, metadata["name"])


def contains(actual: Any, expected: Any) -> bool:
    """Return whether `actual` has every field of `expected`; list items may be in any order."""
    if isinstance(expected, Mapping):
        return isinstance(actual, Mapping) and all(
            contains(actual.get(key), value) for key, value in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and all(
            any(contains(have, item) for have in actual) for item in expected
        )
    return bool(actual == expected)


def ensure(reference: Reference, manifest: Object, observed: Observed) -> list[Change]:
    """Return the change that gives an object every field of the manifest, if it needs one."""
    kind, namespace, name = reference
    before = observed.get(reference)
    if before is None:
        return [Create(kind, manifest)]
    if contains(before, manifest):
        return []
    body = {key: value for key, value in manifest.items() if key not in {"apiVersion", "kind"}}
    return [Patch(kind, name, namespace, body)]


def set_status(kind: Kind, obj: Object, status: Object) -> list[Change]:
    """Return the write of some status fields of an object, if they differ."""
    if not status_patch(obj, {"status": status}):
        return []
    metadata = obj["metadata"]
    body = {"status": status}
    return [Patch(kind, metadata["name"], metadata.get("namespace"), body, "status")]
