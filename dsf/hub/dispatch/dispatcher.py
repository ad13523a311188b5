"""The dispatcher's loop: watch, decide, write nominations, conditions and Events."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge

from dsf.api.conditions import Condition, conditions_of, merged
from dsf.api.times import rfc3339
from dsf.api.untrusted_text import listed
from dsf.hub.dispatch.candidates import WorkerFleet
from dsf.hub.dispatch.field_ownership import applied_status
from dsf.hub.dispatch.kueue_configuration import dispatching, other_dispatcher
from dsf.hub.dispatch.nomination import Nomination, decide, next_seconds
from dsf.hub.dispatch.queue_pass import NominationSettings
from dsf.hub.dispatch.queue_preferences import (
    Preferences,
    ScoreEntries,
    read_preferences,
    read_score,
)
from dsf.hub.dispatch.worker_clusters import (
    KUEUE_ADD_ON_WORK,
    MULTI_KUEUE,
    Room,
    read_quotas,
    read_room,
)
from dsf.hub.dispatch.workloads import NOMINATED, AssignedWorkload, WaitingWorkload, read_workload
from dsf.kube.apply import WriteLimiter
from dsf.kube.changes import key, without_managed_fields
from dsf.kube.clock import utc_now
from dsf.kube.errors import FIELD_MANAGER_CONFLICT, ApiError, Conflict, KubeError, NotFound
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    ADMISSION_CHECK,
    CONFIG_MAP,
    LOCAL_QUEUE,
    MANAGED_CLUSTER,
    MANIFEST_WORK,
    MULTI_KUEUE_CLUSTER,
    MULTI_KUEUE_CONFIG,
    NODE_INVENTORY,
    WORKLOAD,
)
from dsf.kube.port import Object, StatusApplier
from dsf.runtime.events import EventRecorder, Type
from dsf.runtime.leader_election import Lead, alone
from dsf.runtime.metrics import measure_writes
from dsf.runtime.reconcile.controller import Controller
from dsf.runtime.reconcile.reflector import Key, View

try:
    from dsf.hub.dispatch.highs import solver
except ImportError:  # without the extra `optimizer`
    solver = None  # type: ignore[assignment]

log = logging.getLogger(__name__)

COMPONENT = "dynamic-scoring-dispatcher"
QUEUE = "dispatcher"
"""Key of the only thing to reconcile, and name of its controller in metrics."""
SETTLE_SECONDS = 0.2
"""Changes within this time lead to one decision."""
UNSEEN_SECONDS = 20.0
"""How long to wait until the watch shows a write."""
KUEUE_ADMISSION = "kueue-admission"
"""The field manager in whose name Kueue wants nominations: it removes them in this name.

