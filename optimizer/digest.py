"""Digests: the identity of a plan, and of the facts that it rests on."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from dsf.kube.changes import Change
from dsf.kube.port import Object
from optimizer.fleet import Fleet


def digest_of(fleet: Fleet, objects: Iterable[Object], changes: Iterable[Change]) -> str:
    """Return the SHA-256 of the facts used, scores included, the objects and the changes."""
    return _sha256(
        {
            "facts": _facts(fleet),
            "scores": {
                name: sorted([*key, value] for key, value in scores.items())
                for name, scores in fleet.scores.items()
            },
            "objects": list(objects),
            "changes": [str(change) for change in changes],
        }
    )


def basis_of(fleet: Fleet) -> str:
    """Return the SHA-256 of clusters, supplies and requests, scores left out."""
    return _sha256(_facts(fleet))


def _facts(fleet: Fleet) -> dict[str, Any]:
    return {
        "namespace": fleet.namespace,
        "clusters": [asdict(cluster) for cluster in fleet.clusters],
        "workloads": [asdict(workload) for workload in fleet.workloads],
    }


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
