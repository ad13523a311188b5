"""The operations about recorded plans: list them, show one, restore one."""

import asyncio
from typing import Annotated, NamedTuple

from pydantic import Field

from dsf.api.untrusted_text import InvalidInput, joined
from dsf.kube.kinds import MANIFEST_WORK_REPLICA_SET
from optimizer.domain.issue import Issue
from optimizer.follow.overview.name_search import find_name
from optimizer.follow.record.plan_history import history_of, in_force, rolling_out, what_became
from optimizer.follow.record.plan_views import (
    plan_record,
    plan_summary,
    rollback_result,
    unknown_plan,
)
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.follow.record.rollback import no_longer_in_force
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer, WriteAttempt
from optimizer.operations.access.rights import (
    Rights,
    planning_rights,
    record_rights,
    status_rights,
    writing_rights,
)
from optimizer.operations.examples import ROLLBACK_EXAMPLES
from optimizer.operations.operation import Route, operation
from optimizer.operations.rollouts import rollout_status
from optimizer.operations.writes import shown_or_applied
from optimizer.plan.plan import MAX_NAMED, Plan
from optimizer.snapshot.object_readers import is_workload, name_of
from optimizer.wire.plan_record import PlanList, PlanRecord, RollbackResult
from optimizer.wire.request import Namespace, OptimizationName, RollbackRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from optimizer.wire.rollout import RolloutStatus


@operation(rights=record_rights)
async def recorded_plans(
    optimizer: AuthorizedOptimizer, namespace: str
) -> tuple[RecordedPlan, ...] | Issue | RequestProblem:
    """Return the recorded plans of a namespace, or why the hub has none."""
    found = await optimizer.service.plans(namespace)
    return await optimizer.of_namespace(namespace, found, empty=found == ())


@operation(rights=None, route=Route("GET", "/plans", "List the recorded plans of a namespace"))
async def list_plans(
    optimizer: AuthorizedOptimizer,
    namespace: Namespace,
    optimization: Annotated[
        OptimizationName | None, Field(description="Only the plans of this optimization.")
    ] = None,
) -> PlanList | RequestProblem:
    """List what was applied, when, for whom, and what became of it.

    The newest plan of each optimization comes first.
    """
    found = await recorded_plans(optimizer, namespace)
    match found:
        case RequestProblem():
            return found
        case Issue():
            return PlanList(namespace=namespace, items=(), issues=(found,))
        case _:
            kept = (item for item in found if optimization in (None, item.spec.optimization))
            return PlanList(namespace=namespace, items=tuple(map(plan_summary, kept)))


@operation(rights=None, route=Route("GET", "/plans/{digest}", "Show a recorded plan"))
async def show_plan(
    optimizer: AuthorizedOptimizer,
    digest: Annotated[str, Field(max_length=64, pattern="^[0-9a-f]+$")],
    namespace: Namespace,
) -> PlanRecord | RequestProblem:
    """Show the request, the decision, the generated objects and the changes of a plan.

    Of several plans with the digest, the newest is shown.
    """
    found = await recorded_plans(optimizer, namespace)
    if isinstance(found, RequestProblem):
        return found
    records = () if isinstance(found, Issue) else found
    named = (item for item in records if item.spec.digest == digest)
    # Anybody may write a record with any digest and revision; ours comes first.
    newest = max(named, key=lambda item: (not item.problem, item.spec.revision), default=None)
    if newest is None:
        return unknown_plan(digest, namespace, map(plan_summary, records))
    return await asyncio.to_thread(plan_record, newest, records)


def _restoring_rights(request: RollbackRequest, *, to_apply: bool) -> Rights:
    rights = planning_rights(request.namespace) + record_rights(request.namespace)
    return rights + writing_rights(request.namespace) if to_apply else rights


@operation(
    rights=_restoring_rights,
    write=lambda request, to_apply: (
        WriteAttempt("rollback", request.namespace) if to_apply else None
    ),
    audited="refusal",
)
async def make_rollback(
    optimizer: AuthorizedOptimizer, request: RollbackRequest, *, to_apply: bool = False
) -> Plan | RequestProblem:
    """Make a plan that restores a recorded one, if the caller may read both."""
    if request.workload is not None:
        found = await optimizer.service.hub.list(MANIFEST_WORK_REPLICA_SET, request.namespace)
        workloads = (name_of(obj) for obj in found.items if is_workload(obj))
        meant = find_name(request.workload, workloads, field="workload", what="workload")
        if isinstance(meant, RequestProblem):
            return meant
        request = request.model_copy(update={"workload": meant})
    named = await optimizer.may_name_others()
    return await optimizer.service.plan_rollback(request, name_others=named, to_apply=to_apply)


