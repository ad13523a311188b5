"""Digests: the identity of a plan, and of the facts that it rests on."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from itertools import chain, groupby
from typing import Any

from dsf.kube.changes import Change
from dsf.kube.port import Object
from optimizer.fleet import Cluster, Fleet


def digest_of(fleet: Fleet, objects: Iterable[Object], changes: Iterable[Change]) -> str:
    """Return the SHA-256 of the facts used, scores included, the objects and the changes."""
    rest = {"objects": list(objects), "changes": [str(change) for change in changes]}
    return _sha256(chain([_facts(fleet)], _scores(fleet), [rest]))


def basis_of(fleet: Fleet) -> str:
    """Return the SHA-256 of clusters, supplies and requests.

    Scores are left out, and so are generated candidates, which follow from them, and what runs
    now, which the generated objects say.
    """
    listed = tuple(_listed(cluster) for cluster in fleet.clusters)
    asked = tuple(replace(item, current=()) for item in fleet.workloads)
    return _sha256([_facts(replace(fleet, clusters=listed, workloads=asked))])


def _listed(cluster: Cluster) -> Cluster:
    listed = tuple(replace(item, current=False) for item in cluster.candidates if not item.layouts)
    return replace(cluster, candidates=listed)


def _facts(fleet: Fleet) -> dict[str, Any]:
    return {
        "namespace": fleet.namespace,
        "clusters": [asdict(cluster) for cluster in fleet.clusters],
        "workloads": [asdict(workload) for workload in fleet.workloads],
    }


def _scores(fleet: Fleet) -> Iterator[Any]:
    """Yield the scores in pieces, since millions of them as one text would not fit into memory."""
    for name, scores in fleet.scores.items():
        for cluster, found in groupby(scores.items(), key=_cluster):
            yield name, cluster, [(app, device, value) for (_, app, device), value in found]


def _cluster(score: tuple[tuple[str, str, str], float]) -> str:
    return score[0][0]


def _sha256(parts: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        text = json.dumps(part, sort_keys=True, separators=(",", ":"))
        digest.update(f"{text}\n".encode())
    return digest.hexdigest()
