"""One cache of the hub's objects: each kind is listed once and watched, for all who read it.

A kind is watched from its first reading on. What can't be watched, or what the cache can't vouch
for, is read from the API server: a kind that the hub does not serve or lets nobody watch, scores of
more entries than fit, a watch that has been silent for too long.
"""

import asyncio
import logging
import math
from collections import ChainMap
from collections import Counter as CountOf
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily

from dsf.api.names import REPLICA_SET_LABEL, ROOT_POLICY_LABEL
from dsf.kube import kinds
from dsf.kube.errors import BadRequest, Forbidden, Gone, KubeError, NotFound
from dsf.kube.kinds import Kind
from dsf.kube.port import Kube, Object, ObjectList
from dsf.runtime.backoff import Backoff
from dsf.runtime.reconcile.reflector import Key, View, is_newer
from optimizer.domain.settings import DEFAULTS
from optimizer.service.hub.kept_kind import CONTINUE, KeptKind, lean, object_of, selection
from optimizer.service.hub.noted_writes import NotedWrites
from optimizer.service.hub.read_age import note_heard, note_unwatched
from optimizer.service.hub.score_pages import CountedRows, ScorePages, TooManyEntries
from optimizer.snapshot.scores.score_row import ScoreRow

_log = logging.getLogger(__name__)

MAX_AGE_SECONDS = 90.0
"""Age from which the API server is asked instead: it sends a bookmark each minute."""

UNTOLD_SECONDS = 10.0
"""Pause between two readings of what nobody tells of."""

CATCH_UP_SECONDS = 5.0
"""How long a reader waits until the cache has what this process wrote."""

UNWATCHED = Backoff(30.0, 600.0)
"""Pause before it is tried again to watch what could not be watched."""

WATCHED: Mapping[Kind, str] = {
    kinds.MANAGED_CLUSTER: "",
    kinds.MANAGED_CLUSTER_SET: "",
    kinds.MANAGED_CLUSTER_SET_BINDING: "",
    kinds.POLICY: f"!{ROOT_POLICY_LABEL}",
    kinds.MANIFEST_WORK_REPLICA_SET: "",
    kinds.MANIFEST_WORK: REPLICA_SET_LABEL,
    kinds.PLACEMENT: "",
    kinds.PLACEMENT_BINDING: "",
    kinds.PLACEMENT_DECISION: "",
    kinds.PLACEMENT_OPTIMIZATION: "",
    kinds.ADD_ON_PLACEMENT_SCORE: "",
    kinds.DYNAMIC_SCORER: "",
    kinds.NODE_INVENTORY: "",
}
"""The kinds that are kept, and the labels of the objects of each."""

_OF_NAMESPACES = (kinds.MANAGED_CLUSTER_SET_BINDING, kinds.PLACEMENT_OPTIMIZATION)
"""Kinds that the chart lets the optimizer read in its namespaces only."""

_PREFIX = "dynamic_scoring_optimizer_hub_"


