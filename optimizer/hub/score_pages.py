"""Pages of AddOnPlacementScores: the API server limits a page by objects, not by their size."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object, ObjectList, WatchEvent

FIRST_SCORE_PAGE_SIZE = 10
"""Score objects of the first page, before the number of entries per object is known."""

MAX_SCORE_PAGE_SIZE = 100
"""Score objects per page: large objects, of up to etcd's 1.5 MiB, may follow small ones."""

ENTRIES_PER_PAGE = 50_000
"""Score entries that a page should have; parsed, they take about 50 MiB."""


def next_page_size(items: Sequence[Object], limit: int, entries: int = ENTRIES_PER_PAGE) -> int:
    """Return how many objects like these have about `entries` entries together."""
    had = sum(len((item.get("status") or {}).get("scores") or ()) for item in items)
    fitting = entries * len(items) // max(1, had)
    return max(1, min(fitting, 4 * limit, MAX_SCORE_PAGE_SIZE))


class ScorePages:
    """Lists and watches as an API server does, with pages of about ENTRIES_PER_PAGE."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._size = FIRST_SCORE_PAGE_SIZE

    async def list(
        self, kind: Kind, namespace: str | None = None, *, limit: int = 0, **asked: Any
    ) -> ObjectList:
        """Return a page; `limit` 0: all objects."""
        if not asked.get("continue_token"):
            self._size = FIRST_SCORE_PAGE_SIZE
        page = await self._kube.list(kind, namespace, limit=limit and self._size, **asked)
        self._size = next_page_size(page.items, self._size)
        return page

    def watch(
        self, kind: Kind, namespace: str | None = None, **asked: Any
    ) -> AsyncGenerator[WatchEvent]:
        """Yield every change."""
        return self._kube.watch(kind, namespace, **asked)
