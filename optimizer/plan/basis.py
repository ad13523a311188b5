"""The digest of a plan, what the plan rests on, and words for what changed of that since."""

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import UntrustedName
from dsf.kube.changes import Change
from dsf.kube.port import Object
from optimizer.domain.fleet import Cluster, Fleet, Selector, Supply, Workload
from optimizer.domain.mig.gpu_pools import GpuPools
from optimizer.domain.solution import Decision
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
    return _sha256(chain(map(_text, [_fleet_facts(fleet), rest]), _scores(fleet)))


def digest_of_json(value: Any) -> str:
    """Return the SHA-256 of a value as canonical JSON."""
    return _sha256([_text(value)])


def _fleet_facts(fleet: Fleet) -> dict[str, Any]:
    return {
        "namespace": fleet.namespace,
        "optimization": fleet.optimization,
        "clusters": [_cluster_fields(_stated(cluster)) for cluster in fleet.clusters],
        "workloads": [_workload_fields(workload) for workload in fleet.workloads],
    }


def _cluster_fields(cluster: Cluster) -> dict[str, Any]:
    fields = asdict(replace(cluster, nodes=None, device_classes={}))
    names = ("nodes", "device_classes", "capacity_source", "packing", "drained", "max_workloads")
    return _without_defaults(fields, names, _NO_CLUSTER)


def _stated(cluster: Cluster) -> Cluster:
    """Return a cluster without what follows from its nodes, which changes all the time.

    A decision is compared with the nodes when it is applied.
    """
    if cluster.nodes is None:
        return cluster
    candidates = (replace(i, supplies=()) if i.current else i for i in cluster.candidates)
    return replace(cluster, base=(), used_by_others=(), candidates=tuple(candidates))


def _workload_fields(workload: Workload) -> dict[str, Any]:
    """Return a workload's facts, without what its Pods and inventories do at the moment."""
    fields = asdict(replace(workload, unseen=(), pending=()))
    names = ("pods", "devices", "unseen", "pending", "apart_from", "together_with")
    return _without_defaults(fields, names, _NO_WORKLOAD)


def _without_defaults(
    found: dict[str, Any], names: Iterable[str], nothing: Cluster | Workload
) -> dict[str, Any]:
    """Return fields without those of these that say nothing: not every fleet has them."""
    absent = {name for name in names if found[name] == getattr(nothing, name)}
    return {name: value for name, value in found.items() if name not in absent}


_NO_CLUSTER = Cluster("", Selector(""), ())
_NO_WORKLOAD = Workload("", "", "", 0.0, "")


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


_CHECKSUM_BYTES = 4
"""Bytes for each field: enough to name a field, not to tell whether anything changed."""

_WORDS = {
    "base": "supplies without a policy",
    "candidates": "candidate policies",
    "enforced": "enforced policies",
    "excluded_clusters": "excluded clusters",
    "gpus": "GPUs",
    "used_by_others": "use by others",
    "unselectable": "clusters that OCM can't select",
    "avoided": "clusters that it avoids",
}


@dataclass(frozen=True, slots=True)
class Basis:
    """The SHA-256 of the facts that must not change between planning and applying.

    `checksums`: for each fact, such as `workload app01`, those of its fields one after the other.
    They only name what changed: the digest says whether anything did.
    """

    digest: str
    checksums: Mapping[str, bytes] = field(default_factory=dict, compare=False)


def basis_of(fleet: Fleet, pools: GpuPools) -> Basis:
    """Return the basis of clusters, supplies, GPUs and requests.

    Scores are left out, and so are generated candidates, which depend on them. The current state is
    left out, because the changes of a plan are compared with the generated objects.
    """
    facts = dict(_facts(fleet, pools))
    others = {"namespace": fleet.namespace, "optimization": fleet.optimization}
    return Basis(
        digest_of_json([others, facts]),
        MappingProxyType({name: _checksums(fields) for name, fields in facts.items()}),
    )


def changed_facts(then: Basis, fleet: Fleet, pools: GpuPools) -> Iterator[tuple[str, str]]:
    """Yield each fact that is not as it was, with what changed: fields, `is new` or `is gone`."""
    now = dict(_facts(fleet, pools))
    for name, fields in now.items():
        before = then.checksums.get(name)
        if before is None:
            yield name, "is new"
        elif words := ", ".join(_differing(fields, before)):
            yield name, f"changed: {words}"
    for name in then.checksums:
        if name not in now:
            yield name, "is gone"


def _facts(fleet: Fleet, pools: GpuPools) -> Iterator[tuple[str, dict[str, Any]]]:
    for cluster in fleet.clusters:
        gpus = [
            [pool.name, node.name, [gpu.geometry.model for gpu in node.gpus]]
            for pool in pools.get(cluster.name, ())
            for node in pool.nodes
        ]
        name = f"managed cluster {cluster.name}"
        yield name, {**_cluster_fields(_listed(_stated(cluster))), "gpus": gpus}
    for workload in fleet.workloads:
        yield f"workload {workload.name}", _workload_fields(replace(workload, current=()))


def _listed(cluster: Cluster) -> Cluster:
    listed = tuple(replace(item, current=False) for item in cluster.candidates if not item.layouts)
    return replace(cluster, candidates=listed, enforced=())


def _checksums(fields: Mapping[str, Any]) -> bytes:
    return b"".join(
        zlib.crc32(json.dumps(value, sort_keys=True).encode()).to_bytes(_CHECKSUM_BYTES, "big")
        for value in fields.values()
    )


def _differing(fields: Mapping[str, Any], before: bytes) -> Iterator[str]:
    now = _checksums(fields)
    for index, name in enumerate(fields):
        place = slice(index * _CHECKSUM_BYTES, (index + 1) * _CHECKSUM_BYTES)
        if now[place] != before[place]:
            yield _WORDS.get(name, name.replace("_", " "))


def assumptions(fleet: Fleet, decision: Decision) -> dict[str, str]:
    """Return what each enforced policy supplies, and what each assigned workload requests.

    The keys are `policy NAME` and `workload NAME`, the values such as `supplies 2 gpu of 3g.48gb`.
    """
    enforced = {choice.policy for choice in decision.policies}
    assigned = {item.workload for item in decision.assignments}
    supplies = {
        f"policy {UntrustedName(item.policy)}": supplies_text(item.supplies)
        for cluster in fleet.clusters
        for item in cluster.candidates
        if item.policy in enforced
    }
    requests = {
        f"workload {UntrustedName(item.name)}": requests_text(item)
        for item in fleet.workloads
        if item.name in assigned
    }
    return supplies | requests


def requests_text(workload: Workload) -> str:
    """Return what a workload requests, such as `requests 2 gpu`."""
    further = (Supply(kind, "", amount) for kind, amount in workload.requests)
    return _amounts_text("requests", (Supply(workload.kind, "", workload.amount), *further))


def supplies_text(supplies: Iterable[Supply]) -> str:
    """Return what a policy supplies, such as `supplies 2 gpu of 3g.48gb`."""
    return _amounts_text("supplies", supplies)


def _amounts_text(verb: str, supplies: Iterable[Supply]) -> str:
    parts = (
        f"{format_quantity(float(item.amount))} {UntrustedName(item.kind)}"
        + (f" of {UntrustedName(item.device)}" if item.device else "")
        for item in supplies
    )
    return f"{verb} {', '.join(parts) or 'nothing'}"
