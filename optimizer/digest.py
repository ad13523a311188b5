"""Digests: the identity of a plan, and of the facts that it rests on."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from dsf.kube.changes import Change
from dsf.kube.port import Object
from optimizer.fleet import Cluster, Fleet


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
    """Return the SHA-256 of clusters, supplies and requests.

    Scores are left out, and so are generated candidates, which follow from them, and what runs
    now, which the generated objects say.
    """
    return _sha256(
        {
            "namespace": fleet.namespace,
            "clusters": [asdict(_listed(cluster)) for cluster in fleet.clusters],
            "workloads": [asdict(replace(item, current=())) for item in fleet.workloads],
        }
    )


def _listed(cluster: Cluster) -> Cluster:
    listed = tuple(replace(item, current=False) for item in cluster.candidates if not item.layouts)
    return replace(cluster, candidates=listed)


def _facts(fleet: Fleet) -> dict[str, Any]:
    return {
        "namespace": fleet.namespace,
        "clusters": [asdict(cluster) for cluster in fleet.clusters],
        "workloads": [asdict(workload) for workload in fleet.workloads],
    }


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
