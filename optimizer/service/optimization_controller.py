"""Keeps what PlacementOptimizations declare: plans it when something changes, and applies it.

Level triggered: a look is given a name and compares what is with what should be. Between two looks
it keeps nothing but plans that wait for an approval, so a server that is killed loses nothing. One
server looks, by a Lease; it plans and writes by the functions behind POST /plan and POST /optimize.
"""

import asyncio
import logging
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from dsf.api.names import (
    GENERATED_LABEL,
    HUB_NAMESPACE,
    OPTIMIZATION_FINALIZER,
    ROOT_POLICY_LABEL,
)
from dsf.kube.errors import Forbidden, KubeError, NotFound
from dsf.kube.kinds import (
    ADD_ON_PLACEMENT_SCORE,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_SET,
    MANAGED_CLUSTER_SET_BINDING,
    MANIFEST_WORK_REPLICA_SET,
    PLACEMENT,
    PLACEMENT_BINDING,
    PLACEMENT_OPTIMIZATION,
    POLICY,
    Kind,
)
from dsf.kube.port import Kube, Object
from dsf.kube.reads import find_object
from dsf.placement import read_taints
from dsf.runtime.events import EventRecorder, Type
from dsf.runtime.leader_election import LeaderElector
from dsf.runtime.lease import LeaderElectionConfig
from dsf.runtime.logs import audit_log
from dsf.runtime.reconcile.controller import Controller
from dsf.runtime.reconcile.reflector import Key, View
from optimizer.domain.issue import Issue
from optimizer.follow.optimization.changes import (
    as_recorded,
    past_changes,
    unfinished,
    with_change,
)
from optimizer.follow.optimization.report import (
    CALM,
    KeptReport,
    approved_digest,
    as_planned,
    awaiting,
    happened,
    held,
    kept,
    last_plan,
    not_kept,
    not_planned,
    objects_digest,
    only_planned,
    plan_request,
    planned,
    read_only,
    refused,
    rolling,
    satisfied,
    status_after,
    watched_of,
)
from optimizer.follow.optimization.subject import (
    KeptMemory,
    KeptSubject,
    PlanState,
    WaitingPlan,
    requester,
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import NotKept
from optimizer.follow.record.plan_history import PlanHistory, history_of, in_force, rolling_out
from optimizer.keep.decision import Hold, Take, moves_left_for
from optimizer.keep.plan_restraint import PlanRestraint
from optimizer.plan.plan import Plan, refused_writes
from optimizer.service.observe import list_all
from optimizer.service.optimizer import Optimizer
from optimizer.service.plan_writer import Writer
from optimizer.service.planner import FleetReading
from optimizer.service.rollout_controller import COMPONENT
from optimizer.snapshot.fleet_snapshot import missing_score
from optimizer.snapshot.object_readers import generated_by
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_optimization import PlacementOptimizationSpec, read_spec
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request_problem import RequestProblem

_log = logging.getLogger(__name__)

LEASE = "dynamic-scoring-optimizations"
"""Name of the Lease by which one server looks after a namespace."""

SETTLE_SECONDS = 1.0
"""Pause before a look: what changes together is looked at together."""

RESYNC_SECONDS = 300.0
"""Pause after which it looks although no watch has told of a change."""

RETRY_SECONDS = 15.0
"""Pause after a plan that could not be made or written."""

UNSERVED_SECONDS = 60.0
"""Pause before it is asked again whether the hub serves the kind."""

COST_FACTOR = 10.0
"""Looks take one part in so many of the time."""

_CHANGES = (
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_SET,
    MANAGED_CLUSTER_SET_BINDING,
    MANIFEST_WORK_REPLICA_SET,
    POLICY,
    PLACEMENT,
    PLACEMENT_BINDING,
)
"""The kinds whose changes are looked at; scores change all the time, so they are read in turn."""

_EVERYWHERE = (MANAGED_CLUSTER, MANAGED_CLUSTER_SET)
"""Those of them that matter in each namespace."""


class _Scope:
    """The PlacementOptimizations of a namespace, or of all, and their queue while this leads."""

    def __init__(self, kube: Kube, namespace: str | None) -> None:
        self.view = View(kube, PLACEMENT_OPTIMIZATION, namespace, read=_mark)
        self.found = asyncio.Event()
        self.controller: Controller | None = None
        self.view.on_change(self._changed)

    def enqueue(self, namespace: str | None, after: float = SETTLE_SECONDS) -> None:
        """Look at those of a namespace, or at all, after a while."""
        for key in self.view.items if self.controller else ():
            if self.controller and namespace in (None, key[0]):
                self.controller.enqueue("/".join(key), after)

    def _changed(self, key: Key) -> None:
        self.found.set()
        if self.controller:
            self.controller.enqueue("/".join(key))


class OptimizationController:
    """The PlacementOptimizations of a hub, or of some of its namespaces.

    With `read_only` it plans, and writes nothing but statuses.
    """

    def __init__(self, optimizer: Optimizer, *, read_only: bool) -> None:
        self._optimizer = optimizer
        self._kube: Kube = optimizer.kube
        self._now = optimizer.now
        self._read_only = read_only
        self._namespaces = optimizer.settings.rollout_namespaces
        self._identity = optimizer.identity
        self._registry = CollectorRegistry()
        self._events = EventRecorder(self._kube, COMPONENT, now=self._now, registry=self._registry)
        self._scopes = list[_Scope]()
        self._waiting = dict[Key, WaitingPlan]()
        self._memories = dict[Key, KeptMemory]()
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
        scope, plans = _Scope(self._kube, namespace), self._optimizer.rollouts.plans(namespace)
        plans.on_change(lambda key: scope.enqueue(key[0]))
        self._scopes.append(scope)
        config = LeaderElectionConfig(LEASE, namespace or HUB_NAMESPACE, self._identity)
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
                await self._kube.list(PLACEMENT_OPTIMIZATION, namespace, limit=1)
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
        self._optimizer.hub.watch(*_CHANGES, ADD_ON_PLACEMENT_SCORE)
        scope.enqueue(None, 0.0)
        try:
            await scope.controller.run()
        finally:
            scope.controller = None
            for key in scope.view.items:
                self._came.pop(key, None)
            self._count()

    def _changed(self, kind: Kind, key: Key) -> None:
        for scope in self._scopes:
            scope.enqueue(None if kind in _EVERYWHERE else key[0])

    async def _reconcile(self, scope: _Scope, key: str) -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        namespace, _, name = key.partition("/")
        again = await self.look(namespace, name)
        if scope.controller:
            scope.controller.queue.rest(key, COST_FACTOR * (loop.time() - began))
        return RESYNC_SECONDS if again is None else again

    async def look(self, namespace: str, name: str) -> float | None:
        """Look at one: plan it, apply the plan, and say so in its status.

        Returns in how many seconds something is due although nothing changes; None: nothing is.
        """
        began = self._now()
        obj = await find_object(self._kube, PLACEMENT_OPTIMIZATION, name, namespace)
        if obj is None:
            self._waiting.pop((namespace, name), None)
            self._memories.pop((namespace, name), None)
            self._came.pop((namespace, name), None)
            self._count()
            return None
        if obj["metadata"].get("deletionTimestamp"):
            return await self._end(obj)
        spec = read_spec(obj)
        if isinstance(spec, RequestProblem):
            found = not_kept(NotKept(spec.reason, spec.detail))
        else:
            await self._hold_back_deletion(obj, wanted=spec.deletion_policy == "Reset")
            obj, found = await self._attempt(obj, spec)
        await self._report(obj, found)
        self._came[namespace, name] = began, found
        self._optimizer.metrics.looked(found.reason)
        self._count()
        return found.again

    def _count(self) -> None:
        """Tell what came of the last look at each that this process keeps."""
        came = [found for _, found in self._came.values()]
        self._optimizer.metrics.optimizations(
            (found.reason for found in came),
            not_kept=sum(1 for found in came if not found.is_kept),
            oldest_look=min((began for began, _ in self._came.values()), default=None),
        )

    async def _attempt(
        self, obj: Object, spec: PlacementOptimizationSpec
    ) -> tuple[Object, KeptReport]:
        """Look at one; a call that the hub refuses is told. Returns it with its status of now."""
        try:
            return await self._look(obj, spec)
        except (Forbidden, NotFound) as error:
            why = NotKept("HubRefused", f"the hub refused a call: {error}; it is tried again")
            return obj, not_kept(why)._replace(again=RETRY_SECONDS)

    async def _look(
        self, obj: Object, spec: PlacementOptimizationSpec
    ) -> tuple[Object, KeptReport]:
        if spec.suspend:
            message = "spec.suspend is true: it neither plans nor applies"
            return obj, not_kept(NotKept("Suspended", message))
        facts = await self._facts(spec.namespace)
        others = await list_all(self._kube, PLACEMENT_OPTIMIZATION, spec.namespace)
        key = spec.namespace, spec.optimization
        memory = self._memories.setdefault(key, KeptMemory(spec))
        asked = await asyncio.to_thread(memory.asked, obj, spec, others, facts)
        if isinstance(asked, NotKept):
            return obj, not_kept(asked)
        subject = KeptSubject(obj, spec, asked, await self._history(spec), facts)
        coming = rolling_out(subject.history)
        if coming is not None:
            return obj, subject.saying(*rolling(coming))
        found = await self._finished(subject) or await self._kept(subject, memory)
        past = past_changes(subject.obj, subject.history)
        left = moves_left_for(spec, past, found.running, self._now())
        found = found.by(self._next_grace_end(facts, spec))
        return subject.obj, found._replace(moves_left=left)

    async def _finished(self, subject: KeptSubject) -> KeptReport | None:
        """Finish a plan of which a process that died, or that the hub refused, wrote a part."""
        record = unfinished(subject.history, subject.user)
        if record is None or self._read_only or subject.spec.mode == "Plan":
            return None
        request = await asyncio.to_thread(as_recorded, subject.asked.request, record)
        plan = await self._optimizer.plan(request) if request else None
        if not isinstance(plan, Plan) or objects_digest(plan) != record.spec.objects_digest:
            return None
        return await self._apply(subject, plan, self._planned(subject, plan))

    async def _kept(self, subject: KeptSubject, memory: KeptMemory) -> KeptReport:
        """Plan if that is due, and apply what may be taken."""
        spec, now = subject.spec, self._now()
        reading = await self._optimizer.read_fleet(subject.asked.request, memory.objects)
        if isinstance(reading, RequestProblem):
            return subject.saying(not_planned(reading))._replace(again=RETRY_SECONDS)
        memory.objects = reading.objects
        newest = subject.history[0] if subject.history else None
        record = (newest.name, newest.phase) if newest else ("", "")
        state = PlanState(await self._generated(spec), approved_digest(subject.obj), record)
        watched = watched_of(subject.obj, subject.facts, reading.snapshot.fleet)
        look_now = await asyncio.to_thread(
            memory.observed, spec, reading.snapshot.fleet, watched, now
        )
        pause = max(0.0, (look_now.next_look - now).total_seconds())
        if not look_now.reasons and state == memory.state and memory.report:
            return memory.report.saying(*subject.landing(memory.report)).by(pause)
        requested = plan_request(subject.obj) != subject.answered
        restraint = PlanRestraint(
            spec,
            memory.scores,
            past_changes(subject.obj, subject.history),
            now,
            requested,
            missing_score(reading.request, self._optimizer.settings),
        )
        plan = await self._plan(subject, reading, restraint)
        if isinstance(plan, RequestProblem):
            return subject.saying(not_planned(plan))._replace(again=RETRY_SECONDS)
        found = await self._taken(subject, plan, restraint)
        memory.keep(watched, state, found, now)
        return found.by(pause)

    async def _plan(
        self, subject: KeptSubject, reading: FleetReading, restraint: PlanRestraint
    ) -> Plan | RequestProblem:
        """Return the plan that was approved while it waited, or a new one."""
        waiting = self._waiting.get(subject.key)
        approved = (subject.asked.request, approved_digest(subject.obj))
        if waiting and (waiting.plan.request, objects_digest(waiting.plan)) == approved:
            restraint.verdict = waiting.verdict
            return waiting.plan
        return await self._optimizer.plan_restrained(reading, restraint)

    def _planned(
        self, subject: KeptSubject, plan: Plan, restraint: PlanRestraint | None = None
    ) -> KeptReport:
        before = (subject.obj.get("status") or {}).get("plan") or {}
        return KeptReport(
            (kept(subject.asked.missing), planned(plan), satisfied(plan, subject.history)),
            last_plan(plan, self._now(), before),
            verdict=restraint.verdict if restraint else None,
            running=sum(len(item.before) for item in plan.moves),
        )

    async def _taken(
        self, subject: KeptSubject, plan: Plan, restraint: PlanRestraint
    ) -> KeptReport:
        """Apply a plan if its mode says so, and nothing holds it."""
        spec, history, digest = subject.spec, subject.history, objects_digest(plan)
        self._waiting.pop(subject.key, None)
        found = self._planned(subject, plan, restraint)
        current = in_force(history)
        recorded = current is not None and current.spec.objects_digest == digest
        if not plan.changes and (recorded or spec.mode == "Plan" or not plan.manifests):
            return found.saying(held(found.hold) if found.hold else as_planned(current))
        if spec.mode == "Plan":
            return found.saying(only_planned(plan))
        if self._read_only:
            return found.saying(read_only("no plan is applied"))
        if isinstance(restraint.verdict, Hold) and plan.changes:
            return found.saying(held(restraint.verdict))
        found = found._replace(answered=plan_request(subject.obj))
        if spec.mode == "Approve" and plan.changes and approved_digest(subject.obj) != digest:
            self._waiting[subject.key] = WaitingPlan(plan, restraint.verdict)
            return found.saying(awaiting(plan, subject.obj, history))
        return await self._apply(subject, plan, found)

    async def _apply(self, subject: KeptSubject, plan: Plan, found: KeptReport) -> KeptReport:
        """Write a plan; its moves are counted before, so that no process forgets them."""
        before = subject.obj
        taken = found.verdict if isinstance(found.verdict, Take) else None
        if taken is not None and plan.changes:
            subject.obj = with_change(before, taken, objects_digest(plan), self._now())
            await self._write_status(subject.obj, subject.obj["status"], before)
        outcome = await self._optimizer.apply(plan, Writer(user=subject.user))
        problem = outcome if isinstance(outcome, RequestProblem) else refused_writes(outcome.failed)
        _audit(subject.user, "apply", subject.spec.namespace, plan.digest, problem)
        if problem is not None:
            if isinstance(outcome, RequestProblem) and subject.obj is not before:
                await self._write_status(before, before.get("status") or {}, subject.obj)
                subject.obj = before
            return found.saying(refused(problem))._replace(again=RETRY_SECONDS)
        if taken is not None and plan.changes:
            self._optimizer.metrics.moved(taken.moves)
        subject.history = await self._history(subject.spec)
        coming = rolling_out(subject.history)
        said = rolling(coming) if coming else (as_planned(in_force(subject.history)),)
        landed = () if coming else (satisfied(plan, subject.history),)
        return found.saying(*said, *landed)._replace(changed=bool(plan.changes))

    async def _facts(self, namespace: str) -> FleetFacts:
        """Return what names and selectors select from; scores are read when it is planned."""
        hub = self._optimizer.hub
        clusters, sets, bindings, policies, workloads = await asyncio.gather(
            list_all(hub, MANAGED_CLUSTER),
            list_all(hub, MANAGED_CLUSTER_SET),
            list_all(hub, MANAGED_CLUSTER_SET_BINDING, namespace),
            list_all(hub, POLICY, namespace, labels=f"!{ROOT_POLICY_LABEL}"),
            list_all(hub, MANIFEST_WORK_REPLICA_SET, namespace),
        )
        observation = Observation(
            managed_clusters=clusters,
            cluster_sets=sets,
            set_bindings=bindings,
            policies=policies,
            workloads=workloads,
            observed_at=self._now(),
        )
        unread = PlacementStatus(
            namespace=namespace,
            landed=False,
            workloads=(),
            policies=(),
            drift=(),
            unbound_policies=(),
        )
        return FleetFacts(namespace, observation, unread)

    async def _history(self, spec: PlacementOptimizationSpec) -> PlanHistory:
        records = await self._optimizer.recorded_plans(spec.namespace)
        return () if isinstance(records, Issue) else history_of(records, spec.optimization)

    def _next_grace_end(self, facts: FleetFacts, spec: PlacementOptimizationSpec) -> float | None:
        """Return in how many seconds a cluster with a taint is given up next; None: none is."""
        stated = (item.toleration_seconds for item in spec.tolerations)
        default = self._optimizer.settings.default_toleration_seconds
        graces = {default, *(seconds for seconds in stated if seconds is not None)}
        now = facts.observation.observed_at
        left = [
            (taint.added - now).total_seconds() + seconds
            for cluster in facts.observation.managed_clusters
            for taint in read_taints(cluster)
            for seconds in graces
            if taint.added is not None
        ]
        return min((seconds for seconds in left if seconds > 0), default=None)

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
        await self._kube.patch(PLACEMENT_OPTIMIZATION, name, {"metadata": body}, namespace)

    async def _end(self, obj: Object) -> float | None:
        """Delete what was generated, if the deletion waits for it."""
        metadata, spec = obj["metadata"], obj.get("spec") or {}
        if OPTIMIZATION_FINALIZER not in (metadata.get("finalizers") or ()):
            return None
        if spec.get("deletionPolicy") == "Reset":
            why = await self._reset(metadata["namespace"], metadata["name"])
            if why is not None:
                await self._report(obj, not_kept(why))
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
        _audit(user, "reset", namespace, "", problem)
        if problem is None:
            return None
        how = f"or remove its finalizer {OPTIMIZATION_FINALIZER}, and all stays"
        return NotKept(problem.reason, f"{problem.title}: {problem.detail}; {how}")

    async def _generated(self, spec: PlacementOptimizationSpec) -> frozenset[tuple[str, ...]]:
        """Return the versions of what was generated: somebody may have edited it."""
        labels, found = f"{GENERATED_LABEL}=true", set[tuple[str, ...]]()
        for kind in (PLACEMENT, PLACEMENT_BINDING, POLICY):
            listed = await list_all(self._optimizer.hub, kind, spec.namespace, labels=labels)
            for obj in generated_by(listed, spec.optimization):
                metadata = obj["metadata"]
                version = (str(metadata.get("uid")), str(metadata.get("generation")))
                found.add((kind.kind, metadata["name"], *version))
        return frozenset(found)

    async def _write_status(self, obj: Object, status: Object, before: Object) -> None:
        """Write a status instead of the one that an object has on the hub."""
        gone = dict.fromkeys((before.get("status") or {}).keys() - status.keys())
        metadata = obj["metadata"]
        with suppress(NotFound):
            await self._kube.patch(
                PLACEMENT_OPTIMIZATION,
                metadata["name"],
                {"status": {**gone, **status}},
                metadata["namespace"],
                subresource="status",
            )

    async def _report(self, obj: Object, found: KeptReport) -> None:
        """Write the status and an Event, unless nothing is new."""
        now = self._now()
        status = status_after(obj, found, now)
        if status == (obj.get("status") or {}):
            return
        await self._write_status(obj, status, obj)
        if event := happened(obj, found, now):
            kind: Type = "Normal" if event.reason in CALM else "Warning"
            self._events.record(PLACEMENT_OPTIMIZATION, obj, kind, event.reason, event.message)


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


def _audit(
    user: str, action: str, namespace: str, digest: str, problem: RequestProblem | None
) -> None:
    outcome = problem.detail if problem else "done"
    audit_log.info(
        "write",
        extra={
            "user": user,
            "action": action,
            "namespace": namespace,
            "digest": digest,
            "outcome": outcome,
        },
    )
