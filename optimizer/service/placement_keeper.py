"""Keeps what one PlacementOptimization declares: plans it when that is due, and applies the plan.

Between two looks it keeps nothing but averaged scores and plans that wait for an approval, so a
server that is killed loses nothing. It plans and writes by the functions behind POST /plan and
POST /optimize.
"""

import asyncio
from contextlib import suppress

from dsf.api.names import GENERATED_LABEL, ROOT_POLICY_LABEL
from dsf.kube import kinds
from dsf.kube.errors import Forbidden, NotFound
from dsf.kube.json_merge_patch import patch_between
from dsf.kube.port import Kube, Object
from dsf.runtime.logs import audit
from dsf.runtime.reconcile.reflector import Key
from optimizer.domain.issue import Issue
from optimizer.follow.optimization.changes import (
    as_recorded,
    left_pending,
    past_changes,
    pending_places,
    unfinished,
    with_change,
)
from optimizer.follow.optimization.kept_conditions import (
    approved_digest,
    as_planned,
    awaiting,
    held,
    kept,
    not_planned,
    objects_digest,
    only_planned,
    planned,
    read_only,
    refused,
    rolling,
    satisfied,
)
from optimizer.follow.optimization.report import (
    KeptReport,
    last_plan,
    not_kept,
    plan_request,
    watched_of,
)
from optimizer.follow.optimization.subject import KeptMemory, KeptSubject, PlanState, WaitingPlan
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.kept_request import NotKept
from optimizer.follow.record.plan_history import PlanHistory, history_of, in_force, rolling_out
from optimizer.keep.decision import Hold, Take, moves_left_for, still_taken
from optimizer.keep.plan_restraint import PlanRestraint
from optimizer.plan.objects_reading import FleetReading
from optimizer.plan.plan import Plan, refused_writes
from optimizer.service.observe import list_all
from optimizer.service.optimizer import Optimizer
from optimizer.service.plan_writer import Writer
from optimizer.snapshot.fleet_reader import missing_score
from optimizer.snapshot.object_readers import generated_by
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_optimization import PlacementOptimizationSpec
from optimizer.wire.placement_status import PlacementStatus
from optimizer.wire.request_problem import RequestProblem


