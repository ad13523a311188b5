"""Watches how applied plans land: conditions of their records, events of their workloads.

Any number of servers may watch. A server reports only what it wrote into the record itself, and it
writes only if nobody has written the record since it was read, so each change is reported once.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime
from functools import partial
from math import inf

from prometheus_client import CollectorRegistry

from dsf.api.conditions import conditions_of, merged
from dsf.api.times import rfc3339
from dsf.kube import kinds
from dsf.kube.errors import Conflict, Forbidden, KubeError, NotFound
from dsf.kube.port import Kube, Object
from dsf.runtime.events import EventRecorder
from dsf.runtime.reconcile.followed_view import FollowedView
from dsf.runtime.reconcile.reflector import Key
from optimizer.domain.settings import OptimizerSettings
from optimizer.follow.placement_status.drift import grace_end
from optimizer.follow.placement_status.landing_report import landing_conditions, landing_events
from optimizer.follow.placement_status.recorded_status import recorded_status
from optimizer.follow.record.recorded_plan import read_records
from optimizer.follow.rollout.rollout_record import RolloutRecord
from optimizer.service.hub.watched_hub import WATCHED, WatchedHub
from optimizer.service.metrics import OptimizerMetrics
from optimizer.service.observe import list_all, observe_hub
from optimizer.service.record_keys import RecordKeys
from optimizer.service.rollouts.rollout_controller import COMPONENT
from optimizer.snapshot.object_readers import name_of, replica_set_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_status import PlacementStatus

_log = logging.getLogger(__name__)

RESYNC_SECONDS = 300.0
"""Pause after which all is looked at although no watch reported a change."""

POLL_SECONDS = 30.0
"""The same where something can't be watched: a right is missing, or the hub lacks a kind."""

PAUSE_SECONDS = 1.0
"""Shortest pause between two looks: what changes together is reported together."""

PAST_GRACE_SECONDS = 0.01
"""Pause after the end of a grace, which is over when more than its time has passed."""

COST_FACTOR = 10.0
"""Looks everywhere, and looks at single namespaces, each take one part in so many of the time."""

EVERYWHERE = ""
"""Instead of a namespace: any plan may depend on what has changed."""

_WATCHED = tuple(
    kind
    for kind in WATCHED
    if kind not in (kinds.ADD_ON_PLACEMENT_SCORE, kinds.DYNAMIC_SCORER, kinds.NODE_INVENTORY)
)
"""The kinds that a plan in force depends on, besides PlacementPlans."""


