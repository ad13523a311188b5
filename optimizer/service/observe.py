"""Reads the hub: each kind is listed once, and scores page by page."""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from dsf.kube.errors import Forbidden, Gone, NotFound
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    DYNAMIC_SCORER,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_SET,
    MANAGED_CLUSTER_SET_BINDING,
    MANIFEST_WORK,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    PLACEMENT_BINDING,
    PLACEMENT_DECISION,
    POLICY,
    Kind,
)
from dsf.kube.port import Lister, Object
from dsf.kube.reads import list_objects
from optimizer.hub.score_pages import ENTRIES_PER_PAGE, FIRST_SCORE_PAGE_SIZE, next_page_size
from optimizer.hub.watched_hub import WATCHED
from optimizer.snapshot.object_readers import (
    is_generated,
    is_workload,
    name_of,
    replica_set_of,
)
from optimizer.snapshot.observation import Observation
from optimizer.snapshot.ownership.others_part import USAGE_SCORE
from optimizer.wire.result import ScoreObject

T = TypeVar("T")

MAX_NAMES_LISTED_ONE_BY_ONE = 3
"""The API server selects up to 3 score names by field selector; for more, all scores are listed."""

SHARED_KINDS = (POLICY, MANIFEST_WORK_REPLICA_SET, PLACEMENT, PLACEMENT_BINDING, PLACEMENT_DECISION)
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
    hub, works, usage_scores, scorers, shared = await asyncio.gather(
        _observe_hub(kube, namespace, now),
        _list_works(kube),
        _list_everywhere(kube, ADD_ON_PLACEMENT_SCORE, fields=f"metadata.name={USAGE_SCORE}"),
        _list_everywhere(kube, DYNAMIC_SCORER),
        asyncio.gather(
            *(_list_everywhere(kube, kind, labels=WATCHED[kind]) for kind in SHARED_KINDS)
        ),
    )
    lists = dict(zip(SHARED_KINDS, shared, strict=True))
    unread = [kind for kind, found in lists.items() if found is None]
    own = {kind: await list_all(kube, kind, namespace, labels=WATCHED[kind]) for kind in unread}
    by_namespace = _by_namespace(
        {kind: own[kind] if found is None else found for kind, found in lists.items()}
    )
    return replace(
        _with_objects(hub, by_namespace.pop(namespace, {})),
        usage_scores=usage_scores or (),
        scorers=scorers,
        works=works,
        elsewhere={
            name: _with_objects(Observation(named=named), _without_manifests(found))
            for name, found in by_namespace.items()
        },
        unread=tuple(kind.kind for kind in unread),
    )


async def observe_namespace(kube: Lister, namespace: str, now: datetime) -> Observation:
    """Return what `observe` returns, without what is elsewhere on the hub.

    Raises KubeError if the hub can't be read.
    """
    hub, works, own = await asyncio.gather(
        _observe_hub(kube, namespace, now),
        _list_works(kube),
        asyncio.gather(
            *(list_all(kube, kind, namespace, labels=WATCHED[kind]) for kind in SHARED_KINDS)
        ),
    )
    found = _with_objects(hub, dict(zip(SHARED_KINDS, own, strict=True)))
    return replace(found, works=_works_of(works, namespace))


async def observe_namespaces(kube: Lister, now: datetime) -> dict[str, Observation]:
    """Return what `observe_namespace` returns for each namespace with workloads or what we wrote.

    The empty name has the managed clusters alone. Each kind is listed once, over all namespaces.
    Raises KubeError if the hub can't be read, or only namespace by namespace.
    """
    works = await _list_works(kube)
    managed, sets, *lists = await asyncio.gather(
        list_all(kube, MANAGED_CLUSTER),
        list_all(kube, MANAGED_CLUSTER_SET),
        list_all(kube, MANAGED_CLUSTER_SET_BINDING),
        *(list_all(kube, kind, labels=WATCHED[kind]) for kind in SHARED_KINDS),
    )
    kinds = (MANAGED_CLUSTER_SET_BINDING, *SHARED_KINDS)
    hub = Observation(managed_clusters=managed, observed_at=now)
    found = {"": hub}
    for name, objects in sorted(_by_namespace(dict(zip(kinds, lists, strict=True))).items()):
        bindings = tuple(objects.pop(MANAGED_CLUSTER_SET_BINDING, ()))
        own_works = _works_of(works, name)
        there = replace(hub, cluster_sets=sets, set_bindings=bindings, works=own_works)
        observation = _with_objects(there, _without(objects, MANIFEST_WORK_REPLICA_SET, _MANIFESTS))
        written = (*observation.placements, *observation.bindings)
        if any(map(is_workload, observation.workloads)) or any(map(is_generated, written)):
            found[name] = observation
    return found