Source: CHANGELOG-0.13.md of sigs.k8s.io/kueue.
"""


@dataclass(frozen=True, slots=True)
class DispatcherOptions:
    """Settings of the dispatcher.

    `kueue_config`: namespace and name of the ConfigMap with Kueue's configuration. It decides again
    after `resync_seconds` although nothing has changed. With `dry_run` it writes nothing.
    """

    nominations: NominationSettings = field(default_factory=NominationSettings)
    kueue_config: tuple[str, str] = ("kueue-system", "kueue-manager-config")
    resync_seconds: float = 30.0
    dry_run: bool = False


class Dispatcher:
    """Nominates worker clusters for Kueue's Workloads.

    A nomination is an apply in the name of Kueue, then a condition, then an Event. Killed before
    the condition, the next run writes it; killed after it, the Event is missing. A condition of
    each admission check says what is wrong with all of them. A Workload whose
    nominations somebody else changes is left alone until it loses its quota. Metrics: those of the
    controller `dispatcher` and of writes, `dsf_dispatcher_waiting_workloads`,
    `dsf_dispatcher_in_charge` and `dsf_dispatcher_nominations_total{result}`.
    """

    def __init__(
        self,
        kube: StatusApplier,
        options: DispatcherOptions | None = None,
        *,
        now: Callable[[], datetime] = utc_now,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._kube = kube
        self._options = options or DispatcherOptions()
        self._now = now
        self._written = dict[Key, tuple[str, ...]]()
        self._others = set[str]()
        self._idle_reason = ""
        namespace, name = self._options.kueue_config
        self._config = View[Object](
            kube, CONFIG_MAP, namespace, fields=f"metadata.name={name}", read=without_managed_fields
        )
        self._workloads = View[WaitingWorkload | AssignedWorkload | None](
            kube, WORKLOAD, read=read_workload
        )
        self._queues = View[Preferences](kube, LOCAL_QUEUE, read=read_preferences)
        self._checks = View[Object](kube, ADMISSION_CHECK, read=without_managed_fields)
        self._configs = View[tuple[str, ...]](kube, MULTI_KUEUE_CONFIG, read=_clusters)
        self._workers = View[Object](kube, MULTI_KUEUE_CLUSTER, read=without_managed_fields)
        self._managed = View[Object](kube, MANAGED_CLUSTER, read=without_managed_fields)
        self._scores = View[ScoreEntries](kube, ADD_ON_PLACEMENT_SCORE, read=read_score)
        self._rooms = View[Room | None](kube, NODE_INVENTORY, read=read_room)
        self._quotas = View[Mapping[str, float]](
            kube, MANIFEST_WORK, fields=f"metadata.name={KUEUE_ADD_ON_WORK}", read=read_quotas
        )
        self._views: dict[str, View[Any]] = {
            "ConfigMaps": self._config,
            "Workloads": self._workloads,
            "LocalQueues": self._queues,
            "AdmissionChecks": self._checks,
            "MultiKueueConfigs": self._configs,
            "MultiKueueClusters": self._workers,
            "ManagedClusters": self._managed,
            "AddOnPlacementScores": self._scores,
            "NodeInventories": self._rooms,
            "ManifestWorks": self._quotas,
        }
        self._loop = Controller(QUEUE, self._reconcile, registry=registry)
        self._events = EventRecorder(kube, COMPONENT, now=now, registry=registry)
        self._limiter = WriteLimiter()
        measure_writes(self._limiter, registry)
        self._waiting = Gauge(
            "dsf_dispatcher_waiting_workloads",
            "Workloads with quota that no worker cluster has admitted.",
            registry=registry,
        )
        self._in_charge = Gauge(
            "dsf_dispatcher_in_charge",
            "1 if Kueue's configuration names this dispatcher.",
            registry=registry,
        )
        self._nominations = Counter(
            "dsf_dispatcher_nominations",
            "Nominations: ok, dry-run, other-dispatcher, or the error.",
            ["result"],
            registry=registry,
        )

    async def unready_reason(self) -> str | None:
        """Return which lists are missing; None if it is ready."""
        unseen = [name for name, view in self._views.items() if not view.synced.is_set()]
        return f"waiting for the first list of {listed(unseen)}" if unseen else None

    async def run(self, lead: Lead | None = None) -> None:
        """Work until cancelled; `lead` runs the work that it is given while this process leads."""
        async with asyncio.TaskGroup() as group:
            for view in self._views.values():
                # Scores and inventories change all the time; each resync reads the newest.
                if view not in (self._scores, self._rooms):
                    view.on_change(lambda _: self._loop.enqueue(QUEUE, SETTLE_SECONDS))
                group.create_task(view.run())
            await (lead or alone)(self._work)

    async def _work(self) -> None:
        for view in self._views.values():
            await view.synced.wait()
        await self._workloads.refresh()
        self._written.clear()
        self._loop.enqueue(QUEUE)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._loop.run())
            group.create_task(self._events.run())

    async def _reconcile(self, _: str) -> float:
        found = list(self._workloads.items.values())
        waiting = [item for item in found if isinstance(item, WaitingWorkload)]
        assigned = [item for item in found if isinstance(item, AssignedWorkload)]
        self._waiting.set(len(waiting))
        fleet, resync = self._fleet(), self._options.resync_seconds
        self._others.clear()
        if self._is_idle():
            await self._tell(fleet)
            return resync
        mine = [item for item in waiting if self._is_mine(item)]
        self._written = {
            k: clusters
            for k, clusters in self._written.items()
            if isinstance(self._workloads.items.get(k), WaitingWorkload)
        }
        settings = self._options.nominations
        # A plan may take seconds, in which the Lease has to be renewed.
        solve = None if solver is None else solver()
        nominations = await asyncio.to_thread(
            decide, mine, assigned, fleet, settings, self._now(), solve
        )
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._nominate(each)) for each in nominations]
        await self._tell(fleet)
        errors = [error for task in tasks if (error := task.result())]
        for error in errors:
            if not isinstance(error, Conflict | NotFound):
                raise error
        due = next_seconds(waiting, settings, self._now())
        again = [resync, *([due] if due else []), *([1.0] if errors else [])]
        return min(again)

    def _fleet(self) -> WorkerFleet:
        checks = {name: obj["spec"] for (_, name), obj in self._checks.items.items()}
        return WorkerFleet(
            checks={
                name: str((spec.get("parameters") or {}).get("name"))
                for name, spec in checks.items()
                if spec.get("controllerName") == MULTI_KUEUE
            },
            configs={name: item for (_, name), item in self._configs.items.items()},
            queues=self._queues.items,
            workers={name: obj for (_, name), obj in self._workers.items.items()},
            managed={name: obj for (_, name), obj in self._managed.items.items()},
            find_score=lambda cluster, score: self._scores.items.get((cluster, score)),
            rooms={name: room for (_, name), room in self._rooms.items.items() if room},
            quotas={name: quotas for (name, _), quotas in self._quotas.items.items()},
        )

    def _is_idle(self) -> bool:
        """Return whether Kueue's configuration does not name this dispatcher."""
        at = self._options.kueue_config
        why = other_dispatcher(self._config.items.get(at), "/".join(at))
        self._in_charge.set(not why)
        if why and why != self._idle_reason:
            log.warning("nominates nothing", extra={"reason": why})
        self._idle_reason = why
        return bool(why)

    async def _tell(self, fleet: WorkerFleet) -> None:
        """Write the condition of each admission check of MultiKueue if it has changed."""
        now, checks = self._now(), [*self._checks.items.items()]
        for (_, name), check in () if self._options.dry_run else checks:
            if name not in fleet.checks:
                continue
            metadata, before = check["metadata"], [*conditions_of(check)]
            condition = dispatching(check, fleet, self._idle_reason, self._others, now)
            generation = metadata.get("generation")
            after = merged(before, [condition], now=rfc3339(now), generation=generation)
            if after != before:
                version = {"resourceVersion": metadata["resourceVersion"]}
                body = {"metadata": version, "status": {"conditions": after}}
                with suppress(Conflict, NotFound):
                    await self._kube.patch(ADMISSION_CHECK, name, body, subresource="status")

    def _is_mine(self, workload: WaitingWorkload) -> bool:
        """Return whether nobody else nominates clusters for a Workload; tell if somebody does."""
        at = key(workload.obj)
        strange = set(workload.nominated) - set(self._written.get(at, workload.nominated))
        if strange:
            self._tell_of_other(workload, f"it has nominated {listed(sorted(strange))}")
        return not strange

    def _tell_of_other(self, workload: WaitingWorkload, what: str) -> None:
        self._others.add("/".join(key(workload.obj)))
        message = f"left alone: another dispatcher writes status.nominatedClusterNames: {what}"
        self._nominations.labels("other-dispatcher").inc()
        self._events.record(WORKLOAD, workload.obj, "Warning", "OtherDispatcher", message)

    async def _nominate(self, nomination: Nomination) -> KubeError | None:
        """Write a nomination; return the error that ended it."""
        workload = nomination.workload
        told = {"workload": "/".join(key(workload.obj)), "why": nomination.message}
        if self._options.dry_run:
            self._nominations.labels("dry-run").inc()
            log.info("would nominate", extra=told)
            return None
        try:
            async with self._limiter.turn():
                version = await self._write(nomination)
        except KubeError as error:
            causes = error.details.get("causes") or () if isinstance(error, ApiError) else ()
            if any(cause.get("reason") == FIELD_MANAGER_CONFLICT for cause in causes):
                self._tell_of_other(workload, str(error))
                return None
            self._nominations.labels(type(error).__name__).inc()
            log.warning("not nominated", extra={**told, "error": str(error)})
            return error
        self._nominations.labels("ok").inc()
        log.info("nominated", extra=told)
        reason = "Nominated" if nomination.status else nomination.reason
        type_: Type = "Warning" if nomination.warns else "Normal"
        self._events.record(WORKLOAD, workload.obj, type_, reason, nomination.message)
        with suppress(TimeoutError):
            async with asyncio.timeout(UNSEEN_SECONDS):
                await self._workloads.reach(version)
        return None

    async def _write(self, nomination: Nomination) -> str:
        """Apply the nominated clusters if they differ, then patch the condition.

        Return the resource version that the Workload has then.
        """
        obj, metadata = nomination.workload.obj, nomination.workload.obj["metadata"]
        at = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")}
        version = metadata["resourceVersion"]
        if nomination.clusters != nomination.workload.nominated:
            status = applied_status(obj, KUEUE_ADMISSION)
            status.pop("nominatedClusterNames", None)
            if nomination.clusters:
                status["nominatedClusterNames"] = list(nomination.clusters)
            # An answer that is lost does not tell which of both there are.
            self._written[key(obj)] = (*nomination.workload.nominated, *nomination.clusters)
            obj = await self._kube.apply_status(
                WORKLOAD, WORKLOAD.object(metadata=at, status=status), manager=KUEUE_ADMISSION
            )
            version = obj["metadata"]["resourceVersion"]
        condition = Condition(
            NOMINATED,
            "True" if nomination.status else "False",
            nomination.reason,
            nomination.message,
        )
        others = [item for item in conditions_of(obj) if item.get("type") != NOMINATED]
        now = rfc3339(self._now())
        conditions = merged(others, [condition], now=now, generation=metadata.get("generation"))
        body = {"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}}
        patched = await self._kube.patch(
            WORKLOAD, metadata["name"], body, metadata["namespace"], subresource="status"
        )
        return str(patched["metadata"]["resourceVersion"])


def _clusters(config: Object) -> tuple[str, ...]:
    """Return the clusters of a MultiKueueConfig."""
    return tuple((config.get("spec") or {}).get("clusters") or ())
