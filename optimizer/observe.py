"""Reads the hub: each kind is listed once, and scores page by page."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from dsf.kube.errors import Gone, NotFound
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_SET,
    MANAGED_CLUSTER_SET_BINDING,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    PLACEMENT_BINDING,
    PLACEMENT_DECISION,
    POLICY,
    Kind,
)
from dsf.kube.port import Kube, Object
from dsf.kube.reads import list_objects
from optimizer.snapshot.observation import Observation

T = TypeVar("T")

FIRST_SCORE_PAGE_SIZE = 10
"""Score objects of the first page, before the number of entries per object is known."""

MAX_SCORE_PAGE_SIZE = 100
"""Score objects per page: large objects, of up to etcd's 1.5 MiB, may follow small ones."""

ENTRIES_PER_PAGE = 50_000
"""Score entries that a page should have; parsed, they take about 50 MiB."""

MAX_NAMES_LISTED_ONE_BY_ONE = 3
"""The API server selects up to 3 score names by field selector; for more, all scores are listed."""

MAX_READS = 3
"""Attempts to read a list whose continue token expires."""


async def observe(kube: Kube, namespace: str, now: datetime) -> Observation:
    """Return the objects that a plan depends on, except scores: there can be millions of them.

    Raises KubeError if the hub can't be read.
    """
    managed, policies, workloads, placements, bindings, sets, set_bindings = await asyncio.gather(
        list_all(kube, MANAGED_CLUSTER),
        list_all(kube, POLICY, namespace),
        list_all(kube, MANIFEST_WORK_REPLICA_SET, namespace),
        list_all(kube, PLACEMENT, namespace),
        list_all(kube, PLACEMENT_BINDING, namespace),
        list_all(kube, MANAGED_CLUSTER_SET),
        list_all(kube, MANAGED_CLUSTER_SET_BINDING, namespace),
    )
    return Observation(
        managed_clusters=managed,
        policies=policies,
        workloads=workloads,
        placements=placements,
        bindings=bindings,
        cluster_sets=sets,
        set_bindings=set_bindings,
        observed_at=now,
    )


async def observe_decisions(kube: Kube, namespace: str, now: datetime) -> Observation:
    """Return what `observe` returns, and the PlacementDecisions of the namespace.

    Raises KubeError if the hub can't be read.
    """
    observation, decisions = await asyncio.gather(
        observe(kube, namespace, now), list_all(kube, PLACEMENT_DECISION, namespace)
    )
    return replace(observation, decisions=decisions)


async def score_pages(
    kube: Kube,
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


async def _score_pages(
    kube: Kube, namespace: str | None, fields: str, entries: int
) -> AsyncIterator[tuple[Object, ...]]:
    token, limit = "", FIRST_SCORE_PAGE_SIZE
    while True:
        page = await kube.list(
            ADD_ON_PLACEMENT_SCORE, namespace, fields=fields, limit=limit, continue_token=token
        )
        yield page.items
        token, limit = page.continue_token, _next_limit(page.items, limit, entries)
        if not token:
            return


def _next_limit(items: Sequence[Object], limit: int, entries: int) -> int:
    """Return how many objects like these have about `entries` entries together."""
    had = sum(len((item.get("status") or {}).get("scores") or ()) for item in items)
    fitting = entries * len(items) // max(1, had)
    return max(1, min(fitting, 4 * limit, MAX_SCORE_PAGE_SIZE))


async def list_all(
    kube: Kube, kind: Kind, namespace: str | None = None, *, labels: str = ""
) -> tuple[Object, ...]:
    """Return all objects of a kind; none if the hub does not serve the kind."""
    try:
        read = partial(list_objects, kube, kind, namespace, labels=labels)
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