class LandingWatch:
    """Watches the applied plans of some namespaces, or of all that the hub has.

    `hub` tells of each kind of object that a plan in force depends on, from the first such plan on.
    Namespaces with a change are looked at as a whole. `plans` returns what is watched already.
    Only records that one of the `keys` signed are compared.
    """

    def __init__(
        self,
        kube: Kube,
        hub: WatchedHub,
        settings: OptimizerSettings,
        *,
        keys: RecordKeys,
        now: Callable[[], datetime],
        plans: Callable[[str | None], FollowedView[RolloutRecord]],
        metrics: OptimizerMetrics,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._kube = kube
        self._hub = hub
        self._keys = keys
        self._now = now
        self._plans = plans
        self._metrics = metrics
        self._namespaces = settings.rollout_namespaces
        self._cluster_label_key = settings.cluster_label_key
        self._poll_seconds = poll_seconds
        self._events = EventRecorder(kube, COMPONENT, now=now, registry=CollectorRegistry())
        self._seen = dict[tuple[str, str], PlacementStatus]()
        self._changed = set[str]()
        self._grace_ends = dict[str, datetime]()
        self._wake = asyncio.Event()
        self._plans_polled = False
        self._in_force = False

    async def run(self) -> None:
        """Look whenever something changes, and write events, until cancelled."""
        for kind in (*_WATCHED, kinds.PLACEMENT_PLAN):
            self._hub.on_change(kind, self._marking(kind))
        self._hub.on_change(kinds.NODE_INVENTORY, self._marking_of_pods())
        async with asyncio.TaskGroup() as group:
            group.create_task(self.write_events())
            for namespace in self._namespaces or (None,):
                group.create_task(self._watch_plans(namespace))
            group.create_task(self._look_again())

    async def write_events(self) -> None:
        """Write the events of what `look` reports, until cancelled."""
        await self._events.run()

    async def _watch_plans(self, namespace: str | None) -> None:
        """Tell of plans that change; return if they can't be watched.

        A right or a kind that is missing at the start is not waited for.
        """
        view = self._plans(namespace)
        view.on_change(partial(self._hub.tell, kinds.PLACEMENT_PLAN))
        try:
            await self._check_served(namespace)
            await view.run()
        except Exception as error:  # noqa: BLE001 - what can't be watched is polled
            self._plans_polled = True
            _log.warning(
                "landings of plans are polled",
                extra={"kind": kinds.PLACEMENT_PLAN.kind, "error": str(error)},
            )

    def _marking(self, kind: kinds.Kind) -> Callable[[Key], None]:
        """Return what marks the namespace in which the change of an object may matter."""
        if kind != kinds.MANIFEST_WORK:
            return lambda key: self._mark(key[0] or EVERYWHERE)
        marks = dict[Key, str]()

        def changed(key: Key) -> None:
            where, work = marks.pop(key, EVERYWHERE), self._hub.find(kind, key)
            if work is not None:
                where = marks[key] = replica_set_of(work)[0]
            self._mark(where)

        return changed

    def _marking_of_pods(self) -> Callable[[Key], None]:
        """Return what marks the namespaces of the workloads whose Pods have changed on a cluster.

        An inventory is renewed each minute, and mostly nothing but its time has changed.
        """
        known = dict[Key, dict[str, Object]]()

        def changed(key: Key) -> None:
            status = (self._hub.find(kinds.NODE_INVENTORY, key) or {}).get("status") or {}
            now = {str(item.get("name")): item for item in status.get("works") or ()}
            before = known.pop(key, {})
            if now:
                known[key] = now
            for name in now.keys() | before.keys():
                work = self._hub.find(kinds.MANIFEST_WORK, (key[0], name))
                if work is not None and now.get(name) != before.get(name):
                    self._mark(replica_set_of(work)[0])

        return changed

    def _mark(self, namespace: str) -> None:
        self._changed.add(namespace)
        self._wake.set()

    async def _check_served(self, namespace: str | None) -> None:
        """Raise Forbidden or NotFound where plans can't be listed; other errors pass."""
        try:
            await self._kube.list(kinds.PLACEMENT_PLAN, namespace, limit=1)
        except KubeError as error:
            if isinstance(error, Forbidden | NotFound):
                raise

    @property
    def _polls(self) -> bool:
        """Return whether anything that a plan depends on can change without being told."""
        unwatched = self._in_force and not all(map(self._hub.is_watched, _WATCHED))
        return self._plans_polled or unwatched

    async def _look_again(self) -> None:
        loop = asyncio.get_running_loop()
        self._changed.add(EVERYWHERE)
        due = 0.0
        while True:
            began = loop.time()
            everywhere = EVERYWHERE in self._changed and began >= due
            looked = await self._look_at_changes(everywhere=everywhere)
            cost = COST_FACTOR * (loop.time() - began)
            if everywhere:
                due, cost = loop.time() + cost, 0.0
            await asyncio.sleep(max(PAUSE_SECONDS, cost) if looked else self._poll_seconds)
            resync = self._poll_seconds if self._polls else RESYNC_SECONDS
            waits = max(0.0, due - loop.time()) if EVERYWHERE in self._changed else resync
            ending, left = self._next_grace()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(waits, left)):
                    await self._wake.wait()
            if not self._wake.is_set():
                self._changed |= ending if left < waits else {EVERYWHERE}

    def _next_grace(self) -> tuple[set[str], float]:
        """Return the namespaces whose status changes next by itself, and in how many seconds."""
        if not self._grace_ends:
            return set(), inf
        end = min(self._grace_ends.values())
        left = (end - self._now()).total_seconds() + PAST_GRACE_SECONDS
        return {name for name, one in self._grace_ends.items() if one == end}, max(0.0, left)

    async def _look_at_changes(self, *, everywhere: bool) -> bool:
        """Look where something has changed; return whether that could be done.

        What changed everywhere may wait: one namespace is looked at sooner than all of them.
        """
        kept = frozenset({EVERYWHERE}) if not everywhere else frozenset[str]()
        changed = frozenset(self._changed) - kept
        self._changed &= kept
        self._wake.clear()
        try:
            await self.look(None if everywhere else changed)
        except KubeError as error:
            _log.warning("the landing of plans was not read", extra={"error": str(error)})
        except Exception:  # noqa: BLE001 - a plan that can't be compared ends no later look
            _log.exception("the landing of plans was not read")
        else:
            return True
        self._changed |= changed
        return False

    async def look(self, namespaces: Collection[str] | None = None) -> None:
        """Report what has changed since the last look, in some namespaces or in all.

        Raises KubeError where the hub can't be read.
        """
        current = await self._current(namespaces)
        for name in list(self._grace_ends) if namespaces is None else namespaces:
            self._grace_ends.pop(name, None)
        self._in_force = self._in_force or bool(current)
        in_force = {(i["metadata"]["namespace"], i["spec"]["optimization"]) for i in current}
        for key in self._seen.keys() - in_force:
            if namespaces is None or key[0] in namespaces:
                del self._seen[key]
        if current:
            seen = await observe_hub(self._hub, self._now(), named=False)
        for namespace in sorted({str(obj["metadata"]["namespace"]) for obj in current}):
            observation = await seen.of(namespace)
            for record in current:
                if record["metadata"]["namespace"] == namespace:
                    await self._report(record, observation)
        self._metrics.landed(self._seen.values())

    async def _current(self, namespaces: Collection[str] | None) -> list[Object]:
        found, own = list[Object](), self._namespaces
        some = [item for item in namespaces or () if not own or item in own]
        for namespace in own or (None,) if namespaces is None else some:
            try:
                found += await list_all(self._kube, kinds.PLACEMENT_PLAN, namespace)
            except NotFound:  # the hub serves no PlacementPlan
                return []
        return [obj for obj in found if (obj.get("status") or {}).get("phase") == "Applied"]

    async def _report(self, record: Object, observation: Observation) -> None:
        """Write the conditions of a record, then the events of what has changed."""
        namespace, optimization = record["metadata"]["namespace"], record["spec"]["optimization"]
        status = await asyncio.to_thread(
            recorded_status,
            observation,
            namespace,
            read_records([record], await self._keys.known()),
            optimization,
            cluster_label_key=self._cluster_label_key,
        )
        if end := grace_end(status.workloads, observation.observed_at):
            self._grace_ends[namespace] = min(end, self._grace_ends.get(namespace, end))
        try:
            written = await self._write(record, status)
        except (Conflict, NotFound):  # somebody wrote the record meanwhile: the next look tells
            return
        before = self._seen.get((namespace, optimization))
        self._seen[namespace, optimization] = status
        if not written:
            return
        workloads = {name_of(obj): obj for obj in observation.workloads}
        for event in landing_events(before, status):
            obj = workloads.get(event.workload)
            if obj is not None:
                self._events.record(kinds.MANIFEST_WORK_REPLICA_SET, obj, *event[1:])

    async def _write(self, record: Object, status: PlacementStatus) -> bool:
        """Write the conditions unless they are there; return whether they were written."""
        observed = conditions_of(record)
        now = rfc3339(self._now())
        conditions = merged(observed, landing_conditions(status), now=now)
        if conditions == list(observed):
            return False
        version = record["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}}
        namespace, name = record["metadata"]["namespace"], name_of(record)
        await self._kube.patch(kinds.PLACEMENT_PLAN, name, body, namespace, subresource="status")
        return True
