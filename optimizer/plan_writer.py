"""Writes plans, and deletes what plans wrote: alone on the hub, on record, or step by step."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from dsf.kube.apply import apply
from dsf.kube.changes import Change
from dsf.kube.kinds import PLACEMENT, PLACEMENT_BINDING, POLICY
from dsf.kube.port import Kube
from optimizer.domain.settings import OptimizerSettings
from optimizer.namespace_lease import NamespaceLease, write_alone
from optimizer.observe import list_all, observe
from optimizer.plan.generated_objects import failures, reset_changes, successes
from optimizer.plan.manifests import GENERATED_SELECTOR
from optimizer.plan.plan import Plan, stale
from optimizer.plan_records import PlanRecords
from optimizer.record.plan_annotations import annotated
from optimizer.rollout.rollout_problems import (
    needs_own_rights,
    needs_record,
    rollout_in_progress,
    rollout_on_clusters,
)
from optimizer.rollout_controller import RolloutController
from optimizer.snapshot.observation import Observation
from optimizer.wire.request_problem import (
    CALLER_GONE,
    RequestProblem,
)
from optimizer.wire.result import Applied, ObjectRef, ResetResult
from optimizer.writers_elsewhere import WritersElsewhere

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


class PlanWriter:
    """Writes plans to one hub. `rollouts` makes the steps of those that are not written at once.

    All calls raise KubeError where the hub can't be read. `now` returns an aware datetime.
    """

    def __init__(
        self,
        kube: Kube,
        settings: OptimizerSettings,
        records: PlanRecords,
        rollouts: RolloutController,
        *,
        now: Callable[[], datetime],
        lease_seconds: float,
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._records = records
        self._rollouts = rollouts
        self._now = now
        self._lease_seconds = lease_seconds
        self._elsewhere = WritersElsewhere(kube)

    async def apply(
        self,
        plan: Plan,
        writer: Writer = OWN_RIGHTS,
        *,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Applied | RequestProblem:
        """Apply exactly the changes of a plan.

        Refused if the facts that it depends on have changed, or while another optimizer, of this
        process or another one, writes to any namespace. `wanted` is called before the first write;
        if it returns False, nothing is written.
        """
        return await self._write_alone(
            plan.request.namespace,
            lambda lease: self._apply(plan, lease, writer, wanted),
            elsewhere=self._elsewhere,
        )

    async def reset(
        self,
        namespace: str,
        writer: Writer = OWN_RIGHTS,
        *,
        optimization: str | None = None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> ResetResult | RequestProblem:
        """Delete every generated Placement, PlacementBinding and Policy of a namespace.

        With `optimization`, only those that were generated for it.
        `wanted` is called before the first deletion; if it returns False, nothing is deleted.
        """
        return await self._write_alone(
            namespace,
            lambda lease: self._reset(namespace, optimization, lease, writer, wanted),
            elsewhere=None,
        )

    async def _write_alone(
        self,
        namespace: str,
        work: Callable[[NamespaceLease], Awaitable[T]],
        elsewhere: WritersElsewhere | None,
    ) -> T | RequestProblem:
        return await write_alone(
            self._kube, namespace, work, elsewhere=elsewhere, lease_seconds=self._lease_seconds
        )

    async def _apply(
        self, plan: Plan, lease: NamespaceLease, writer: Writer, wanted: Callable[[], bool]
    ) -> Applied | RequestProblem:
        observation = await observe(
            self._kube, plan.request.namespace, self._now(), named=writer.name_others
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
        record = await self._records.open(plan, writer.user, observation)
        outcomes = await apply(writer.kube or self._kube, annotated(plan))
        failed = failures(outcomes)
        return Applied(
            digest=plan.digest,
            applied=successes(outcomes),
            failed=failed,
            record=record.name,
            issues=await self._records.close(record, failed),
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
            return needs_own_rights()
        refused = await asyncio.to_thread(stale, plan, observation, self._settings)
        return lease.name_last_plan(refused) if refused else await writer.permit(plan.changes)

    async def _begin_rollout(
        self, plan: Plan, writer: Writer, observation: Observation
    ) -> Applied | RequestProblem:
        """Record a rollout; its steps are written by `rollouts`, in this process or another one."""
        await self._rollouts.check_rights()
        opened = await self._records.open(plan, writer.user, observation)
        if opened.issue:
            return needs_record(opened.issue.message)
        self._rollouts.nudge()
        return Applied(digest=plan.digest, applied=(), record=opened.name)

    async def _rolling_out(
        self, namespace: str, optimization: str | None, clusters: Collection[str] = ()
    ) -> RequestProblem | None:
        """Return a refusal while a rollout goes on: of the optimization, or on these clusters."""
        for record in await self._rollouts.in_progress(namespace):
            if optimization in (None, record.optimization):
                return rollout_in_progress(record)
            if shared := record.clusters.intersection(clusters):
                return rollout_on_clusters(record, sorted(shared))
        return None

    async def _reset(
        self,
        namespace: str,
        optimization: str | None,
        lease: NamespaceLease,
        writer: Writer,
        wanted: Callable[[], bool],
    ) -> ResetResult | RequestProblem:
        if refused := await self._rolling_out(namespace, optimization):
            return refused
        placements, bindings, policies = await asyncio.gather(
            list_all(self._kube, PLACEMENT, namespace, labels=GENERATED_SELECTOR),
            list_all(self._kube, PLACEMENT_BINDING, namespace),
            list_all(self._kube, POLICY, namespace, labels=GENERATED_SELECTOR),
        )
        observation = Observation(placements=placements, bindings=bindings, policies=policies)
        deletions = reset_changes(observation, optimization)
        if refused := await writer.permit(deletions):
            return refused
        if not wanted():
            return CALLER_GONE
        await lease.announce("")
        outcomes = await apply(writer.kube or self._kube, deletions)
        await self._records.forget_current(namespace, optimization)
        deleted = tuple(
            ObjectRef(kind=change.kind, namespace=change.namespace, name=change.name)
            for change in successes(outcomes)
        )
        return ResetResult(deleted=deleted, failed=failures(outcomes))
