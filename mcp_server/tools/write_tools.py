"""The tools that write: after the user's yes, or as `when_client_cannot_ask` says."""

from dataclasses import replace
from typing import Annotated, Literal

from fastmcp import Context
from fastmcp.tools.base import ToolResult
from mcp_types import InputRequiredResult
from pydantic import Field, WithJsonSchema

from mcp_server.confirmation import Confirmation, WhenClientCannotAsk, ask
from mcp_server.results import plan_results, write_results
from mcp_server.results.kept_results import approval_question, kept_text, kept_view
from mcp_server.results.plan_results import RollbackView, plan_view
from mcp_server.results.write_results import (
    AppliedView,
    applied_view,
    constraints_question,
    constraints_text,
    constraints_view,
    planned_reset_view,
    repeated_view,
    reset_view,
)
from mcp_server.tools.arguments import (
    AppliedDigest,
    Forgotten,
    KeptName,
    Namespace,
    Optimization,
    PlainNamespace,
    Remembered,
    ResetDigest,
    SearchedName,
    SeenNamespace,
    WaitingDigest,
)
from mcp_server.tools.fleet_tools import followed
from mcp_server.tools.hub_calls import CallerRights, answer, asked, granted, refused, written
from mcp_server.tools.plan_tools import PlanTools
from optimizer.follow.optimization.kept_optimization import refused_approval
from optimizer.follow.overview.constraints.constraint_fields import ConstraintsRequest
from optimizer.operations import rollouts, writes
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer, WriteAttempt
from optimizer.operations.access.shown_plans import SHORTEST_DIGEST
from optimizer.operations.constraints import keep_constraints
from optimizer.operations.fleet import placement_status
from optimizer.operations.kept_placements import approve_plan, show_optimization
from optimizer.operations.recorded_plans import applied_before, make_rollback
from optimizer.operations.rollouts import rollout_status
from optimizer.operations.writes import plan_reset, reset, write_attempt
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import plan_question, rollout_question
from optimizer.service.plan_writer import reset_changed
from optimizer.wire.request import OptimizationName, ResetRequest, RollbackRequest
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied

Action = Annotated[
    Literal["pause", "resume", "undo", "cancel"],
    WithJsonSchema(
        {
            "type": "string",
            "enum": ["pause", "resume", "undo", "cancel"],
            "description": "undo turns back to the start; cancel stops where it is.",
        }
    ),
]

OnlyOptimization = Annotated[
    OptimizationName | None,
    WithJsonSchema(
        {"type": "string", "description": "Default: what any generated.", "examples": ["default"]}
    ),
]

StopWorkloads = Annotated[
    bool, WithJsonSchema({"type": "boolean", "description": "Also stop workloads."})
]

Revision = Annotated[
    int | None,
    Field(ge=1),
    WithJsonSchema({"type": "integer", "description": "Default: the one before the current."}),
]


OnlyWorkload = Annotated[
    SearchedName, WithJsonSchema({"type": "string", "description": "Undo its move only."})
]


