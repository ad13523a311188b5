"""Writes plans, and deletes what plans wrote: alone on the hub, on record, or step by step."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from dsf.api.untrusted_text import UntrustedName
from dsf.kube.changes import Change
from dsf.kube.port import Kube
from optimizer.domain.settings import OptimizerSettings
from optimizer.follow.record.plan_annotations import annotated
from optimizer.follow.rollout.rollout_commands import (
    NEEDS_OWN_RIGHTS,
    rollout_in_progress,
    rollout_on_clusters,
)
from optimizer.plan.generated_objects import failures, successes
from optimizer.plan.plan import Plan
from optimizer.plan.reset import (
    ResetOutcome,
    left_empty,
    reset_changes,
    reset_digest,
    reset_outcome,
)
from optimizer.plan.staleness import stale
from optimizer.service.hub.generated_writes import write_generated
from optimizer.service.metrics import OptimizerMetrics
from optimizer.service.namespace_lease import NamespaceLease, NamespaceWriters
from optimizer.service.observe import observe
from optimizer.service.plan_records import PlanRecords
from optimizer.service.rollouts.rollout_controller import RolloutController
from optimizer.snapshot.object_readers import cluster_selectors
from optimizer.snapshot.observation import Observation
from optimizer.wire.request_problem import CALLER_GONE, CONFLICT, ProblemKind, RequestProblem
from optimizer.wire.result import Applied, ObjectRef, ResetResult

T = TypeVar("T")


async def _anything(_: Sequence[Change]) -> RequestProblem | None:
    return None


@dataclass(frozen=True, slots=True)
class Writer:
    """With whose rights generated objects are written.

    `permit` is called with the changes before the first write; it returns a problem if they are
    refused. Without `kube` they are written with the optimizer's own rights. `user`: who asked, for
    the record of the plan. `name_others`: whether a refusal may name what other namespaces have.
    """

    permit: Callable[[Sequence[Change]], Awaitable[RequestProblem | None]] = _anything
    kube: Kube | None = None
    user: str = ""
    name_others: bool = True


OWN_RIGHTS = Writer()


@dataclass(frozen=True, slots=True)
class PlannedReset:
    """What a reset of a namespace, or of one optimization in it, writes.

    `digest`: the SHA-256 of the objects and of the writes. `outcome`: what becomes of what runs.
    `left_empty`: how many generated Placements stay that select nothing already.
    """

    namespace: str
    optimization: str | None
    digest: str
    stop_workloads: bool = False
    writes: tuple[Change, ...] = ()
    outcome: ResetOutcome = field(default_factory=ResetOutcome)
    left_empty: int = 0


def reset_changed(shown: PlannedReset) -> RequestProblem:
    """Return the refusal of a reset that would not delete what was shown."""
    return ProblemKind.RESET_CHANGED.because(
        f"digest {UntrustedName(shown.digest)} is not that of what a reset of namespace"
        f" {UntrustedName(shown.namespace)} would delete now; nothing was deleted"
    )


@dataclass(frozen=True, slots=True, eq=False)
class PlanWriter:
    """Writes plans to one hub. `rollouts` makes the steps of those that are not written at once.

    All calls raise KubeError where the hub can't be read. `now` returns an aware datetime.
    """

    kube: Kube
    settings: OptimizerSettings
    records: PlanRecords
    rollouts: RolloutController
    now: Callable[[], datetime]
    writers: NamespaceWriters
    metrics: OptimizerMetrics

    async def apply(
        self, plan: Plan, writer: Writer = OWN_RIGHTS, *, wanted: Callable[[], bool] = lambda: True
    ) -> Applied | RequestProblem:
        """Apply exactly the changes of a plan.

        Refused if the facts that it depends on have changed, or while another optimizer, of this
        process or another one, writes to any namespace. `wanted` is called before the first write;
        if it returns False, nothing is written.
        """
        try:
            outcome = await self.writers.write_alone(
                plan.request.namespace, lambda lease: self._apply(plan, lease, writer, wanted)
            )
        except BaseException:
            self.metrics.applying_failed()
            raise
        self.metrics.applied(outcome, stepwise=plan.rollout is not None)
        return outcome

    async def reset(
        self,
        namespace: str,
        writer: Writer = OWN_RIGHTS,
        *,
        optimization: str | None = None,
        stop_workloads: bool = False,
        digest: str = "",
        wanted: Callable[[], bool] = lambda: True,
    ) -> ResetResult | RequestProblem:
        """Delete every generated Placement, PlacementBinding and Policy of a namespace.

        With `optimization`, only those that were generated for it. With `stop_workloads`, the
        Placements of workloads select nothing instead, because OCM leaves what runs by a Placement
        that is gone. With the `digest` of what `plan_reset` returned, only if nothing of it has
        changed. `wanted` is called before the first write; if it returns False, nothing is written.
        """
        outcome = await self.writers.write_alone(
            namespace,
            lambda lease: self._reset(
                PlannedReset(namespace, optimization, digest, stop_workloads), lease, writer, wanted
            ),
            everywhere=False,
        )
        self.metrics.was_reset(outcome)
        return outcome

    async def plan_reset(
        self,
        namespace: str,
        optimization: str | None,
        *,
        stop_workloads: bool = False,
        name_others: bool = True,
    ) -> PlannedReset:
        """Return what a reset would write, and what becomes of what runs; write nothing."""
        observation = await observe(self.kube, namespace, self.now(), named=name_others)
        writes = reset_changes(observation, namespace, optimization, stop_workloads=stop_workloads)
        outcome = reset_outcome(
            observation,
            namespace,
            optimization,
            writes,
            select=cluster_selectors(observation.managed_clusters, self.settings.cluster_label_key),
            claim_name=self.settings.claim_name,
        )
        digest = reset_digest(writes, observation, (namespace, optimization))
        left = left_empty(observation, optimization, writes)
        return PlannedReset(namespace, optimization, digest, stop_workloads, writes, outcome, left)

    async def _apply(
        self, plan: Plan, lease: NamespaceLease, writer: Writer, wanted: Callable[[], bool]
    ) -> Applied | RequestProblem:
        observation = await observe(
            self.kube, plan.request.namespace, self.now(), named=writer.name_others
        )
        if lease.unseen and not observation.unread:
            raise lease.unseen
        if refused := await self._refused(plan, observation, lease, writer):
            return refused
        if not wanted():
            return CALLER_GONE
        if plan.rollout:
            return await self._begin_rollout(plan, writer, observation)
        await lease.announce(plan.digest)
        record = await self.records.open(plan, writer.user, observation)
        outcomes = await write_generated(
            writer.kube or self.kube, annotated(plan), reader=self.kube
        )
        failed = failures(outcomes)
        return Applied(
            digest=plan.digest,
            applied=successes(outcomes),
            failed=failed,
            record=record.name,
            issues=await self.records.close(record, failed),
        )

    async def _refused(
        self, plan: Plan, observation: Observation, lease: NamespaceLease, writer: Writer
    ) -> RequestProblem | None:
        """Return why a plan is not written; None if it can be."""
        refused = await self._rolling_out(
            plan.request.namespace, plan.optimization, plan.changed_clusters
        )
        if refused:
            return refused
        if plan.rollout and writer.kube:
            return NEEDS_OWN_RIGHTS
        refused = await asyncio.to_thread(stale, plan, observation, self.settings)
        if refused:
            return await self._naming_last_plan(refused, plan.request.namespace, lease)
        return await writer.permit(plan.changes)

    async def _naming_last_plan(
        self, refused: RequestProblem, namespace: str, lease: NamespaceLease
    ) -> RequestProblem:
        """Return a refusal that names the plan that was written last, and of which optimization."""
        if refused.status != CONFLICT or not lease.last_plan:
            return refused
        last = f"last applied was plan {UntrustedName(lease.last_plan)}"
        for record in await self.records.find(lease.last_plan, (namespace,)):
            last += f" of optimization {UntrustedName(record.spec.optimization)}"
            break
        return replace(refused, detail=f"{refused.detail}; {last}")

    async def _begin_rollout(
        self, plan: Plan, writer: Writer, observation: Observation
    ) -> Applied | RequestProblem:
        """Record a rollout; its steps are written by `rollouts`, in this process or another one."""
        await self.rollouts.check_rights()
        opened = await self.records.open(plan, writer.user, observation)
        if opened.issue:
            return ProblemKind.STEPWISE_NEEDS_RECORD.because(
                f"nothing was written: {opened.issue.message}; or ask for rollout AllAtOnce"
            )
        self.rollouts.nudge()
        steps = len(plan.rollout.steps) if plan.rollout else 0
        return Applied(digest=plan.digest, applied=(), steps=steps, record=opened.name)

    async def _rolling_out(
        self, namespace: str, optimization: str | None, clusters: Collection[str] = ()
    ) -> RequestProblem | None:
        """Return a refusal while a rollout goes on: of the optimization, or on these clusters."""
        for record in await self.rollouts.records.in_progress(namespace):
            if optimization in (None, record.optimization):
                return rollout_in_progress(record)
            if shared := record.clusters.intersection(clusters):
                return rollout_on_clusters(record, sorted(shared))
        return None

    async def _reset(
        self, shown: PlannedReset, lease: NamespaceLease, writer: Writer, wanted: Callable[[], bool]
    ) -> ResetResult | RequestProblem:
        namespace, optimization = shown.namespace, shown.optimization
        if refused := await self._rolling_out(namespace, optimization):
            return refused
        planned = await self.plan_reset(
            namespace,
            optimization,
            stop_workloads=shown.stop_workloads,
            name_others=writer.name_others,
        )
        if shown.digest not in ("", planned.digest):
            return reset_changed(shown)
        if refused := await writer.permit(planned.writes):
            return refused
        if not wanted():
            return CALLER_GONE
        await lease.announce("")
        outcomes = await write_generated(writer.kube or self.kube, planned.writes, reader=self.kube)
        await self.records.forget_current(namespace, optimization)
        deleted = tuple(
            ObjectRef(kind=change.kind, namespace=change.namespace, name=change.name)
            for change in successes(outcomes)
            if change.action == "delete"
        )
        return ResetResult(deleted=deleted, failed=failures(outcomes), **planned.outcome._asdict())
