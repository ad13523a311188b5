"""AddOnPlacementScores page by page, and in memory, by the number of their entries.

The API server limits a page by objects, not by their size.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from dsf.kube.errors import NotFound
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE, Kind
from dsf.kube.port import Kube, Lister, Object, ObjectList, WatchEvent
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.scores.score_row import ScoreRow
from optimizer.wire.result import ScoreObject

FIRST_SCORE_PAGE_SIZE = 10
"""Score objects of the first page, before the number of entries per object is known."""

MAX_SCORE_PAGE_SIZE = 100
"""Score objects per page: large objects, of up to etcd's 1.5 MiB, may follow small ones."""

ENTRIES_PER_PAGE = 50_000
"""Score entries that a page should have; parsed, they take about 50 MiB."""

MAX_NAMES_LISTED_ONE_BY_ONE = 3
"""The API server selects up to 3 score names by field selector; for more, all scores are listed."""


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


class TooManyEntries(Exception):
    """Scores have more entries than may be kept."""


class CountedRows:
    """Reads scores into rows; raises TooManyEntries if there are more than `most` at once.

    While all are listed again, those before are in memory as well, and do not count.
    """

    def __init__(self, most: int) -> None:
        self.kept: Mapping[Any, ScoreRow] = {}
        self._most = most
        self._entries = 0
        self._look_at = most

    def read(self, obj: Object) -> ScoreRow:
        """Return the row of a score."""
        row = _CountedRow(obj)
        row.count(self)
        if self._entries > self._look_at:
            kept = sum(len(item.values) for item in self.kept.values())
            if max(kept, self._entries - kept) > self._most:
                raise TooManyEntries
            self._look_at = self._entries + self._most // 50
        return row

    def add(self, entries: int) -> None:
        """Count entries that are in memory, or no longer, if the number is negative."""
        self._entries += entries
        if self._entries <= self._most:
            self._look_at = self._most


class _CountedRow(ScoreRow):
    """A row that is counted as long as it lives."""

    __slots__ = ("_rows",)

    def count(self, rows: CountedRows) -> None:
        self._rows = rows
        rows.add(len(self.values))

    def __del__(self) -> None:
        self._rows.add(-len(self.values))
