"""The tools that write: after the user's yes, or as `when_client_cannot_ask` says."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from fastmcp import Context
from fastmcp.tools.base import ToolResult
from mcp_types import InputRequiredResult
from pydantic import Field, WithJsonSchema

from dsf.api.untrusted_text import plain
from mcp_server.confirmation import Confirmation, WhenClientCannotAsk, ask
from mcp_server.results import plan_results, write_results
from mcp_server.results.kept_results import approval_question, kept_text, kept_view
from mcp_server.results.plan_results import RollbackView, plan_view
from mcp_server.results.tool_result import LIST_LIMIT
from mcp_server.results.write_results import (
    AppliedView,
    applied_view,
    constraints_question,
    constraints_text,
    constraints_view,
    may_move_back,
    planned_reset_text,
    planned_reset_view,
    repeated_view,
    reset_view,
)
from mcp_server.tools.arguments import (
    AppliedDigest,
    Forgotten,
    KeptName,
    MeantOptimization,
    Namespace,
    Offset,
    PlainNamespace,
    Remembered,
    ResetDigest,
    SearchedName,
    SeenNamespace,
    WaitingDigest,
)
from mcp_server.tools.fleet_tools import followed, meant_kept
from mcp_server.tools.hub_calls import (
    CallerRights,
    answer,
    answered,
    asked,
    granted,
    paged,
    refused,
    written,
)
from mcp_server.tools.plan_tools import PlanTools
from optimizer.follow.optimization.kept_optimization import refused_approval
from optimizer.follow.overview.constraints.constraint_fields import ConstraintsRequest
from optimizer.follow.record.plan_history import only_optimization
from optimizer.follow.rollout.rollout_commands import none_in_progress
from optimizer.operations import rollouts, writes
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer, WriteAttempt
from optimizer.operations.access.shown_plans import SHORTEST_DIGEST
from optimizer.operations.constraints import keep_constraints
from optimizer.operations.fleet import placement_status
from optimizer.operations.kept_placements import approve_plan, list_optimizations
from optimizer.operations.recorded_plans import applied_before, make_rollback
from optimizer.operations.rollouts import rollout_status
from optimizer.operations.writes import plan_reset, reset, write_attempt
from optimizer.plan.plan import Plan
from optimizer.plan.text.approval_questions import plan_question, rollout_question, verdict
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
    WithJsonSchema({"type": "string", "description": "Default: what any generated."}),
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
        back = may_move_back(await self._keepers(plan.request.namespace, plan.optimization))
        required = await self._confirm(
            context,
            plan_question(plan, self._hub_name) + back,
            about=f"apply_plan {plan.digest}",
            attempt=write_attempt(plan),
        )
        return required or _applied_result(await self._applied(plan), back=back)

    async def approve_kept_plan(
        self,
        name: KeptName,
        digest: WaitingDigest,
        context: Context,
        namespace: Namespace = "default",
    ) -> ToolResult | InputRequiredResult:
        """Approve the plan that waits, which is applied then. Show it to the user first."""
        kept = await meant_kept(self._caller(), namespace, name)
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
            self._caller, lambda caller: approve_plan(caller, namespace, kept.name, digest)
        )
        return answer(kept_text([told]), kept_view([told]))

    async def rollback(
        self,
        context: Context,
        namespace: Namespace = "default",
        optimization: MeantOptimization = None,
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
        back = may_move_back(await self._keepers(namespace, plan.optimization))
        text = plan_results.plan_text(plan, view, read_only=False) + back
        shown = answer(text, RollbackView(plan=view))
        if not plan.changes:
            return shown
        question = plan_question(plan, self._hub_name) + back
        said = await ask(context, question, about=f"rollback {plan.digest}")
        if isinstance(said, InputRequiredResult):
            return said
        if said is Confirmation.CANNOT_ASK:
            return shown
        self._require(said, write_attempt(plan))
        return _applied_result(await self._applied(plan), plan, back)

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
        kept = await list_optimizations(self._caller(), namespace)
        known = None if isinstance(kept, RequestProblem) else kept
        return answer(constraints_text(view, known), view)

    async def change_rollout(
        self,
        action: Action,
        context: Context,
        namespace: Namespace = "default",
        optimization: MeantOptimization = None,
    ) -> ToolResult | InputRequiredResult:
        """Pause, resume, undo (turn back) or cancel the rollout that is in progress."""
        caller = self._caller()
        if optimization is None:
            known = (await asked(rollouts.list_rollouts(caller, namespace))).items
            running = {plain(item.optimization) for item in known if not item.ended}
            found = only_optimization(namespace, running) if running else None
            optimization = granted(found or none_in_progress(namespace, known))
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
        *,
        offset: Offset,
    ) -> ToolResult | InputRequiredResult:
        """Delete every generated Placement, PlacementBinding and Policy of a namespace.

        Their policies are no longer enforced. Workloads run on, unless stop_workloads is true.
        """
        request = ResetRequest(
            namespace=namespace, optimization=optimization, stop_workloads=stop_workloads
        )
        planned = await asked(plan_reset(self._caller(), request))
        status = await asked(placement_status(self._caller(), namespace, optimization))
        keepers = await self._keepers(namespace, optimization)
        if not digest:
            whole = planned_reset_view(planned)
            text = partial(
                planned_reset_text, whole=whole, status=status, planned=planned, keepers=keepers
            )
            return paged(text, whole, LIST_LIMIT, offset)
        if digest != planned.digest:
            granted(reset_changed(replace(planned, digest=digest)))
        required = await self._confirm(
            context,
            write_results.reset_question(self._hub_name, planned, status, keepers),
            about=f"reset_placements {digest}",
            attempt=WriteAttempt("reset", namespace, digest),
        )
        if required is not None:
            return required
        result = await written(self._caller, lambda caller: reset(caller, request, digest=digest))
        view = reset_view(namespace, result)
        return answer(write_results.reset_text(view, keepers), view, is_error=bool(view.failed))

    async def _keepers(self, namespace: str, optimization: str | None) -> tuple[str, ...]:
        """Return the PlacementOptimizations that apply plans of an optimization, or of any."""
        kept = await answered(list_optimizations(self._caller(), namespace))
        return tuple(
            item.name
            for item in (() if isinstance(kept, RequestProblem) else kept.items)
            if item.mode == "Apply"
            and item.reason != "Suspended"
            and optimization in (None, item.name)
        )

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


def _applied_result(view: AppliedView, restored: Plan | None = None, back: str = "") -> ToolResult:
    shown = RollbackView(applied=view) if restored else view
    text = f"{verdict(restored)}\n" if restored else ""
    text += write_results.applied_text(view) + back
    return answer(text, shown, is_error=bool(view.failed))
