"""The digest that identifies a plan."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from dsf.kube.changes import Change
from dsf.kube.port import Object
from optimizer.domain.fleet import Fleet
from optimizer.snapshot.ownership.namespace_reader import Dependent
from optimizer.wire.rollout import RolloutStrategy


def digest_of(
    fleet: Fleet,
    objects: Iterable[Object],
    changes: Iterable[Change],
    rollout: RolloutStrategy,
    uncovers: Mapping[str, Sequence[Dependent]],
) -> str:
    """Return the SHA-256 of the facts used, scores included, the objects and the changes.

    Whoever approves it has also seen which workloads of others the plan uncovers.
    """
    rest: dict[str, Any] = {
        "objects": list(objects),
        "changes": [str(change) for change in changes],
    }
    if rollout != "AllAtOnce":
        rest["rollout"] = rollout
    if uncovers:
        rest["uncovers"] = {name: [i.key for i in on] for name, on in uncovers.items()}
    return _sha256(chain(map(_text, [_facts(fleet), rest]), _scores(fleet)))


def digest_of_json(value: Any) -> str:
    """Return the SHA-256 of a value as canonical JSON."""
    return _sha256([_text(value)])


def _facts(fleet: Fleet) -> dict[str, Any]:
    return {
        "namespace": fleet.namespace,
        "optimization": fleet.optimization,
        "clusters": [asdict(cluster) for cluster in fleet.clusters],
        "workloads": [asdict(workload) for workload in fleet.workloads],
    }


def _scores(fleet: Fleet) -> Iterator[bytes]:
    """Yield the scores as arrays: millions of them as text would not fit into memory."""
    for name, scores in fleet.scores.items():
        yield _text([name, list(scores.apps), list(scores.places), scores.table.dtype.str])
        yield scores.table.tobytes()


def _text(part: Any) -> bytes:
    return json.dumps(part, sort_keys=True, separators=(",", ":")).encode()


def _sha256(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
        digest.update(b"\n")
    return digest.hexdigest()
