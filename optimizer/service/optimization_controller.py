"""Keeps what PlacementOptimizations declare: plans it when something changes, and applies it.

Level triggered: a look is given a name and compares what is with what should be. Between two looks
it keeps nothing but plans that wait for an approval, so a server that is killed loses nothing. One
server looks, by a Lease; it plans and writes by the functions behind POST /plan and POST /optimize.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from dsf.api.names import HUB_NAMESPACE, OPTIMIZATION_FINALIZER, ROOT_POLICY_LABEL
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
from optimizer.follow.optimization.report import (
    CALM,
    KeptReport,
    approved_digest,
    as_planned,
    awaiting,
    happened,
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
)
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import KeptRequest, NotKept, kept_request
from optimizer.follow.record.plan_history import PlanHistory, history_of, in_force, rolling_out
from optimizer.plan.plan import Plan, refused_writes
from optimizer.service.observe import list_all
from optimizer.service.optimizer import Optimizer
from optimizer.service.plan_writer import Writer
from optimizer.service.rollout_controller import COMPONENT
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
    ADD_ON_PLACEMENT_SCORE,
    MANAGED_CLUSTER,
    MANAGED_CLUSTER_SET,
    MANAGED_CLUSTER_SET_BINDING,
    MANIFEST_WORK_REPLICA_SET,
    POLICY,
    PLACEMENT,
    PLACEMENT_BINDING,
)
"""The kinds on which a plan depends. Scores and clusters matter in each namespace."""

_EVERYWHERE = (ADD_ON_PLACEMENT_SCORE, MANAGED_CLUSTER, MANAGED_CLUSTER_SET)
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
        self._waiting = dict[Key, Plan]()
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
        self._optimizer.hub.watch(*_CHANGES)
        scope.enqueue(None, 0.0)
        try:
            await scope.controller.run()
        finally:
            scope.controller = None

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
        obj = await find_object(self._kube, PLACEMENT_OPTIMIZATION, name, namespace)
        if obj is None:
            self._waiting.pop((namespace, name), None)
            return None
        if obj["metadata"].get("deletionTimestamp"):
            return await self._end(obj)
        spec = read_spec(obj)
        if isinstance(spec, RequestProblem):
            found = not_kept(NotKept(spec.reason, spec.detail))
        else:
            await self._hold_back_deletion(obj, wanted=spec.deletion_policy == "Reset")
            found = await self._attempt(obj, spec)
        await self._report(obj, found)
        return found.again

    async def _attempt(self, obj: Object, spec: PlacementOptimizationSpec) -> KeptReport:
        """Look at one; a call that the hub refuses is told."""
        try:
            return await self._look(obj, spec)
        except (Forbidden, NotFound) as error:
            why = NotKept("HubRefused", f"the hub refused a call: {error}; it is tried again")
            return not_kept(why)._replace(again=RETRY_SECONDS)

    async def _look(self, obj: Object, spec: PlacementOptimizationSpec) -> KeptReport:
        if spec.suspend:
            message = "spec.suspend is true: it neither plans nor applies"
            return not_kept(NotKept("Suspended", message))
        facts = await self._facts(spec.namespace)
        others = await list_all(self._kube, PLACEMENT_OPTIMIZATION, spec.namespace)
        asked = await asyncio.to_thread(kept_request, obj, others, facts)
        if isinstance(asked, NotKept):
            return not_kept(asked)
        subject = _Subject(obj, spec, asked, await self._history(spec))
        coming = rolling_out(subject.history)
        if coming is not None:
            return KeptReport((kept(asked.missing), *rolling(coming)))
        plan = await self._plan(subject)
        if isinstance(plan, RequestProblem):
            found = KeptReport((kept(asked.missing), not_planned(plan)), again=RETRY_SECONDS)
        else:
            found = await self._taken(subject, plan)
        return found.by(self._next_grace_end(facts, spec))

    async def _plan(self, subject: "_Subject") -> Plan | RequestProblem:
        """Return the plan that was approved while it waited, or a new one."""
        request, waiting = subject.asked.request, self._waiting.get(subject.key)
        if waiting and (waiting.request, objects_digest(waiting)) == (
            request,
            approved_digest(subject.obj),
        ):
            return waiting
        return await self._optimizer.plan(request)

    async def _taken(self, subject: "_Subject", plan: Plan) -> KeptReport:
        """Apply a plan if its mode says so."""
        spec, history, digest = subject.spec, subject.history, objects_digest(plan)
        self._waiting.pop(subject.key, None)
        before = (subject.obj.get("status") or {}).get("plan") or {}
        found = KeptReport(
            (kept(subject.asked.missing), planned(plan), satisfied(plan, history)),
            last_plan(plan, self._now(), before),
        )
        current = in_force(history)
        recorded = current is not None and current.spec.objects_digest == digest
        if not plan.changes and (recorded or spec.mode == "Plan" or not plan.manifests):
            return found.saying(as_planned(current))
        if spec.mode == "Plan":
            return found.saying(only_planned(plan))
        if self._read_only:
            return found.saying(read_only("no plan is applied"))
        if spec.mode == "Approve" and plan.changes and approved_digest(subject.obj) != digest:
            self._waiting[subject.key] = plan
            return found.saying(awaiting(plan, subject.obj, history))
        return await self._apply(subject, plan, found)

    async def _apply(self, subject: "_Subject", plan: Plan, found: KeptReport) -> KeptReport:
        outcome = await self._optimizer.apply(plan, Writer(user=subject.user))
        problem = outcome if isinstance(outcome, RequestProblem) else refused_writes(outcome.failed)
        _audit(subject.user, "apply", subject.spec.namespace, plan.digest, problem)
        if problem is not None:
            return found.saying(refused(problem))._replace(again=RETRY_SECONDS)
        history = await self._history(subject.spec)
        coming = rolling_out(history)
        said = rolling(coming) if coming else (as_planned(in_force(history)),)
        return found.saying(*said, satisfied(plan, history))._replace(changed=bool(plan.changes))

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
        records = await self._optimizer.plans(spec.namespace)
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
        user = _user(namespace, name)
        outcome = await self._optimizer.reset(namespace, Writer(user=user), optimization=name)
        problem = outcome if isinstance(outcome, RequestProblem) else refused_writes(outcome.failed)
        _audit(user, "reset", namespace, "", problem)
        if problem is None:
            return None
        how = f"or remove its finalizer {OPTIMIZATION_FINALIZER}, and all stays"
        return NotKept(problem.reason, f"{problem.title}: {problem.detail}; {how}")

    async def _report(self, obj: Object, found: KeptReport) -> None:
        """Write the status and an Event, unless nothing is new."""
        now, before = self._now(), obj.get("status") or {}
        status = status_after(obj, found, now)
        if status == before:
            return
        gone = dict.fromkeys(before.keys() - status.keys())
        metadata = obj["metadata"]
        with suppress(NotFound):
            await self._kube.patch(
                PLACEMENT_OPTIMIZATION,
                metadata["name"],
                {"status": {**gone, **status}},
                metadata["namespace"],
                subresource="status",
            )
        if event := happened(obj, found, now):
            kind: Type = "Normal" if event.reason in CALM else "Warning"
            self._events.record(PLACEMENT_OPTIMIZATION, obj, kind, event.reason, event.message)


@dataclass(frozen=True, slots=True)
class _Subject:
    """A PlacementOptimization, the request that it means now, and its recorded plans."""

    obj: Object
    spec: PlacementOptimizationSpec
    asked: KeptRequest
    history: PlanHistory

    @property
    def key(self) -> Key:
        return self.spec.namespace, self.spec.optimization

    @property
    def user(self) -> str:
        return _user(*self.key)


class _Mark(NamedTuple):
    """What of an object makes it due: not its status, which a look writes itself."""

    uid: str
    generation: int
    approved: str
    requested: str
    deleting: bool


def _in(view: View[_Mark], namespace: str | None) -> list[Key]:
    """Return the names of those of a namespace, or of all."""
    return [key for key in view.items if namespace in (None, key[0])]


def _mark(obj: Object) -> _Mark:
    metadata = obj["metadata"]
    return _Mark(
        str(metadata.get("uid")),
        int(metadata.get("generation") or 0),
        approved_digest(obj),
        plan_request(obj),
        bool(metadata.get("deletionTimestamp")),
    )


def _user(namespace: str, name: str) -> str:
    """Return who asks for a plan, for its record and the audit log."""
    return f"PlacementOptimization {namespace}/{name}"


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
