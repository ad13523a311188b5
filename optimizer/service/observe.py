"""Reads the hub: each kind is listed once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from dsf.kube import kinds
from dsf.kube.errors import Forbidden, Gone, NotFound
from dsf.kube.kinds import Kind
from dsf.kube.port import Lister, Object, list_objects
from optimizer.service.hub.watched_hub import WATCHED
from optimizer.snapshot.object_readers import is_generated, is_workload, replica_set_of
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.others_part import USAGE_SCORE

T = TypeVar("T")

SHARED_KINDS = (
    kinds.POLICY,
    kinds.MANIFEST_WORK_REPLICA_SET,
    kinds.PLACEMENT,
    kinds.PLACEMENT_BINDING,
    kinds.PLACEMENT_DECISION,
)
"""The kinds of which objects in other namespaces count too."""

_MANIFESTS, _TEMPLATES = "manifestWorkTemplate", "policy-templates"

MAX_READS = 3
"""Attempts to read a list whose continue token expires."""


async def observe(
    kube: Lister, namespace: str, now: datetime, *, named: bool = True
) -> Observation:
    """Return the objects that a plan depends on, except scores: there can be millions of them.

    The copies of policies that OCM makes for clusters are left out: there can be very many.
    `named`: whether the plan may name what is in other namespaces. Kinds that may be listed in
    single namespaces only are `unread` elsewhere. Raises KubeError if the hub can't be read.
    """
    return await (await observe_hub(kube, now, named=named)).of(namespace)


@dataclass(frozen=True, slots=True)
class ObservedHub:
    """What is read of a hub at once, for the observation of any namespace.

    `shared`: the objects of each namespace, as far as their kinds could be listed everywhere.
    """

    kube: Lister
    hub: Observation
    shared: Mapping[str, Mapping[Kind, Sequence[Object]]]
    elsewhere: Mapping[str, Observation]
    unread: Sequence[Kind]

    async def of(self, namespace: str) -> Observation:
        """Return what `observe` returns of a namespace."""
        own = {
            kind: await list_all(self.kube, kind, namespace, labels=WATCHED[kind])
            for kind in self.unread
        }
        bindings = await list_all(self.kube, kinds.MANAGED_CLUSTER_SET_BINDING, namespace)
        return replace(
            _with_objects(self.hub, {**self.shared.get(namespace, {}), **own}),
            set_bindings=bindings,
            elsewhere={name: seen for name, seen in self.elsewhere.items() if name != namespace},
        )


async def observe_hub(kube: Lister, now: datetime, *, named: bool = True) -> ObservedHub:
    """Read each kind once, for any number of namespaces; as `observe`."""
    inventories = await _list_everywhere(kube, kinds.NODE_INVENTORY)
    managed, sets, works, usage_scores, scorers, lists = await asyncio.gather(
        list_all(kube, kinds.MANAGED_CLUSTER),
        list_all(kube, kinds.MANAGED_CLUSTER_SET),
        _list_works(kube),
        _list_everywhere(kube, kinds.ADD_ON_PLACEMENT_SCORE, fields=f"metadata.name={USAGE_SCORE}"),
        _list_everywhere(kube, kinds.DYNAMIC_SCORER),
        asyncio.gather(
            *(_list_everywhere(kube, kind, labels=WATCHED[kind]) for kind in SHARED_KINDS)
        ),
    )
    listed = dict(zip(SHARED_KINDS, lists, strict=True))
    unread = [kind for kind, found in listed.items() if found is None]
    shared = _by_namespace({kind: found or () for kind, found in listed.items()})
    hub = Observation(
        managed_clusters=managed,
        cluster_sets=sets,
        observed_at=now,
        works=works,
        usage_scores=usage_scores or (),
        scorers=scorers,
        inventories=inventories,
        unread=tuple(kind.kind for kind in unread),
    )
    nothing = Observation(named=named)
    return ObservedHub(
        kube,
        hub,
        shared,
        {name: _with_objects(nothing, _without_manifests(own)) for name, own in shared.items()},
        unread,
    )


async def observe_namespace(kube: Lister, namespace: str, now: datetime) -> Observation:
    """Return what `observe` returns, without what is elsewhere on the hub.

    Raises KubeError if the hub can't be read.
    """
    managed, sets, bindings, works, inventories, own = await asyncio.gather(
        list_all(kube, kinds.MANAGED_CLUSTER),
        list_all(kube, kinds.MANAGED_CLUSTER_SET),
        list_all(kube, kinds.MANAGED_CLUSTER_SET_BINDING, namespace),
        _list_works(kube),
        _list_everywhere(kube, kinds.NODE_INVENTORY),
        asyncio.gather(
            *(list_all(kube, kind, namespace, labels=WATCHED[kind]) for kind in SHARED_KINDS)
        ),
    )
    hub = Observation(
        managed_clusters=managed,
        cluster_sets=sets,
        set_bindings=bindings,
        works=_works_of(works, namespace),
        inventories=inventories,
        observed_at=now,
    )
    return _with_objects(hub, dict(zip(SHARED_KINDS, own, strict=True)))


async def observe_namespaces(kube: Lister, now: datetime) -> dict[str, Observation]:
    """Return what `observe_namespace` returns for each namespace with workloads or what we wrote.

    The empty name has the managed clusters alone. Each kind is listed once, over all namespaces.
    Raises KubeError if the hub can't be read, or only namespace by namespace.
    """
    works = await _list_works(kube)
    inventories = await _list_everywhere(kube, kinds.NODE_INVENTORY)
    managed, sets, *lists = await asyncio.gather(
        list_all(kube, kinds.MANAGED_CLUSTER),
        list_all(kube, kinds.MANAGED_CLUSTER_SET),
        list_all(kube, kinds.MANAGED_CLUSTER_SET_BINDING),
        *(list_all(kube, kind, labels=WATCHED[kind]) for kind in SHARED_KINDS),
    )
    listed = dict(zip((kinds.MANAGED_CLUSTER_SET_BINDING, *SHARED_KINDS), lists, strict=True))
    hub = Observation(managed_clusters=managed, inventories=inventories, observed_at=now)
    found = {"": hub}
    for name, objects in sorted(_by_namespace(listed).items()):
        bindings = tuple(objects.pop(kinds.MANAGED_CLUSTER_SET_BINDING, ()))
        own_works = _works_of(works, name)
        there = replace(hub, cluster_sets=sets, set_bindings=bindings, works=own_works)
        observation = _with_objects(there, objects)
        written = (*observation.placements, *observation.bindings)
        if any(map(is_workload, observation.workloads)) or any(map(is_generated, written)):
            found[name] = observation
    return found


async def _list_everywhere(kube: Lister, kind: Kind, **selectors: str) -> tuple[Object, ...] | None:
    """Return all objects of a kind; None if they may be listed in single namespaces only."""
    try:
        return await list_all(kube, kind, **selectors)
    except Forbidden:
        return None


async def _list_works(kube: Lister) -> tuple[Object, ...] | None:
    """Return the ManifestWorks of all ManifestWorkReplicaSets without what they deploy."""
    found = await _list_everywhere(kube, kinds.MANIFEST_WORK, labels=WATCHED[kinds.MANIFEST_WORK])
    return None if found is None else tuple({**obj, "spec": {}} for obj in found)


def _works_of(works: Iterable[Object] | None, namespace: str) -> tuple[Object, ...] | None:
    """Return the ManifestWorks of the replica sets of a namespace; None if they were not listed."""
    if works is None:
        return None
    return tuple(obj for obj in works if replica_set_of(obj)[0] == namespace)


def _by_namespace(lists: Mapping[Kind, Iterable[Object]]) -> dict[str, dict[Kind, list[Object]]]:
    found: dict[str, dict[Kind, list[Object]]] = {}
    for kind, objects in lists.items():
        for obj in objects:
            there = found.setdefault(str(obj["metadata"].get("namespace")), {})
            there.setdefault(kind, []).append(obj)
    return found


def _without_manifests(objects: Mapping[Kind, Sequence[Object]]) -> dict[Kind, Sequence[Object]]:
    """Drop what workloads and policies deploy: nothing reads it elsewhere, and it is the most."""
    lean = _without(objects, kinds.MANIFEST_WORK_REPLICA_SET, _MANIFESTS)
    return _without(lean, kinds.POLICY, _TEMPLATES)


def _without(
    objects: Mapping[Kind, Sequence[Object]], kind: Kind, field: str
) -> dict[Kind, Sequence[Object]]:
    """Return objects without a field of the spec of one kind."""
    lean = [
        {**obj, "spec": {k: v for k, v in (obj.get("spec") or {}).items() if k != field}}
        for obj in objects.get(kind, ())
    ]
    return {**objects, kind: lean}


def _with_objects(
    observation: Observation, objects: Mapping[Kind, Sequence[Object]]
) -> Observation:
    """Return an observation with the objects of one namespace."""
    return replace(
        observation,
        policies=tuple(objects.get(kinds.POLICY, ())),
        workloads=tuple(objects.get(kinds.MANIFEST_WORK_REPLICA_SET, ())),
        placements=tuple(objects.get(kinds.PLACEMENT, ())),
        bindings=tuple(objects.get(kinds.PLACEMENT_BINDING, ())),
        decisions=tuple(objects.get(kinds.PLACEMENT_DECISION, ())),
    )


async def list_all(
    kube: Lister, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = ""
) -> tuple[Object, ...]:
    """Return all objects of a kind; none if the hub does not serve the kind."""
    try:
        read = partial(list_objects, kube, kind, namespace, labels=labels, fields=fields)
        return tuple(await retry_when_gone(read))
    except NotFound:
        return ()


async def retry_when_gone(read: Callable[[], Awaitable[T]]) -> T:
    """Return what `read` returns; if a continue token expires, read again from the start.

    Raises Gone after MAX_READS attempts.
    """
    for _ in range(MAX_READS - 1):
        with suppress(Gone):
            return await read()
    return await read()
