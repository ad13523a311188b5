"""Subset comparison: does an object have every field of a manifest? Further fields do not matter.

The work agent compares this way, and so does the `musthave` compliance type of configuration
policies.

Source: https://open-cluster-management.io/docs/getting-started/integration/policy-controllers/
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
    """Return whether `actual` has every field of `wanted`; list items may be in any order."""
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
    """Return the change that gives an object every field of the manifest, if it needs one."""
    kind, namespace, name = reference
    before = observed.get(reference)
    if before is None:
        return [Create(kind, manifest)]
    if contains(before, manifest):
        return []
    body = {key: value for key, value in manifest.items() if key not in {"apiVersion", "kind"}}
    return [Patch(kind, name, namespace, body)]