@operation(
    rights=None,
    route=Route(
        "POST", "/rollback", "Restore a recorded plan", (404, 409, 422), examples=ROLLBACK_EXAMPLES
    ),
)
async def rollback(
    optimizer: AuthorizedOptimizer,
    request: RollbackRequest,
    expected_digest: Annotated[
        str,
        Field(
            max_length=64,
            pattern="^[0-9a-f]*$",
            description="Digest of a dry run: restore by exactly that plan, or not at all.",
        ),
    ] = "",
) -> RollbackResult | RequestProblem:
    """Plan what a recorded plan decided, and apply it; with dryRun only show it.

    The decision is checked against the hub of today. If a cluster, a policy, a workload or
    capacity that it needs is gone, the response is 409 and names the differences, and nothing
    is written. The restored plan is recorded as a new revision. With `workload`, only that one
    goes back, and all else stays as the plan in force has it.
    """
    done = await shown_or_applied(
        optimizer,
        lambda: make_rollback(optimizer, request, to_apply=not request.dry_run),
        lambda plan: _restores(plan, request),
        dry_run=request.dry_run,
        expected=expected_digest,
    )
    return done if isinstance(done, RequestProblem) else rollback_result(*done)


def _restores(plan: Plan, asked: RollbackRequest) -> bool:
    """Return whether a plan restores what is asked for; without a revision, whichever it does."""
    if plan.rollback is None or asked.digest:
        return False
    revision, part, said = plan.rollback.to_revision, plan.rollback.workload, asked.workload
    restored = (plan.request.namespace, plan.optimization, revision)
    optimization = asked.optimization or plan.optimization
    wanted = (asked.namespace, optimization, asked.to_revision or revision)
    return restored == wanted and (said in part if said and part else said == part)


class RepeatedPlan(NamedTuple):
    """A plan that was applied before and is in force, or whose rollout is in progress."""

    applied: Applied
    rollout: RolloutStatus | None = None


@operation(rights=None)
async def recorded_in(optimizer: AuthorizedOptimizer, digest: str) -> str | RequestProblem | None:
    """Return a namespace whose plans the caller may read and that has this one; None: unknown."""
    for record in await optimizer.service.recorded(digest):
        if await optimizer.may(record_rights(record.namespace)):
            return record.namespace
    return None


@operation(rights=None)
async def applied_before(
    optimizer: AuthorizedOptimizer, digest: str
) -> RepeatedPlan | RequestProblem | None:
    """Return what a recorded plan wrote, if it is in force, or why it is not; None: unknown.

    A plan of a namespace whose records the caller may not read is unknown.
    """
    readable = [
        record
        for record in await optimizer.service.recorded(digest)
        if await optimizer.may(record_rights(record.namespace))
        and await optimizer.may(status_rights(record.namespace))
    ]
    own = [record for record in readable if record.problem is None] or readable
    if len({record.spec.digest for record in own}) != 1:
        return None
    return await _repeated(optimizer, max(own, key=lambda record: record.spec.revision))


async def _repeated(
    optimizer: AuthorizedOptimizer, record: RecordedPlan
) -> RepeatedPlan | RequestProblem:
    """Return what applying a recorded plan once more would do: nothing, while it is in force.

    Nothing either while its rollout is in progress. Refused with what happened since if it is
    not in force, or if the hub is not as the plan left it.
    """
    namespace, optimization = record.namespace, record.spec.optimization
    found = await optimizer.service.plans(namespace)
    history = () if isinstance(found, Issue) else history_of(found, optimization)
    coming, current = rolling_out(history), in_force(history)
    if coming is not None and coming.spec.digest == record.spec.digest:
        rollout = await rollout_status(optimizer, namespace, optimization)
        status = None if isinstance(rollout, RequestProblem) else rollout
        steps = len(status.steps) if status else 0
        applied = Applied(digest=coming.spec.digest, applied=(), steps=steps, record=coming.name)
        return RepeatedPlan(applied, status)
    if coming is not None or current is None or current.spec.digest != record.spec.digest:
        return no_longer_in_force(record, what_became(record, history))
    drift = (await optimizer.service.placement_status(namespace, optimization)).drift
    if drift:
        said = joined((item.sentence for item in drift), MAX_NAMED, separator="; ")
        return no_longer_in_force(record, f"the hub is not as it left it: {said}")
    content = await asyncio.to_thread(current.content)
    changes = () if isinstance(content, InvalidInput) else content.changes
    return RepeatedPlan(Applied(digest=current.spec.digest, applied=changes, record=current.name))