class WriteTools:
    """The tools that change the hub."""

    def __init__(
        self,
        caller: CallerRights,
        plans: PlanTools,
        when_client_cannot_ask: WhenClientCannotAsk,
        hub_name: str,
    ) -> None:
        self._caller = caller
        self._plans = plans
        self._when_client_cannot_ask = when_client_cannot_ask
        self._hub_name = hub_name

    async def apply_plan(
        self, digest: AppliedDigest, context: Context
    ) -> ToolResult | InputRequiredResult:
        """Apply exactly the plan with this digest, which was shown. Show it to the user first.

        Refused if the hub has changed since. A repeat says so.
        """
        if not self._plans.was_shown(digest) and len(digest) >= SHORTEST_DIGEST:
            before = await asked(applied_before(self._caller(), digest))
            if before is not None:
                return _applied_result(repeated_view(before))
        plan = self._plans.shown_plan(digest)
        required = await self._confirm(
            context,
            plan_question(plan, self._hub_name),
            about=f"apply_plan {plan.digest}",
            attempt=write_attempt(plan),
        )
        return required or _applied_result(await self._applied(plan))

    async def approve_kept_plan(
        self,
        name: KeptName,
        digest: WaitingDigest,
        context: Context,
        namespace: Namespace = "default",
    ) -> ToolResult | InputRequiredResult:
        """Approve the plan that waits, which is applied then. Show it to the user first."""
        kept = await asked(show_optimization(self._caller(), namespace, name))
        if len(digest) >= SHORTEST_DIGEST and kept.waiting.startswith(digest):
            digest = kept.waiting
        granted(refused_approval(kept, digest))
        required = await self._confirm(
            context,
            approval_question(kept, self._hub_name),
            about=f"approve_kept_plan {digest}",
            attempt=WriteAttempt("approve", namespace, digest),
        )
        if required is not None:
            return required
        told = await written(
            self._caller, lambda caller: approve_plan(caller, namespace, name, digest)
        )
        return answer(kept_text([told]), kept_view([told]))

    async def rollback(
        self,
        context: Context,
        namespace: Namespace = "default",
        optimization: Optimization = "default",
        revision: Revision = None,
        workload: OnlyWorkload = "",
    ) -> ToolResult | InputRequiredResult:
        """Go back to an earlier recorded plan, or undo one workload's move.

        Asks the user; if the client can't ask, shows the plan that goes back, for apply_plan.
        """
        request = RollbackRequest(
            namespace=namespace,
            optimization=optimization,
            to_revision=revision,
            workload=workload or None,
        )
        caller = self._caller()
        plan: Plan = await asked(make_rollback(caller, request))
        caller.shown.add(caller.owner, plan)
        view = plan_view(plan, applicable=True, objects=False)
        text = plan_results.plan_text(plan, view, read_only=False)
        shown = answer(text, RollbackView(plan=view))
        if not plan.changes:
            return shown
        said = await ask(
            context, plan_question(plan, self._hub_name), about=f"rollback {plan.digest}"
        )
        if isinstance(said, InputRequiredResult):
            return said
        if said is Confirmation.CANNOT_ASK:
            return shown
        self._require(said, write_attempt(plan))
        return _applied_result(await self._applied(plan), of_rollback=True)

    async def keep_constraints(
        self,
        context: Context,
        namespace: PlainNamespace = "default",
        *,
        remember: Remembered,
        forget: Forgotten,
    ) -> ToolResult | InputRequiredResult:
        """Keep constraints in every plan, or forget some; list all."""
        request = ConstraintsRequest(
            namespace=namespace, remember=remember, forget=forget, dry_run=True
        )
        planned = await asked(keep_constraints(self._caller(), request))
        if planned.commands:
            required = await self._confirm(
                context,
                constraints_question(planned, self._hub_name),
                about=f"keep_constraints {planned.commands}",
                attempt=WriteAttempt("constrain", namespace),
            )
            if required is not None:
                return required
        now = request.model_copy(update={"dry_run": False})
        done = await written(self._caller, lambda caller: keep_constraints(caller, now))
        view = constraints_view(done)
        return answer(constraints_text(view), view)

    async def change_rollout(
        self,
        action: Action,
        context: Context,
        namespace: Namespace = "default",
        optimization: Optimization = "default",
    ) -> ToolResult | InputRequiredResult:
        """Pause, resume, undo (turn back) or cancel the rollout that is in progress."""
        caller = self._caller()
        now = await asked(rollout_status(caller, namespace, optimization))
        required = await self._confirm(
            context,
            rollout_question(action, now, self._hub_name),
            about=f"change_rollout {action} {now.record}",
            attempt=WriteAttempt(f"rollout {action}", namespace),
        )
        if required is not None:
            return required
        changed = await asked(rollouts.change_rollout(caller, namespace, optimization, action))
        return await followed(caller, namespace, optimization, changed)

    async def reset_placements(
        self,
        namespace: SeenNamespace,
        context: Context,
        optimization: OnlyOptimization = None,
        stop_workloads: StopWorkloads = False,
        digest: ResetDigest = "",
    ) -> ToolResult | InputRequiredResult:
        """Delete every generated Placement, PlacementBinding and Policy of a namespace.

        Their policies are no longer enforced. Workloads run on, unless stop_workloads is true.
        """
        request = ResetRequest(
            namespace=namespace, optimization=optimization, stop_workloads=stop_workloads
        )
        planned = await asked(plan_reset(self._caller(), request))
        status = await asked(placement_status(self._caller(), namespace, optimization))
        if not digest:
            view = planned_reset_view(planned)
            text = write_results.planned_reset_text(view, status, optimization, planned.left_empty)
            return answer(text, view)
        if digest != planned.digest:
            granted(reset_changed(replace(planned, digest=digest)))
        required = await self._confirm(
            context,
            write_results.reset_question(self._hub_name, planned, status),
            about=f"reset_placements {digest}",
            attempt=WriteAttempt("reset", namespace, digest),
        )
        if required is not None:
            return required
        result = await written(self._caller, lambda caller: reset(caller, request, digest=digest))
        view = reset_view(namespace, result)
        return answer(write_results.reset_text(view), view, is_error=bool(view.failed))

    async def _applied(self, plan: Plan) -> AppliedView:
        async def write(caller: AuthorizedOptimizer) -> Applied | RequestProblem:
            outcome = await writes.apply_plan(caller, plan)
            if plan.changes:
                caller.shown.forget(caller.owner, plan.digest)
            return outcome

        return applied_view(await written(self._caller, write))

    async def _confirm(
        self, context: Context, question: str, *, about: str, attempt: WriteAttempt
    ) -> InputRequiredResult | None:
        """Return None if the tool may write, or the question to return; ToolError if it may not."""
        said = await ask(context, question, about=about)
        if isinstance(said, InputRequiredResult):
            return said
        if said is Confirmation.CANNOT_ASK and self._when_client_cannot_ask == "digest":
            return None
        self._require(said, attempt)
        return None

    def _require(self, answer: Confirmation, attempt: WriteAttempt) -> None:
        """Raise ToolError unless the user said yes; the attempt is a line of the audit log."""
        if answer is Confirmation.YES:
            return
        declined = answer is Confirmation.NO
        self._caller().audit(attempt, "NotConfirmed" if declined else "ClientCannotAsk")
        if declined:
            raise refused("the user did not confirm; nothing was written")
        raise refused(
            "this client can't ask its user to confirm, and this server writes only what a user"
            " has confirmed; nothing was written"
        )


def _applied_result(view: AppliedView, *, of_rollback: bool = False) -> ToolResult:
    shown = RollbackView(applied=view) if of_rollback else view
    return answer(write_results.applied_text(view), shown, is_error=bool(view.failed))
