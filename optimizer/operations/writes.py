"""The operations that write: they apply a plan that was made, or delete what plans generated."""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer, WriteAttempt
from optimizer.operations.access.rights import (
    Rights,
    changing_rights,
    resetting_rights,
    uncovering_rights,
)
from optimizer.operations.access.shown_plans import not_as_shown
from optimizer.operations.examples import RESET_EXAMPLES
from optimizer.operations.operation import Route, operation
from optimizer.plan.plan import Plan, refused_writes
from optimizer.service.plan_writer import PlannedReset
from optimizer.wire.request import ResetRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied, ResetResult


def write_attempt(plan: Plan) -> WriteAttempt:
    """Return what the audit log says of applying a plan."""
    action = "rollback" if plan.rollback else "apply"
    return WriteAttempt(action, plan.request.namespace, plan.digest)


def _applying_rights(plan: Plan) -> Rights:
    namespace = plan.request.namespace
    rights = changing_rights(namespace, plan.changes)
    return rights + uncovering_rights(plan.uncovers, namespace)


@operation(rights=_applying_rights, write=write_attempt)
async def apply_plan(optimizer: AuthorizedOptimizer, plan: Plan) -> Applied | RequestProblem:
    """Apply exactly the changes of a plan; nothing if the caller is gone before it."""
    writer = await optimizer.writer(plan.request.namespace)
    return await optimizer.service.apply(plan, writer, wanted=optimizer.caller.is_connected)


class PlanOutcome(NamedTuple):
    """A plan, and what was applied of it; None after a dry run."""

    plan: Plan
    applied: Applied | None


async def shown_or_applied(
    optimizer: AuthorizedOptimizer,
    make: Callable[[], Coroutine[Any, Any, Plan | RequestProblem]],
    is_asked: Callable[[Plan], bool],
    *,
    dry_run: bool,
    expected: str = "",
) -> PlanOutcome | RequestProblem:
    """Return the plan and what was applied of it, or why nothing was.

    `make` plans; `is_asked` says whether a plan that was shown is one that the caller asks for.
    `expected`: the digest of the plan that the caller saw; empty if it applies whatever is best.
    """
    shown, owner = optimizer.shown, optimizer.owner
    seen = shown.get(owner, expected) if expected and not dry_run else None
    plan: Plan | RequestProblem | None = seen if seen and is_asked(seen) else None
    if plan is None:
        plan = await optimizer.caller.wait(make())
    if isinstance(plan, RequestProblem):
        return plan
    if dry_run:
        shown.add(owner, plan)
        return PlanOutcome(plan, None)
    if changed := not_as_shown(plan, expected):
        return changed
    applied = await apply_plan(optimizer, plan)
    if isinstance(applied, RequestProblem):
        return applied
    shown.forget(owner, plan.digest)
    failed = refused_writes(applied.failed, as_caller=optimizer.writes_as_caller)
    return failed or PlanOutcome(plan, applied)


@operation(
    rights=lambda request: resetting_rights(request.namespace),
    write=lambda request, digest: WriteAttempt("reset", request.namespace, digest),
    route=Route(
        "POST",
        "/reset",
        "Delete what was generated in a namespace",
        (404, 409, 422),
        examples=RESET_EXAMPLES,
    ),
)
async def reset(
    optimizer: AuthorizedOptimizer, request: ResetRequest, *, digest: str = ""
) -> ResetResult | RequestProblem:
    """Delete the generated Placements, PlacementBindings and Policies of a namespace.

    With `optimization`, only those that were generated for it. The workloads go on running,
    and `running` names them, but seldom OCM stops one; with `stopWorkloads` they all stop.
    If the caller disconnects before the first deletion, nothing is deleted.
    """
    return await optimizer.service.reset(
        request.namespace,
        await optimizer.writer(request.namespace),
        optimization=request.optimization,
        stop_workloads=request.stop_workloads,
        digest=digest,
        wanted=optimizer.caller.is_connected,
    )


@operation(
    rights=lambda request: resetting_rights(request.namespace),
    write=lambda request: WriteAttempt("reset", request.namespace),
    audited=None,
)
async def plan_reset(
    optimizer: AuthorizedOptimizer, request: ResetRequest
) -> PlannedReset | RequestProblem:
    """Return what a reset would write, to a caller who may write and see it."""
    found = await optimizer.service.plan_reset(
        request.namespace,
        request.optimization,
        stop_workloads=request.stop_workloads,
        name_others=await optimizer.may_name_others(),
    )
    return await optimizer.of_namespace(request.namespace, found, empty=not found.writes)
