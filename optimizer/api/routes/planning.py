"""The routes that plan: a dry run of a few words, and a complete request that is applied."""

from collections.abc import Callable
from typing import Annotated

from fastapi import Body, FastAPI, Query, Request, Response
from pydantic import BaseModel, Field

from optimizer.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.access.shown_plans import ShownPlans
from optimizer.api.caller import caller_of
from optimizer.api.examples import OPTIMIZE_EXAMPLES, PLAN_EXAMPLES
from optimizer.api.problem_details import documented, refusal
from optimizer.api.routes.plan_application import PlanApplication
from optimizer.overview.plan_request import PlanRequest, PlanResult
from optimizer.plan.plan import result
from optimizer.record.recorded_plan import recorded_request
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import OptimizeResult


class OptimizeMode(BaseModel, extra="forbid"):
    """Parameters of POST /optimize; a misspelt dry_run must not write."""

    dry_run: Annotated[
        bool, Field(description="Only plan, write nothing; the same as dryRun in the body.")
    ] = False
    expected_digest: Annotated[
        str,
        Field(
            max_length=64,
            pattern="^[0-9a-f]*$",
            description="Digest of a dry run of the same request: apply exactly that plan, or"
            " nothing (409 PlanChanged, 409 StalePlan).",
        ),
    ] = ""


def add_planning_routes(
    app: FastAPI, of: Callable[[Request], AuthorizedOptimizer], shown: ShownPlans
) -> None:
    """Add the routes; `of` returns the optimizer of a request's caller.

    `shown` keeps the plans of dry runs, so that a caller applies exactly what was shown.
    """

    @app.post(
        "/optimize",
        tags=["optimize"],
        summary="Find the best placement and apply it",
        operation_id="optimize",
        response_model=OptimizeResult,
        responses=documented(404, 409, 422),
    )
    async def optimize(
        request: Annotated[OptimizeRequest, Body(openapi_examples=OPTIMIZE_EXAMPLES)],
        mode: Annotated[OptimizeMode, Query()],
        connection: Request,
    ) -> OptimizeResult | Response:
        """Choose at most one policy per cluster and a place for each workload.

        Generated objects of the optimization that the plan does not need are deleted; those of
        other optimizations stay. A plan without any placed workload changes nothing. If the hub
        refuses a write, the response names it: it is 403 if a right is missing, else 503. The other
        writes stay; the same request repeats only those that are missing. If the caller disconnects
        before the first write, planning stops and nothing is written. With `expected_digest`, the
        plan of that dry run is applied if it was made for this caller, by this process, in the last
        15 minutes; else the plan is made again, and applied if its digest is the same.
        """
        optimizer, dry_run = of(connection), mode.dry_run or request.dry_run
        asked = PlanApplication(optimizer, shown, connection, dry_run, mode.expected_digest)
        done = await asked.run(
            lambda: optimizer.plan(request, to_apply=not dry_run),
            lambda plan: not plan.rollback and _same(plan.request, request),
        )
        return refusal(done) if isinstance(done, RequestProblem) else result(*done)

    @app.post(
        "/plan",
        tags=["optimize"],
        summary="Plan from few words, and write nothing",
        operation_id="plan",
        response_model=PlanResult,
        responses=documented(404, 409, 422),
    )
    async def plan(
        question: Annotated[PlanRequest, Body(openapi_examples=PLAN_EXAMPLES)],
        connection: Request,
    ) -> PlanResult | Response:
        """Complete a request from the fleet, plan it, and return both. It never writes.

        Candidate policies are those that name the cluster, or none; scores of which lower values
        are better are inverted. A name that is unknown or not clear is 422 with near names.
        """
        optimizer = of(connection)
        async with caller_of(connection.receive) as caller:
            asked = await caller.wait(optimizer.question(question.wish))
            if isinstance(asked, RequestProblem):
                return refusal(asked)
            made = await caller.wait(optimizer.plan(asked.request, pretended=asked.pretended))
        if isinstance(made, RequestProblem):
            return refusal(made)
        if asked.pretended is None:
            shown.add(optimizer.owner, made)
        return PlanResult(
            **dict(result(made, None)),
            request=None if asked.pretended else recorded_request(made),
            objective_from=asked.objective,
        )


def _same(one: OptimizeRequest, other: OptimizeRequest) -> bool:
    """Return whether two requests ask for the same, apart from dryRun."""
    return one.model_copy(update={"dry_run": other.dry_run}) == other
