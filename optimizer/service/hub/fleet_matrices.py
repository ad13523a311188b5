"""Matrices of fleets that many ask for: one is made again only where something has changed."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from dsf.kube.kinds import Kind
from dsf.runtime.lru_cache import LruCache
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.fleet_matrix import FleetMatrix, MatrixRows, fleet_matrix
from optimizer.service.hub.read_age import measured_age, note_heard
from optimizer.service.hub.watched_hub import WatchedHub

REUSED_SECONDS = 10.0
"""How long a matrix may be told again, because time alone makes scores expire."""

MOST_KEPT = 4
"""Matrices kept; with 5,000 clusters, each takes about 20 MiB."""

PAUSE_SECONDS = 2.0
"""Shortest pause between two matrices of one stream: what changes together is told together."""

COST_FACTOR = 10.0
"""A stream takes at most one part in so many of the time."""


class FleetMatrices:
    """The matrices of a hub. `read` returns the facts of a namespace, with the kinds listed."""

    def __init__(
        self, hub: WatchedHub, read: Callable[[str, frozenset[Kind]], Awaitable[FleetFacts]]
    ) -> None:
        self._hub = hub
        self._read = read
        self._kept = LruCache[tuple[str, frozenset[Kind]], _KeptMatrix](MOST_KEPT)

    async def matrix(self, namespace: str, *, listed: frozenset[Kind]) -> FleetMatrix:
        """Return the matrix of a fleet; the same one until something may be different."""
        kept = self._kept.get((namespace, listed)) or _KeptMatrix()
        self._kept.put((namespace, listed), kept)
        loop = asyncio.get_running_loop()
        async with kept.making:
            same = kept.watched and self._hub.tells_all and kept.changes == self._hub.changes()
            if kept.matrix and same and loop.time() - kept.made <= REUSED_SECONDS:
                note_heard(kept.heard)
                return kept.matrix
            changes, made = self._hub.changes(), loop.time()
            with measured_age() as age:
                facts = await self._read(namespace, listed)
            found = await asyncio.to_thread(fleet_matrix, facts, kept.rows)
            kept.matrix, kept.changes, kept.made = found, changes, made
            kept.heard = made if age.heard is None else age.heard
            kept.watched = age.all_watched
            return found

    async def changing(
        self, namespace: str, *, listed: frozenset[Kind]
    ) -> AsyncGenerator[FleetMatrix]:
        """Yield the matrix of a fleet now, and whenever it may be different."""
        loop = asyncio.get_running_loop()
        while True:
            changes, began = self._hub.changes(), loop.time()
            yield await self.matrix(namespace, listed=listed)
            await asyncio.sleep(max(PAUSE_SECONDS, COST_FACTOR * (loop.time() - began)))
            await self._hub.change_after(changes)


class _KeptMatrix:
    """A matrix, after how many changes of the hub it was made, and whether all are told."""

    def __init__(self) -> None:
        self.matrix: FleetMatrix | None = None
        self.rows = MatrixRows()
        self.changes = -1
        self.made = 0.0
        self.heard = 0.0
        self.watched = False
        self.making = asyncio.Lock()
