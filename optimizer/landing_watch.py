"""Watches how applied plans land: conditions of their records, events of their workloads.

Any number of servers may watch. A server reports only what it wrote into the record itself, and it
writes only if nobody has written the record since it was read, so each change is reported once.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import datetime
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from dsf.api.conditions import conditions_of, merged
from dsf.api.times import rfc3339
from dsf.kube.errors import Conflict, KubeError, NotFound
from dsf.kube.kinds import MANIFEST_WORK_REPLICA_SET, PLACEMENT_PLAN
from dsf.kube.port import Kube, Object
from dsf.runtime.events import EventRecorder
from optimizer.observe import list_all, observe_namespace
from optimizer.placement_status.comparison import placement_status
from optimizer.placement_status.landing_report import landing_conditions, landing_events
from optimizer.record.record_drift import with_record_drift
from optimizer.record.recorded_plan import read_records
from optimizer.rollout_controller import COMPONENT
from optimizer.snapshot.object_readers import name_of
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_status import PlacementStatus

_log = logging.getLogger(__name__)

POLL_SECONDS = 30.0
"""Pause between two looks while a plan lands; every look lists the objects of its namespace."""

SETTLED_POLLS = 10
"""Of so many looks one is at a namespace whose plans have landed, so that drift is seen."""


class LandingWatch:
    """Watches the applied plans of some namespaces, or of all that the hub has."""

    def __init__(
        self,
        kube: Kube,
        *,
        now: Callable[[], datetime],
        namespaces: Collection[str] = (),
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._kube = kube
        self._now = now
        self._namespaces = tuple(namespaces)
        self._poll_seconds = poll_seconds
        self._events = EventRecorder(kube, COMPONENT, now=now, registry=CollectorRegistry())
        self._seen = dict[tuple[str, str], _Seen]()

    async def run(self) -> None:
        """Look again and again, and write events, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.write_events())
            group.create_task(self._look_again())

    async def write_events(self) -> None:
        """Write the events of what `look` reports, until cancelled."""
        await self._events.run()

    async def _look_again(self) -> None:
        turn = 0
        while True:
            try:
                await self.look(settled=turn % SETTLED_POLLS == 0)
            except KubeError as error:
                _log.warning("the landing of plans was not read", extra={"error": str(error)})
            except Exception:  # noqa: BLE001 - a plan that can't be compared ends no later look
                _log.exception("the landing of plans was not read")
            turn += 1
            await asyncio.sleep(self._poll_seconds)

    async def look(self, *, settled: bool = True) -> None:
        """Report what has changed since the last look; `settled`: also where all had landed.

        Raises KubeError where the hub can't be read.
        """
        current = await self._current()
        for namespace in sorted({str(obj["metadata"]["namespace"]) for obj in current}):
            records = [obj for obj in current if obj["metadata"]["namespace"] == namespace]
            if not settled and all(self._has_landed(obj) for obj in records):
                continue
            observation = await observe_namespace(self._kube, namespace, self._now())
            for record in records:
                await self._report(record, observation)

    async def _current(self) -> list[Object]:
        found = list[Object]()
        for namespace in self._namespaces or (None,):
            try:
                found += await list_all(self._kube, PLACEMENT_PLAN, namespace)
            except NotFound:  # the hub serves no PlacementPlan
                return []
        return [obj for obj in found if (obj.get("status") or {}).get("phase") == "Applied"]

    def _has_landed(self, record: Object) -> bool:
        seen = self._seen.get(_key(record))
        if seen is None or seen.record != name_of(record):
            return False
        return seen.status.landed and not seen.status.drift

    async def _report(self, record: Object, observation: Observation) -> None:
        """Write the conditions of a record, then the events of what has changed."""
        namespace, optimization = _key(record)
        status = await asyncio.to_thread(_status, record, observation)
        try:
            written = await self._write(record, status)
        except (Conflict, NotFound):  # somebody wrote the record meanwhile: the next look tells
            return
        before = self._seen.get((namespace, optimization))
        self._seen[namespace, optimization] = _Seen(name_of(record), status)
        if not written:
            return
        workloads = {name_of(obj): obj for obj in observation.workloads}
        for event in landing_events(before.status if before else None, status):
            obj = workloads.get(event.workload)
            if obj is not None:
                self._events.record(MANIFEST_WORK_REPLICA_SET, obj, *event[1:])

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
        await self._kube.patch(PLACEMENT_PLAN, name, body, namespace, subresource="status")
        return True


class _Seen(NamedTuple):
    """The record of an optimization at the last look, and how far its plan had landed."""

    record: str
    status: PlacementStatus


def _status(record: Object, observation: Observation) -> PlacementStatus:
    return with_record_drift(
        placement_status(observation, *_key(record)), read_records([record]), observation
    )


def _key(record: Object) -> tuple[str, str]:
    return str(record["metadata"]["namespace"]), str(record["spec"]["optimization"])
