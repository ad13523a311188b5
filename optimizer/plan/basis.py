"""The digest of a plan, what the plan rests on, and words for what changed of that since."""

import hashlib
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

from dsf.api.scoring.quantity import format_quantity
from dsf.api.untrusted_text import UntrustedName, listed
from dsf.kube.changes import Change
from dsf.kube.port import Object
from optimizer.domain.fleet import Cluster, Fleet, Selector, Supply, Workload
from optimizer.domain.mig.gpu_pools import GpuPools
from optimizer.domain.solution import Decision
from optimizer.snapshot.ownership.namespace_reader import Dependent
from optimizer.wire.rollout import RolloutStrategy

_SHOWN_MEMBERS = 3
"""Members of a list that one message names."""

_LONGEST = 60
"""Characters of a value that is shown; of a longer one it is only said that it changed."""


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


_SHOWN_NAMES = 3
"""Clusters or workloads that one change names."""

_WORDS = {
    "base": "supplies without a policy",
    "candidates": "candidate policies",
    "drained": "drain",
    "enforced": "enforced policies",
    "excluded_clusters": "excluded clusters",
    "gpus": "GPUs",
    "no_new_policies": "closed to new policies",
    "used_by_others": "use by others",
    "unselectable": "clusters that OCM can't select",
    "avoided": "clusters that it avoids",
}


@dataclass(frozen=True, slots=True)
class Basis:
    """The SHA-256 of the facts that must not change between planning and applying.

    `facts`: the fields of each of them by name, such as `workload app01`, as compressed JSON.
    """

    digest: str
    facts: bytes = field(default=b"", compare=False)


def basis_of(fleet: Fleet, pools: GpuPools) -> Basis:
    """Return the basis of clusters, supplies, GPUs and requests.

    Scores are left out, and so are generated candidates, which depend on them. The current state is
    left out, because the changes of a plan are compared with the generated objects.
    """
    facts = _text(dict(_facts(fleet, pools)))
    others = {"namespace": fleet.namespace, "optimization": fleet.optimization}
    return Basis(_sha256([_text(others), facts]), zlib.compress(facts, level=1))


def changed_facts(then: Basis, fleet: Fleet, pools: GpuPools) -> Iterator[tuple[str, str]]:
    """Yield what is not as it was, with the changed fields, `is new` or `is gone`.

    Clusters of the same changes are told as one, as workloads are.
    """
    before = json.loads(zlib.decompress(then.facts))
    now = json.loads(_text(dict(_facts(fleet, pools))))
    alike = defaultdict[tuple[str, str], list[str]](list)
    for fact in {**now, **before}:
        noun, _, name = fact.rpartition(" ")
        if what := _changed_fields(before.get(fact), now.get(fact), _WORDS):
            alike[noun, what].append(name)
    for (noun, what), names in alike.items():
        plural = "s" if len(names) > 1 else ""
        yield f"{noun}{plural} {listed(names, _SHOWN_NAMES)}", what


def _facts(fleet: Fleet, pools: GpuPools) -> Iterator[tuple[str, dict[str, Any]]]:
    for cluster in fleet.clusters:
        gpus = [
            [pool.name, node.name, [gpu.geometry.model for gpu in node.gpus]]
            for pool in pools.get(cluster.name, ())
            for node in pool.nodes
        ]
        name = f"managed cluster {cluster.name}"
        fields = asdict(replace(_listed(_stated(cluster)), nodes=None, device_classes={}))
        yield name, {**fields, "gpus": gpus}
    for workload in fleet.workloads:
        yield (
            f"workload {workload.name}",
            asdict(replace(workload, current=(), unseen=(), pending=())),
        )


def _listed(cluster: Cluster) -> Cluster:
    listed = tuple(replace(item, current=False) for item in cluster.candidates if not item.layouts)
    return replace(cluster, candidates=listed, enforced=())


def _changed_fields(
    before: Mapping[str, Any] | None, now: Mapping[str, Any] | None, words: Mapping[str, str]
) -> str:
    """Return what changed of a fact's fields, as JSON: `is new`, `is gone`, empty if nothing did.

    `words`: what messages call a field; one that has no words has its name.
    """
    if before is None or now is None:
        return "is new" if before is None else "is gone"
    parts = [
        _change(words.get(name, name.replace("_", " ")), before.get(name), value)
        for name, value in now.items()
        if value != before.get(name)
    ]
    return f"changed: {', '.join(parts)}" if parts else ""


def _change(word: str, before: Any, now: Any) -> str:
    if isinstance(now, list | dict) and isinstance(before, list | dict):
        found = _members(_by_name(before), _by_name(now))
        return f"{word} ({' and '.join(found) or 'their order'})"
    texts = _word(now), _word(before)
    return word if max(map(len, texts)) > _LONGEST else "{} (now {}, was {})".format(word, *texts)


def _members(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for said, names in (
        ("now also", [name for name in now if name not in before]),
        ("no longer", [name for name in before if name not in now]),
        ("other values of", [name for name in now if now[name] != before.get(name, now[name])]),
    ):
        if names:
            yield f"{said} {listed(names, _SHOWN_MEMBERS)}"


def _by_name(found: list[Any] | dict[str, Any]) -> dict[str, Any]:
    """Return the members of a list by what a message calls them: a policy by its name."""
    if isinstance(found, dict):
        return {f"{key}={_word(value)}": value for key, value in found.items()}
    return {
        item["policy"] if isinstance(item, dict) and "policy" in item else _word(item): item
        for item in found
    }


def _word(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value:g}"
        case dict():
            return " ".join(map(_word, value.values()))
        case list():
            return " ".join(map(_word, value)) or "none"
    return UntrustedName(value) if value else "none"


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