class WatchedHub:
    """Lists the objects of a hub from memory. Implements `Lister`.

    Without `run`, all is read from the API server. Objects of a list are shared: nobody changes
    them. `watching`: a client with connections of its own, which watches keep. `namespaces`: those
    whose ManagedClusterSetBindings may be read; none: all. `score_entries`: of how many entries
    scores are kept; 0: scores are not kept.
    """

    def __init__(
        self,
        kube: Kube,
        *,
        watching: Kube | None = None,
        namespaces: Collection[str] = (),
        score_entries: int = DEFAULTS.watched_score_entries,
        max_age_seconds: float = MAX_AGE_SECONDS,
        unwatched: Backoff = UNWATCHED,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._kube = kube
        self._watching = watching or kube
        self._namespaces = tuple(namespaces)
        self._score_entries = score_entries
        self._max_age = max_age_seconds
        self._unwatched = unwatched
        self._kept = dict[tuple[Kind, str | None], KeptKind]()
        self._callbacks = dict[Kind, list[Callable[[Key], None]]]()
        self._changed = asyncio.Event()
        self._changes = CountOf[Kind]()
        self._group: asyncio.TaskGroup | None = None
        if registry:
            registry.register(self)

    async def run(self) -> None:
        """Watch what is read, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await asyncio.Event().wait()
            finally:
                self._group = None
                self._kept.clear()

    def on_change(self, kind: Kind, callback: Callable[[Key], None]) -> None:
        """Call `callback` with namespace and name of each object of a kind that changes.

        The namespace of a cluster-scoped object is empty. `watch` begins to watch a kind that
        nobody has read.
        """
        self._callbacks.setdefault(kind, []).append(callback)

    def noting(self, kube: Kube) -> Kube:
        """Return a client whose writes all later readers of this cache see."""
        return NotedWrites(kube, lambda kind, _, version: self.wrote(kind, version))

    def tell(self, kind: Kind, key: Key) -> None:
        """Tell of a change, also of a kind that others watch."""
        self._count(kind)
        for callback in self._callbacks.get(kind, ()):
            callback(key)

    def changes(self, kind: Kind | None = None) -> int:
        """Return how many changes, of a kind or of all, were told so far or written by us."""
        return self._changes.total() if kind is None else self._changes[kind]

    async def change_after(self, seen: int) -> None:
        """Return once `changes` returns another number, or where a change may have been missed.

        Where not all is watched, that is after UNTOLD_SECONDS.
        """
        while self.changes() == seen:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(UNTOLD_SECONDS):
                    await self._changed.wait()
            if not self.tells_all:
                return

    @property
    def tells_all(self) -> bool:
        """Return whether each change of what was read is told, as far as the hub has the kind."""
        return bool(self._kept) and all(
            kept.refused or kept.age <= self._max_age for kept in self._kept.values()
        )

    def watch(self, *wanted: Kind) -> None:
        """Begin to watch kinds, unless they are watched."""
        for kind in wanted:
            for namespace in self._scopes(kind):
                self._keep(kind, namespace)

    def age(self, kind: Kind) -> float:
        """Return how many seconds ago the API server last told of a kind; infinite: not kept."""
        return max((kept.age for kept in self._of(kind)), default=math.inf)

    def is_watched(self, kind: Kind) -> bool:
        """Return whether all objects of a kind are in memory, as they are now."""
        return self.age(kind) <= self._max_age

    def collect(self) -> Iterator[Metric]:
        """Yield its metrics; no label has a name that an object could choose."""
        age = GaugeMetricFamily(
            f"{_PREFIX}age_seconds",
            "Seconds since the API server last told of a kind of object that is watched: by an"
            " event, or by a bookmark, which it sends each minute. +Inf: it can't be watched.",
            labels=["resource"],
        )
        objects = GaugeMetricFamily(
            f"{_PREFIX}objects", "Objects in memory, as watches keep them.", labels=["resource"]
        )
        entries = GaugeMetricFamily(
            f"{_PREFIX}score_entries", "Entries of scores in memory; see --watched-score-entries."
        )
        for kind in filter(self._of, WATCHED):
            items = self.items(kind)
            age.add_metric([kind.resource], self.age(kind))
            objects.add_metric([kind.resource], len(items))
            if kind == kinds.ADD_ON_PLACEMENT_SCORE:
                entries.add_metric([], sum(len(item.values) for item in items.values()))
        yield from (age, objects, entries)

    def find(self, kind: Kind, key: Key) -> Object | None:
        """Return an object that is in memory; None if there is none."""
        found = (kept.view.items.get(key) for kept in self._of(kind))
        return next((object_of(item) for item in found if item is not None), None)

    def items(self, kind: Kind) -> Mapping[Key, Any]:
        """Return what is in memory of a kind, by namespace and name: objects, or ScoreRows."""
        return ChainMap(*(kept.view.items for kept in self._of(kind)))

    async def rows(self) -> Iterable[ScoreRow] | None:
        """Return all scores; None where they are not in memory: list them."""
        kept = self._keep(kinds.ADD_ON_PLACEMENT_SCORE, None)
        if kept is None or not await self._vouches(kept):
            return None
        note_heard(kept.view.heard)
        rows: Iterable[ScoreRow] = kept.view.items.values()
        return rows

    def wrote(self, kind: Kind, version: str | None) -> None:
        """Let later readers see a write; None: a deletion, whose resource version is not known."""
        self._count(kind)
        for kept in self._of(kind):
            kept.deletions += version is None
            if version and is_newer(version, kept.written):
                kept.written = version

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
    ) -> ObjectList:
        """Return a page of objects, as `Lister` says.

        Later pages show objects as they are then: the list may change between two pages.
        """
        ours = continue_token.startswith(CONTINUE)
        if ours or not continue_token:
            kept, chosen = self._keep(kind, namespace), selection(WATCHED.get(kind), labels, fields)
            if kept and chosen and await self._vouches(kept):
                note_heard(kept.view.heard)
                return kept.page(chosen, namespace, limit, continue_token.removeprefix(CONTINUE))
            if not (kept and kept.refused):
                note_unwatched()
        if ours:
            raise Gone("the cache that this list began with is gone")
        return await self._kube.list(
            kind,
            namespace,
            labels=labels,
            fields=fields,
            limit=limit,
            continue_token=continue_token,
        )

    def _of(self, kind: Kind) -> Sequence[KeptKind]:
        return [kept for (own, _), kept in self._kept.items() if own == kind]

    def _count(self, kind: Kind) -> None:
        self._changes[kind] += 1
        self._changed.set()

    def _scopes(self, kind: Kind) -> tuple[str | None, ...]:
        return self._namespaces or (None,) if kind in _OF_NAMESPACES else (None,)

    def _keep(self, kind: Kind, namespace: str | None) -> KeptKind | None:
        """Return what keeps a kind in a namespace or in all; it begins with the first call."""
        scope = namespace if kind in _OF_NAMESPACES and self._namespaces else None
        wanted = kind in WATCHED and scope in self._scopes(kind)
        if self._group is None or not wanted:
            return None
        if kind == kinds.ADD_ON_PLACEMENT_SCORE and not self._score_entries:
            return None
        if (kind, scope) not in self._kept:
            kept = self._kept[kind, scope] = self._new(kind, scope)
            self._group.create_task(self._follow(kept))
        return self._kept[kind, scope]

    def _new(self, kind: Kind, namespace: str | None) -> KeptKind:
        rows, kube = CountedRows(self._score_entries), self._watching
        scores = kind == kinds.ADD_ON_PLACEMENT_SCORE
        view: View[Any] = View(
            ScorePages(kube) if scores else kube,
            kind,
            namespace,
            WATCHED[kind],
            read=(lambda obj: rows.read(lean(kind, obj))) if scores else partial(lean, kind),
            ends_on=(Forbidden, NotFound, BadRequest),
        )
        rows.kept = view.items
        view.on_change(partial(self.tell, kind))
        return KeptKind(kind, namespace, view)

    async def _follow(self, kept: KeptKind) -> None:
        """Keep a kind until cancelled; try again where it can't be watched."""
        failures = 0
        while True:
            try:
                await kept.view.run()
            except TooManyEntries:
                _log.warning(
                    "scores are read from the API server until this process starts again, because"
                    " they have more entries than --watched-score-entries",
                    extra={"limit": self._score_entries},
                )
                return
            except KubeError as error:
                failures += 1
                await self._first(kept)
                _log.warning(
                    "objects are read from the API server, because they can't be watched",
                    extra={"resource": kept.kind.resource, "error": str(error)},
                )
            while not await self._watchable(kept, self._unwatched.delay(failures, 0.0)):
                failures += 1

    async def _watchable(self, kept: KeptKind, after: float) -> bool:
        """Return whether a kind can be listed and watched, after a pause."""
        await asyncio.sleep(after)
        if (page := await self._first(kept)) is None:
            return False
        with suppress(KubeError):
            events = self._watching.watch(
                kept.kind,
                kept.namespace,
                labels=WATCHED[kept.kind],
                resource_version=page.resource_version,
                timeout_seconds=1,
            )
            async with aclosing(events):
                await anext(events, None)
            return True
        return False

    async def _first(self, kept: KeptKind) -> ObjectList | None:
        """Return a page of one object; None, and why is noted, where a kind can't be listed."""
        try:
            labels = WATCHED[kept.kind]
            page = await self._watching.list(kept.kind, kept.namespace, labels=labels, limit=1)
        except KubeError as error:
            kept.refused = isinstance(error, Forbidden | NotFound)
            return None
        kept.refused = False
        return page

    async def _vouches(self, kept: KeptKind) -> bool:
        """Return whether memory has what a reader may be told."""
        if not kept.view.synced.is_set():
            return False
        if kept.age > self._max_age:
            kept.view.outdate()
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                await kept.catch_up()
                return kept.view.synced.is_set()
        return False
