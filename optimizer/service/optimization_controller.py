"""Looks after the PlacementOptimizations of a hub: when it looks at which, who looks, what is told.

Level triggered: a look is given a name, and compares what is with what should be. One server looks,
by a Lease. A deletion waits for what it has to reset.
"""

import asyncio
import logging
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from dsf.api.names import HUB_NAMESPACE, OPTIMIZATION_FINALIZER
from dsf.kube import kinds
from dsf.kube.errors import KubeError
from dsf.kube.port import Kube, Object, find_object
from dsf.runtime.events import EventRecorder, Type
from dsf.runtime.leader_election import LeaderElector
from dsf.runtime.reconcile.controller import Controller
from dsf.runtime.reconcile.reflector import Key, View
from optimizer.domain.issue import Issue
from optimizer.follow.optimization.kept_conditions import approved_digest, read_only
from optimizer.follow.optimization.report import (
    CALM,
    RETRY_SECONDS,
    KeptReport,
    by_records,
    happened,
    not_kept,
    plan_request,
    status_after,
)
from optimizer.follow.optimization.subject import requester
from optimizer.follow.overview.kept_request import NotKept
from optimizer.follow.record.plan_history import history_of
from optimizer.plan.plan import refused_writes
from optimizer.service.namespace_lease import lease_config
from optimizer.service.optimizer import Optimizer
from optimizer.service.placement_keeper import PlacementKeeper, audit_write
from optimizer.service.plan_writer import Writer
from optimizer.service.rollouts.rollout_controller import COMPONENT
from optimizer.wire.placement_optimization import PlacementOptimizationSpec, read_spec
from optimizer.wire.request_problem import RequestProblem

_log = logging.getLogger(__name__)

LEASE = "dynamic-scoring-optimizations"
"""Name of the Lease by which one server looks after a namespace."""

SETTLE_SECONDS = 1.0
"""Pause before a look: what changes together is looked at together."""

RESYNC_SECONDS = 300.0
"""Pause after which it looks although no watch has told of a change."""

UNSERVED_SECONDS = 60.0
"""Pause before it is asked again whether the hub serves the kind."""

COST_FACTOR = 10.0
"""Looks take one part in so many of the time, besides those that somebody asks for."""

_CHANGES = (
    kinds.MANAGED_CLUSTER,
    kinds.MANAGED_CLUSTER_SET,
    kinds.MANAGED_CLUSTER_SET_BINDING,
    kinds.MANIFEST_WORK_REPLICA_SET,
    kinds.POLICY,
    kinds.PLACEMENT,
    kinds.PLACEMENT_BINDING,
)
"""The kinds whose changes are looked at; scores change all the time, so they are read in turn."""

_EVERYWHERE = (kinds.MANAGED_CLUSTER, kinds.MANAGED_CLUSTER_SET)
"""Those of them that matter in each namespace."""

_Asked = tuple[str, str]
"""The digest that somebody has approved, and the last plan that somebody has asked for."""


class _Scope:
    """The PlacementOptimizations of a namespace, or of all, and their queue while this leads."""

    def __init__(self, kube: Kube, namespace: str | None) -> None:
        self.view = View(kube, kinds.PLACEMENT_OPTIMIZATION, namespace, read=_mark)
        self.found = asyncio.Event()
        self.controller: Controller | None = None
        self.answered = dict[Key, _Asked]()
        self.rests = dict[Key, float]()
        self.outdated = set[Key]()
        self.view.on_change(self._changed)

    def asked(self, key: Key) -> _Asked:
        """Return what people ask of one now, who wait for the answer."""
        mark = self.view.items.get(key)
        return (mark.approved, mark.requested) if mark else ("", "")

    def enqueue(self, namespace: str | None, after: float = SETTLE_SECONDS) -> None:
        """Look at those of a namespace, or at all, after a while."""
        for key in self.view.items if self.controller else ():
            if self.controller and namespace in (None, key[0]):
                self.controller.enqueue("/".join(key), after)

    def recorded(self, namespace: str) -> None:
        """Tell what records of a namespace say by now, also while what they are of rests."""
        for key in self.view.items if self.controller else ():
            if self.controller and key[0] == namespace:
                self.outdated.add(key)
                self.controller.queue.rest("/".join(key), 0.0)
                self.controller.enqueue("/".join(key), SETTLE_SECONDS)

    def forget(self, key: Key) -> None:
        """Forget what was asked of one, and that it rests."""
        self.answered.pop(key, None)
        self.rests.pop(key, None)
        self.outdated.discard(key)

    def _changed(self, key: Key) -> None:
        self.found.set()
        if self.controller:
            if self.asked(key) != self.answered.get(key):
                self.rests.pop(key, None)
                self.controller.queue.rest("/".join(key), 0.0)
            self.controller.enqueue("/".join(key))
            self.enqueue(key[0])  # what it claims or gives up concerns its neighbours


