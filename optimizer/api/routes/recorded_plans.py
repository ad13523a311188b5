"""The routes of recorded plans: list them, show one, restore one."""

import asyncio
from collections.abc import Callable
from typing import Annotated

from fastapi import Body, FastAPI, Path, Query, Request, Response
from pydantic import BaseModel, Field

from optimizer.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.access.shown_plans import ShownPlans
from optimizer.api.caller import caller_of
from optimizer.api.examples import ROLLBACK_EXAMPLES
from optimizer.api.problem_details import documented, refusal
from optimizer.api.routes.plan_application import PlanApplication
from optimizer.domain.issue import Issue
from optimizer.plan.plan import Plan
from optimizer.record.plan_views import plan_record, plan_summary, rollback_result, unknown_digest
from optimizer.wire.plan_record import PlanList, PlanRecord, RollbackResult
from optimizer.wire.request import Namespace, OptimizationName, RollbackRequest
from optimizer.wire.request_problem import RequestProblem


class PlanFilter(BaseModel, extra="forbid"):
    """Parameters of GET /plans; a misspelt one is refused, not ignored."""

    namespace: Namespace
    optimization: Annotated[
        OptimizationName | None, Field(description="Only the plans of this optimization.")
    ] = None


class PlanNamespace(BaseModel, extra="forbid"):
    """Parameters of GET /plans/{digest}; a misspelt one is refused, not ignored."""

    namespace: Namespace


class RollbackMode(BaseModel, extra="forbid"):
    """Parameters of POST /rollback; a misspelt one is refused, not ignored."""

    expected_digest: Annotated[
        str,
        Field(
            max_length=64,
            pattern="^[0-9a-f]*$",
            description="Digest of a dry run: restore by exactly that plan, or not at all.",
        ),
    ] = ""


def add_plan_routes(
    app: FastAPI, of: Callable[[Request], AuthorizedOptimizer], shown: ShownPlans
) -> None:
    """Add the routes; `of` returns the optimizer of a request's caller.

    `shown` keeps the plans of dry runs, so that a caller restores by exactly what was shown.
    """

    @app.get(
        "/plans",
        tags=["optimize"],
        summary="List the recorded plans of a namespace",
        operation_id="list_plans",
        response_model=PlanList,
        responses=documented(404, 422),
    )
    async def plans(
        only: Annotated[PlanFilter, Query()], connection: Request
    ) -> PlanList | Response:
        """List what was applied, when, for whom, and what became of it.

        The newest plan of each optimization comes first.
        """
        optimizer = of(connection)
        async with caller_of(connection.receive) as caller:
            found = await caller.wait(optimizer.plans(only.namespace))
        match found:
            case RequestProblem():
                return refusal(found)
            case Issue():
                return PlanList(namespace=only.namespace, items=(), issues=(found,))
            case _:
                kept = (
                    item for item in found if only.optimization in (None, item.spec.optimization)
                )
                return PlanList(namespace=only.namespace, items=tuple(map(plan_summary, kept)))

    @app.get(
        "/plans/{digest}",
        tags=["optimize"],
        summary="Show a recorded plan",
        operation_id="show_plan",
        response_model=PlanRecord,
        responses=documented(404, 422),
    )
    async def plan(
        digest: Annotated[str, Path(max_length=64, pattern="^[0-9a-f]+$")],
        where: Annotated[PlanNamespace, Query()],
        connection: Request,
    ) -> PlanRecord | Response:
        """Show the request, the decision, the generated objects and the changes of a plan.

        Of several plans with the digest, the newest is shown.
        """
        optimizer = of(connection)
        async with caller_of(connection.receive) as caller:
            found = await caller.wait(optimizer.plans(where.namespace))
        if isinstance(found, RequestProblem):
            return refusal(found)
        records = () if isinstance(found, Issue) else found
        named = (item for item in records if item.spec.digest == digest)
        record = max(named, key=lambda item: item.spec.revision, default=None)
        if record is None:
            return refusal(unknown_digest(where.namespace))
        return await asyncio.to_thread(plan_record, record)

    @app.post(
        "/rollback",
        tags=["optimize"],
        summary="Restore a recorded plan",
        operation_id="rollback",
        response_model=RollbackResult,
        responses=documented(404, 409, 422),
    )
    async def rollback(
        request: Annotated[RollbackRequest, Body(openapi_examples=ROLLBACK_EXAMPLES)],
        mode: Annotated[RollbackMode, Query()],
        connection: Request,
    ) -> RollbackResult | Response:
        """Plan what a recorded plan decided, and apply it; with dryRun only show it.

        The decision is checked against the hub of today. If a cluster, a policy, a workload or
        capacity that it needs is gone, the response is 409 and names the differences, and nothing
        is written. The restored plan is recorded as a new revision.
        """
        optimizer, dry_run = of(connection), request.dry_run
        asked = PlanApplication(optimizer, shown, connection, dry_run, mode.expected_digest)
        done = await asked.run(
            lambda: optimizer.plan_rollback(request, to_apply=not dry_run),
            lambda plan: _restores(plan, request),
        )
        return refusal(done) if isinstance(done, RequestProblem) else rollback_result(*done)


def _restores(plan: Plan, asked: RollbackRequest) -> bool:
    """Return whether a plan restores what is asked for; without a revision, whichever it does."""
    if plan.rollback is None or asked.digest:
        return False
    revision = plan.rollback.to_revision
    restored = (plan.request.namespace, plan.optimization, revision)
    return restored == (asked.namespace, asked.optimization, asked.to_revision or revision)
