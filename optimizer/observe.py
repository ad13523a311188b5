"""Reading the hub: every kind listed once, scores page by page."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import TypeVar

from dsf.kube.errors import Gone, NotFound
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    PLACEMENT_BINDING,
    POLICY,
    Kind,
)
from dsf.kube.port import Kube, Object
from optimizer.snapshot.observation import Observation

T = TypeVar("T")

_PAGE = 500
_FIRST_PAGE = 10
_MOST_SCORES = 100  # of a page: objects of 1.5 MiB, as etcd takes them, may follow on small ones
_ENTRIES = 50_000  # of a page of scores: some 50 MiB
_FEW = 3  # names that are listed one by one
_ATTEMPTS = 3


async def observe(kube: Kube, namespace: str) -> Observation:
    """Read what a request in a namespace may rest on but scores, of which there can be millions.

    KubeError where the hub can't be read.
    """
    return Observation(
        *await asyncio.gather(
            every(kube, MANAGED_CLUSTER),
            every(kube, POLICY, namespace),
            every(kube, MANIFEST_WORK_REPLICA_SET, namespace),
            every(kube, PLACEMENT, namespace),
            every(kube, PLACEMENT_BINDING, namespace),
        )
    )


async def score_pages(
    kube: Kube,
    names: Collection[str] = (),
    *,
    namespace: str | None = None,
    entries: int = _ENTRIES,
) -> AsyncIterator[tuple[Object, ...]]:
    """Yield AddOnPlacementScores of these names (of any where none is given), page by page.

    Gone where a token was too old: what was read before may be so too (`again`). A page has so
    many objects that they have about as many entries as is said: if those before it tell, since a
    hub counts objects.
    """
    one_by_one = 0 < len(names) <= _FEW
    for selected in (f"metadata.name={name}" for name in sorted(names)) if one_by_one else ("",):
        try:
            async for page in _score_pages(kube, namespace, selected, entries):
                yield page
        except NotFound:
            return


async def _score_pages(
    kube: Kube, namespace: str | None, fields: str, entries: int
) -> AsyncIterator[tuple[Object, ...]]:
    token, limit = "", _FIRST_PAGE
    while True:
        page = await kube.list(
            ADD_ON_PLACEMENT_SCORE, namespace, fields=fields, limit=limit, continue_token=token
        )
        yield page.items
        token, limit = page.continue_token, _next_limit(page.items, limit, entries)
        if not token:
            return


def _next_limit(items: Sequence[Object], limit: int, entries: int) -> int:
    """Return how many objects like these have so many entries."""
    had = sum(len((item.get("status") or {}).get("scores") or ()) for item in items)
    fitting = entries * len(items) // max(1, had)
    return max(1, min(fitting, 4 * limit, _MOST_SCORES))


async def every(
    kube: Kube, kind: Kind, namespace: str | None = None, *, labels: str = ""
) -> tuple[Object, ...]:
    """List all pages of a kind; none where the hub does not serve it."""
    try:
        return tuple(await again(lambda: _pages(kube, kind, namespace, labels)))
    except NotFound:
        return ()


async def again(read: Callable[[], Awaitable[T]]) -> T:
    """Return what is read; where a continue token is too old it is read again from the start.

    Gone where that happens again and again.
    """
    for _ in range(_ATTEMPTS - 1):
        with suppress(Gone):
            return await read()
    return await read()


async def _pages(kube: Kube, kind: Kind, namespace: str | None, labels: str) -> list[Object]:
    objects, token = list[Object](), ""
    while True:
        page = await kube.list(kind, namespace, labels=labels, limit=_PAGE, continue_token=token)
        objects += page.items
        token = page.continue_token
        if not token:
            return objects