class OptimizationController:
    """The PlacementOptimizations of a hub, or of some of its namespaces.

    With `read_only` it plans, and writes nothing but statuses. It reads scores again after
    `least_pause` seconds at the earliest.
    """

    def __init__(self, optimizer: Optimizer, *, read_only: bool, least_pause: float = 0.0) -> None:
        self._optimizer = optimizer
        self._read_only = read_only
        self._kube: Kube = optimizer.kube
        self._now = optimizer.now
        self._namespaces = optimizer.settings.rollout_namespaces
        self._identity = optimizer.identity
        self._registry = CollectorRegistry()
        self._events = EventRecorder(self._kube, COMPONENT, now=self._now, registry=self._registry)
        self._scopes = list[_Scope]()
        self._specs = dict[Key, tuple[Any, PlacementOptimizationSpec | RequestProblem]]()
        self._keeper = PlacementKeeper(optimizer, read_only=read_only, least_pause=least_pause)
        self._came = dict[Key, tuple[datetime, KeptReport]]()
        for kind in _CHANGES:
            optimizer.hub.on_change(kind, partial(self._changed, kind))

    async def run(self) -> None:
        """Look after them whenever this process leads, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._events.run())
            for namespace in self._namespaces or (None,):
                group.create_task(self._watch(namespace))

    async def _watch(self, namespace: str | None) -> None:
        """Watch those of a namespace, or of all; compete for the Lease once there are any."""
        await self._until_served(namespace)
        scope = _Scope(self._kube, namespace)
        plans = self._optimizer.rollouts.records.plans(namespace)
        plans.on_change(lambda key: scope.recorded(key[0]))
        self._scopes.append(scope)
        seconds = self._optimizer.lease_seconds
        config = lease_config(LEASE, namespace or HUB_NAMESPACE, self._identity, seconds)
        elector = LeaderElector(self._kube, config, now=self._now, registry=self._registry)
        async with asyncio.TaskGroup() as group:
            group.create_task(scope.view.run())
            await scope.found.wait()
            group.create_task(plans.run())
            group.create_task(elector.run(partial(self._lead, scope)))

    async def _until_served(self, namespace: str | None) -> None:
        """Wait until the hub serves the kind, and lets this process list it."""
        last = ""
        while True:
            try:
                await self._kube.list(kinds.PLACEMENT_OPTIMIZATION, namespace, limit=1)
            except KubeError as error:
                if str(error) != last:
                    _log.warning("nothing is kept placed", extra={"error": str(error)})
                last = str(error)
                await asyncio.sleep(UNSERVED_SECONDS)
            else:
                return

    async def _lead(self, scope: _Scope) -> None:
        scope.controller = Controller(
            LEASE, partial(self._reconcile, scope), registry=self._registry
        )
        self._optimizer.hub.watch(*_CHANGES, kinds.ADD_ON_PLACEMENT_SCORE)
        scope.enqueue(None, 0.0)
        try:
            await scope.controller.run()
        finally:
            scope.controller = None
            for key in scope.view.items:
                self._forget(key)
            self._count()

    def _forget(self, key: Key) -> None:
        """Forget the scores and the plan of an object that is gone, or that others may keep now.

        Averages of an earlier term would move back what has been moved for newer scores.
        """
        self._keeper.forget(key)
        for scope in self._scopes:
            scope.forget(key)
        self._specs.pop(key, None)
        self._came.pop(key, None)

    def _changed(self, kind: kinds.Kind, key: Key) -> None:
        for scope in self._scopes:
            scope.enqueue(None if kind in _EVERYWHERE else key[0])

    async def _reconcile(self, scope: _Scope, key: str) -> float:
        """Look at one, after which it rests; while it rests, only tell what records say by now."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        namespace, _, name = key.partition("/")
        at, asked = (namespace, name), scope.asked((namespace, name))
        scope.outdated.discard(at)
        if began < scope.rests.get(at, began):
            await self._tell(at)
            again = 0.0  # another change may have made it due at the end of its rest
        else:
            scope.answered[at] = asked
            found = await self.look(namespace, name)
            again = RESYNC_SECONDS if found is None else found
            scope.rests[at] = loop.time() + COST_FACTOR * (loop.time() - began)
        if scope.controller is None or scope.asked(at) != asked:
            scope.rests.pop(at, None)
        elif at not in scope.outdated:
            scope.controller.queue.rest(key, scope.rests[at] - loop.time())
        return again

    async def _tell(self, key: Key) -> None:
        """Write what records say by now into the status that the last look left."""
        obj = await find_object(self._kube, kinds.PLACEMENT_OPTIMIZATION, key[1], key[0])
        last = self._came.get(key)
        generation = (obj or {}).get("status", {}).get("observedGeneration")
        if obj is None or last is None or obj["metadata"].get("generation") != generation:
            return
        records = await self._optimizer.recorded_plans(key[0])
        if not isinstance(records, Issue):
            began, found = last
            found = by_records(found, obj, history_of(records, key[1]))
            await self._report(obj, found)
            self._came[key] = began, found
            self._count()

    async def look(self, namespace: str, name: str) -> float | None:
        """Look at one: plan it, apply the plan, and say so in its status.

        Returns in how many seconds something is due although nothing changes; None: nothing is.
        """
        key, began = (namespace, name), self._now()
        obj = await find_object(self._kube, kinds.PLACEMENT_OPTIMIZATION, name, namespace)
        if obj is None:
            self._forget(key)
            self._count()
            return None
        if obj["metadata"].get("deletionTimestamp"):
            return await self._end(obj)
        spec = self._spec_of(obj)
        if isinstance(spec, RequestProblem):
            found = not_kept(NotKept(spec.reason, spec.detail))
        else:
            await self._hold_back_deletion(obj, wanted=spec.deletion_policy == "Reset")
            obj, found = await self._keeper.look(obj, spec)
        await self._report(obj, found)
        self._came[key] = began, found
        self._optimizer.metrics.looked(found.reason)
        self._count()
        return found.again

    async def _report(self, obj: Object, found: KeptReport) -> None:
        """Write the status and an Event, unless nothing is new."""
        now = self._now()
        status = status_after(obj, found, now)
        if status == (obj.get("status") or {}):
            return
        await self._keeper.write_status(obj, status, obj)
        if event := happened(obj, found, now):
            kind: Type = "Normal" if event.reason in CALM else "Warning"
            self._events.record(
                kinds.PLACEMENT_OPTIMIZATION, obj, kind, event.reason, event.message
            )

    async def _hold_back_deletion(self, obj: Object, *, wanted: bool) -> None:
        """Set or remove the finalizer, so that a deletion waits for what it has to reset."""
        finalizers = obj["metadata"].get("finalizers") or []
        others = [item for item in finalizers if item != OPTIMIZATION_FINALIZER]
        kept_back = [*others, OPTIMIZATION_FINALIZER] if wanted else others
        if kept_back == finalizers or self._read_only:
            return
        metadata = obj["metadata"]
        body = {"resourceVersion": metadata["resourceVersion"], "finalizers": kept_back}
        name, namespace = metadata["name"], metadata["namespace"]
        await self._kube.patch(kinds.PLACEMENT_OPTIMIZATION, name, {"metadata": body}, namespace)

    async def _end(self, obj: Object) -> float | None:
        """Delete what was generated for one that is being deleted, if its deletion waits for that.

        Returns in how many seconds to try again; None: all is done.
        """
        metadata, spec = obj["metadata"], obj.get("spec") or {}
        if OPTIMIZATION_FINALIZER not in (metadata.get("finalizers") or ()):
            return None
        if spec.get("deletionPolicy") == "Reset":
            why = await self._reset(metadata["namespace"], metadata["name"])
            if why is not None:
                await self._report(obj, not_kept(why).retried(self._now()))
                return RETRY_SECONDS
        await self._hold_back_deletion(obj, wanted=False)
        return None

    async def _reset(self, namespace: str, name: str) -> NotKept | None:
        """Delete what was generated for an optimization; return why it could not be."""
        if self._read_only:
            return NotKept("ReadOnly", read_only("nothing is reset").message)
        await self._optimizer.rollouts.command(namespace, name, "cancel")
        user = requester(namespace, name)
        outcome = await self._optimizer.reset(namespace, Writer(user=user), optimization=name)
        problem = outcome if isinstance(outcome, RequestProblem) else refused_writes(outcome.failed)
        audit_write(user, "reset", namespace, "", problem)
        if problem is None:
            return None
        how = f"or remove its finalizer {OPTIMIZATION_FINALIZER}, and all stays"
        return NotKept(problem.reason, f"{problem.title}: {problem.detail}; {how}")

    def _spec_of(self, obj: Object) -> PlacementOptimizationSpec | RequestProblem:
        """Return what `read_spec` does; a spec that names a thousand clusters is read once."""
        key = obj["metadata"]["namespace"], obj["metadata"]["name"]
        stated, found = self._specs.get(key) or (None, None)
        if found is None or stated != obj.get("spec"):
            found = read_spec(obj)
            self._specs[key] = obj.get("spec"), found
        return found

    def _count(self) -> None:
        """Tell what came of the last look at each that this process keeps."""
        came = [found for _, found in self._came.values()]
        self._optimizer.metrics.optimizations(
            (found.reason for found in came),
            not_kept=sum(1 for found in came if not found.is_kept),
            oldest_look=min((began for began, _ in self._came.values()), default=None),
        )


class _Mark(NamedTuple):
    """What of an object makes it due: not its status, which a look writes itself."""

    uid: str
    generation: int
    approved: str
    requested: str
    deleting: bool


def _mark(obj: Object) -> _Mark:
    metadata = obj["metadata"]
    return _Mark(
        str(metadata.get("uid")),
        int(metadata.get("generation") or 0),
        approved_digest(obj),
        plan_request(obj),
        bool(metadata.get("deletionTimestamp")),
    )