class PlacementKeeper:
    """Keeps PlacementOptimizations of a hub, one at a time; with `read_only` it only plans.

    It reads scores again after `least_pause` seconds at the earliest.
    """

    def __init__(self, optimizer: Optimizer, *, read_only: bool, least_pause: float) -> None:
        self._optimizer = optimizer
        self._kube: Kube = optimizer.kube
        self._now = optimizer.now
        self._read_only, self._least_pause = read_only, least_pause
        self._waiting = optimizer.waiting
        self._memories = dict[Key, KeptMemory]()

    def forget(self, key: Key) -> None:
        """Forget the averages and the waiting plan of what is gone, or is not kept here for now."""
        self._waiting.pop(key, None)
        self._memories.pop(key, None)

    async def look(self, obj: Object, spec: PlacementOptimizationSpec) -> tuple[Object, KeptReport]:
        """Plan one, and apply the plan if it may be. Returns it with its status of now.

        A call that the hub refuses is told in the report.
        """
        try:
            return await self._look(obj, spec)
        except (Forbidden, NotFound) as error:
            why = NotKept("HubRefused", f"the hub refused a call: {error}; it is tried again")
            return obj, not_kept(why).retried(self._now())

    async def _look(
        self, obj: Object, spec: PlacementOptimizationSpec
    ) -> tuple[Object, KeptReport]:
        key = spec.namespace, spec.optimization
        if spec.suspend:
            self.forget(key)
            message = "spec.suspend is true: it neither plans nor applies"
            return obj, not_kept(NotKept("Suspended", message))
        facts = await self._facts(spec.namespace)
        others = await list_all(self._kube, kinds.PLACEMENT_OPTIMIZATION, spec.namespace)
        memory = self._memories.setdefault(key, KeptMemory(spec))
        asked, known = await asyncio.to_thread(memory.asked, obj, spec, others, facts)
        if isinstance(asked, NotKept):
            self.forget(key)
            return obj, not_kept(asked)
        subject = KeptSubject(obj, spec, asked, await self._history(spec), known)
        coming = rolling_out(subject.history)
        if coming is not None:
            return obj, subject.saying(*rolling(coming))
        found = await self._finished(subject) or await self._kept(subject, memory)
        now = self._now()
        past = past_changes(subject.obj, subject.history, now)
        left = moves_left_for(spec, past, found.running, now)
        ends = pending_places(subject.obj, now)[1]
        found = found.due(now, memory.next_plan(spec, found, now), ends)
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
        reading = await self._optimizer.read_fleet(subject.asked.request, memory.reading)
        if isinstance(reading, RequestProblem):
            return subject.saying(*not_planned(reading)).retried(now)
        memory.reading = reading
        newest = subject.history[0] if subject.history else None
        record = (newest.name, newest.phase) if newest else ("", "")
        state = PlanState(await self._generated(spec), approved_digest(subject.obj), record)
        watched = watched_of(subject.obj, subject.facts, reading.snapshot.fleet)
        look_now = await asyncio.to_thread(
            memory.observed, spec, reading.snapshot.fleet, watched, now
        )
        pause = max(self._least_pause, (look_now.next_look - now).total_seconds())
        if not look_now.reasons and state == memory.state and memory.report:
            return memory.report.saying(*subject.landing(memory.report)).reading(pause)
        requested = plan_request(subject.obj) != subject.answered
        left, ends = pending_places(subject.obj, now)
        restraint = PlanRestraint(
            spec,
            memory.scores,
            past_changes(subject.obj, subject.history, now),
            now,
            requested,
            missing_score(reading.request, self._optimizer.settings),
            left,
        )
        plan = await self._plan(subject, reading, restraint)
        if isinstance(plan, RequestProblem):
            return subject.saying(*not_planned(plan)).retried(now)
        found = await self._taken(subject, plan, restraint)
        memory.keep(watched, state, found, now, ends)
        return found.reading(pause)

    async def _plan(
        self, subject: KeptSubject, reading: FleetReading, restraint: PlanRestraint
    ) -> Plan | RequestProblem:
        """Return the plan that was approved while it waited, unless something holds it by now.

        Otherwise a new one.
        """
        waiting = self._waiting.get(subject.key)
        approved = (subject.asked.request, approved_digest(subject.obj))
        if waiting and (waiting.plan.request, objects_digest(waiting.plan)) == approved:
            verdict, now = waiting.verdict, restraint.now
            running = sum(len(item.before) for item in waiting.plan.moves)
            if still_taken(verdict, subject.spec, restraint.history, running, now):
                restraint.verdict = verdict
                return waiting.plan
        return await self._optimizer.plan_restrained(reading, restraint)

    def _planned(
        self, subject: KeptSubject, plan: Plan, restraint: PlanRestraint | None = None
    ) -> KeptReport:
        before = (subject.obj.get("status") or {}).get("plan") or {}
        return KeptReport(
            (kept(subject.asked.missing), planned(plan), satisfied(plan, subject.history)),
            last_plan(plan, self._now(), before, subject.history),
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
        if not isinstance(restraint.verdict, Hold):
            found = found._replace(answered=plan_request(subject.obj))
        current = in_force(history)
        recorded = current is not None and current.spec.objects_digest == digest
        if not plan.changes and (recorded or spec.mode == "Plan" or not plan.manifests):
            return found.saying(as_planned(current, found.hold))
        if spec.mode == "Plan":
            return found.saying(only_planned(plan))
        if self._read_only:
            return found.saying(read_only("no plan is applied"))
        if isinstance(restraint.verdict, Hold) and plan.changes:
            return found.saying(held(restraint.verdict))
        if spec.mode == "Approve" and plan.changes and approved_digest(subject.obj) != digest:
            self._waiting[subject.key] = WaitingPlan(plan, restraint.verdict)
            return found.saying(awaiting(plan, subject.obj, history))
        return await self._apply(subject, plan, found)

    async def _apply(self, subject: KeptSubject, plan: Plan, found: KeptReport) -> KeptReport:
        """Write a plan; its moves are counted before, so that no process forgets them."""
        before = subject.obj
        taken = found.verdict if isinstance(found.verdict, Take) else None
        if taken is not None and plan.changes:
            left = left_pending(plan)
            subject.obj = with_change(before, taken, objects_digest(plan), self._now(), left)
            await self.write_status(subject.obj, subject.obj["status"], before)
        outcome = await self._optimizer.apply(plan, Writer(user=subject.user))
        problem = outcome if isinstance(outcome, RequestProblem) else refused_writes(outcome.failed)
        audit_write(subject.user, "apply", subject.spec.namespace, plan.digest, problem)
        if problem is not None:
            if isinstance(outcome, RequestProblem) and subject.obj is not before:
                await self.write_status(before, before.get("status") or {}, subject.obj)
                subject.obj = before
            return found.saying(refused(problem)).retried(self._now())
        if taken is not None and plan.changes:
            self._optimizer.metrics.moved(taken.moves)
        subject.history = await self._history(subject.spec)
        found = self._planned(subject, plan)._replace(
            verdict=found.verdict, answered=found.answered
        )
        coming = rolling_out(subject.history)
        said = rolling(coming) if coming else (as_planned(in_force(subject.history)),)
        return found.saying(*said)._replace(changed=bool(plan.changes))

    async def _facts(self, namespace: str) -> FleetFacts:
        """Return what names and selectors select from; scores are read when it is planned."""
        hub = self._optimizer.hub
        clusters, sets, bindings, policies, workloads = await asyncio.gather(
            list_all(hub, kinds.MANAGED_CLUSTER),
            list_all(hub, kinds.MANAGED_CLUSTER_SET),
            list_all(hub, kinds.MANAGED_CLUSTER_SET_BINDING, namespace),
            list_all(hub, kinds.POLICY, namespace, labels=f"!{ROOT_POLICY_LABEL}"),
            list_all(hub, kinds.MANIFEST_WORK_REPLICA_SET, namespace),
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

    async def _generated(self, spec: PlacementOptimizationSpec) -> frozenset[tuple[str, ...]]:
        """Return the versions of what was generated: somebody may have edited it."""
        labels, found = f"{GENERATED_LABEL}=true", set[tuple[str, ...]]()
        for kind in (kinds.PLACEMENT, kinds.PLACEMENT_BINDING, kinds.POLICY):
            listed = await list_all(self._optimizer.hub, kind, spec.namespace, labels=labels)
            for obj in generated_by(listed, spec.optimization):
                metadata = obj["metadata"]
                version = (str(metadata.get("uid")), str(metadata.get("generation")))
                found.add((kind.kind, metadata["name"], *version))
        return frozenset(found)

    async def write_status(self, obj: Object, status: Object, before: Object) -> None:
        """Write a status instead of the one that an object has on the hub."""
        metadata = obj["metadata"]
        with suppress(NotFound):
            await self._kube.patch(
                kinds.PLACEMENT_OPTIMIZATION,
                metadata["name"],
                {"status": {**status, **patch_between(before.get("status") or {}, status)}},
                metadata["namespace"],
                subresource="status",
            )


def audit_write(
    user: str, action: str, namespace: str, digest: str, problem: RequestProblem | None
) -> None:
    """Write the line of the audit log for what was written, or why it was not."""
    outcome = problem.detail if problem else "done"
    audit("write", user=user, action=action, namespace=namespace, digest=digest, outcome=outcome)