async def _observe_hub(kube: Lister, namespace: str, now: datetime) -> Observation:
    """Return the managed clusters, and the cluster sets with their bindings to a namespace."""
    managed, sets, set_bindings = await asyncio.gather(
        list_all(kube, MANAGED_CLUSTER),
        list_all(kube, MANAGED_CLUSTER_SET),
        list_all(kube, MANAGED_CLUSTER_SET_BINDING, namespace),
    )
    return Observation(
        managed_clusters=managed, cluster_sets=sets, set_bindings=set_bindings, observed_at=now
    )


async def _list_everywhere(kube: Lister, kind: Kind, **selectors: str) -> tuple[Object, ...] | None:
    """Return all objects of a kind; None if they may be listed in single namespaces only."""
    try:
        return await list_all(kube, kind, **selectors)
    except Forbidden:
        return None


async def _list_works(kube: Lister) -> tuple[Object, ...] | None:
    """Return the ManifestWorks of all ManifestWorkReplicaSets without what they deploy."""
    found = await _list_everywhere(kube, MANIFEST_WORK, labels=WATCHED[MANIFEST_WORK])
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
    lean = _without(objects, MANIFEST_WORK_REPLICA_SET, _MANIFESTS)
    return _without(lean, POLICY, _TEMPLATES)


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
        policies=tuple(objects.get(POLICY, ())),
        workloads=tuple(objects.get(MANIFEST_WORK_REPLICA_SET, ())),
        placements=tuple(objects.get(PLACEMENT, ())),
        bindings=tuple(objects.get(PLACEMENT_BINDING, ())),
        decisions=tuple(objects.get(PLACEMENT_DECISION, ())),
    )


async def score_pages(
    kube: Lister,
    names: Collection[str] = (),
    *,
    namespace: str | None = None,
    entries: int = ENTRIES_PER_PAGE,
) -> AsyncIterator[tuple[Object, ...]]:
    """Yield AddOnPlacementScores page by page; with no `names`, those of any name.

    Each page has about `entries` score entries, estimated from the page before it, because the API
    server limits a page by objects. Raises Gone if a continue token has expired: the pages read
    before may be out of date too (see `retry_when_gone`).
    """
    one_by_one = 0 < len(names) <= MAX_NAMES_LISTED_ONE_BY_ONE
    for selected in (f"metadata.name={name}" for name in sorted(names)) if one_by_one else ("",):
        try:
            async for page in _score_pages(kube, namespace, selected, entries):
                yield page
        except NotFound:
            return


async def score_names(kube: Lister) -> list[ScoreObject]:
    """Return all AddOnPlacementScores without their entries; raises Gone as `score_pages` does."""
    return [
        ScoreObject(cluster=obj["metadata"].get("namespace") or "", name=name_of(obj))
        async for page in score_pages(kube)
        for obj in page
    ]


async def _score_pages(
    kube: Lister, namespace: str | None, fields: str, entries: int
) -> AsyncIterator[tuple[Object, ...]]:
    token, limit = "", FIRST_SCORE_PAGE_SIZE
    while True:
        page = await kube.list(
            ADD_ON_PLACEMENT_SCORE, namespace, fields=fields, limit=limit, continue_token=token
        )
        yield page.items
        token, limit = page.continue_token, next_page_size(page.items, limit, entries)
        if not token:
            return


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
