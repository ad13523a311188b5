"""The tools that write: after the user's yes, or as `when_client_cannot_ask` says."""

from typing import Annotated, Literal, NamedTuple

from fastmcp import Context
from fastmcp.tools.base import ToolResult
from mcp_types import InputRequiredResult
from pydantic import Field, WithJsonSchema

from mcp_server.applied_plans import AppliedPlans
from mcp_server.confirmation import Confirmation, WhenClientCannotAsk, ask
from mcp_server.results import plan_text, result_text
from mcp_server.results.plan_views import RollbackView, follow_view, plan_view
from mcp_server.results.result_views import AppliedView, applied_view, reset_view
from mcp_server.tools.arguments import AppliedDigest, Namespace, Optimization
from mcp_server.tools.hub_calls import (
    CallerRights,
    asked,
    granted,
    http_messages,
    hub_errors,
    refused,
)
from mcp_server.tools.plan_tools import PlanTools
from optimizer.access.shown_plans import ShownPlans
from optimizer.api.caller import caller_of
from optimizer.plan.plan import Plan
from optimizer.wire.request import OptimizationName, RollbackRequest

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

Revision = Annotated[
    int | None,
    Field(ge=1),
    WithJsonSchema({"type": "integer", "description": "Default: the one before the current."}),
]


class _WriteAttempt(NamedTuple):
    """What the audit log says of a write that was not confirmed."""

    action: str
    namespace: str
    digest: str = ""


class WriteTools:
    """The tools that change the hub."""

    def __init__(
        self,
        caller: CallerRights,
        shown: ShownPlans,
        done: AppliedPlans,
        plans: PlanTools,
        when_client_cannot_ask: WhenClientCannotAsk,
    ) -> None:
        self._caller = caller
        self._shown = shown
        self._done = done
        self._plans = plans
        self._when_client_cannot_ask = when_client_cannot_ask

    async def apply_plan(
        self, digest: AppliedDigest, context: Context
    ) -> ToolResult | InputRequiredResult:
        """Apply exactly the plan with this digest, which was shown. Show it to the user first.

        Refused if the hub has changed since. A repeat writes nothing and says so.
        """
        owner = self._caller().owner
        before = self._done.get(owner, digest)
        if before is not None and self._shown.get(owner, digest) is None:
            return _applied_result(before.model_copy(update={"repeated": True}))
        plan = self._plans.shown_plan(digest)
        required = await self._confirm(
            context, _question(plan), about=f"apply_plan {digest}", attempt=_applying(plan)
        )
        return required or _applied_result(await self._applied(plan))

    async def rollback(
        self,
        context: Context,
        namespace: Namespace = "default",
        optimization: Optimization = "default",
        revision: Revision = None,
    ) -> ToolResult | InputRequiredResult:
        """Go back to an earlier recorded plan.

        Asks the user; if the client can't ask, shows the plan that goes back, for apply_plan.
        """
        wish = RollbackRequest(namespace=namespace, optimization=optimization, to_revision=revision)
        caller = self._caller()
        plan: Plan = await asked(caller.plan_rollback(wish))
        self._shown.add(caller.owner, plan)
        view = plan_view(plan, applicable=True, objects=False)
        text = plan_text.plan_text(plan, view, read_only=False)
        shown = ToolResult(content=text, structured_content=RollbackView(plan=view))
        if not plan.changes:
            return shown
        answer = await ask(context, _question(plan), about=f"rollback {plan.digest}")
        if isinstance(answer, InputRequiredResult):
            return answer
        if answer is Confirmation.CANNOT_ASK:
            return shown
        self._require(answer, _applying(plan))
        return _applied_result(await self._applied(plan), of_rollback=True)

    async def change_rollout(
        self,
        action: Action,
        context: Context,
        namespace: Namespace = "default",
        optimization: Optimization = "default",
    ) -> ToolResult | InputRequiredResult:
        """Pause, resume, undo (turn back) or cancel the rollout that is in progress."""
        caller = self._caller()
        now = await asked(caller.rollout(namespace, optimization))
        required = await self._confirm(
            context,
            f"{action.capitalize()} the rollout of optimization {optimization} in namespace"
            f" {namespace}? It is at step {now.step} of {len(now.steps)}.",
            about=f"change_rollout {action} {now.record}",
            attempt=_WriteAttempt(f"rollout {action}", namespace),
        )
        if required is not None:
            return required
        changed = await asked(caller.change_rollout(namespace, optimization, action))
        status = await asked(caller.placement_status(namespace, optimization))
        view = follow_view(status, changed, "")
        return ToolResult(content=plan_text.follow_text(view), structured_content=view)

    async def reset_placements(
        self, namespace: Namespace, context: Context, optimization: OnlyOptimization = None
    ) -> ToolResult | InputRequiredResult:
        """Delete every generated Placement, PlacementBinding and Policy of a namespace.

        Their policies are no longer enforced. Workloads stay where they are until the next plan.
        """
        required = await self._confirm(
            context,
            result_text.reset_question(namespace, optimization),
            about=f"reset_placements {namespace} {optimization or ''}".strip(),
            attempt=_WriteAttempt("reset", namespace),
        )
        if required is not None:
            return required
        with hub_errors():
            async with caller_of(http_messages()) as client:
                result = await self._caller().reset(
                    namespace, optimization=optimization, wanted=client.is_connected
                )
        view = reset_view(namespace, granted(result))
        return ToolResult(
            content=result_text.reset_text(view),
            structured_content=view,
            is_error=bool(view.failed),
        )

    async def _applied(self, plan: Plan) -> AppliedView:
        owner = self._caller().owner
        with hub_errors():
            async with caller_of(http_messages()) as client:
                outcome = await self._caller().apply(plan, wanted=client.is_connected)
        self._shown.forget(owner, plan.digest)
        view: AppliedView = applied_view(granted(outcome))
        if not view.failed:
            self._done.add(owner, view)
        return view

    async def _confirm(
        self, context: Context, question: str, *, about: str, attempt: _WriteAttempt
    ) -> InputRequiredResult | None:
        """Return None if the tool may write, or the question to return; ToolError if it may not."""
        answer = await ask(context, question, about=about)
        if isinstance(answer, InputRequiredResult):
            return answer
        if answer is Confirmation.CANNOT_ASK and self._when_client_cannot_ask == "digest":
            return None
        self._require(answer, attempt)
        return None

    def _require(self, answer: Confirmation, attempt: _WriteAttempt) -> None:
        """Raise ToolError unless the user said yes; the attempt is a line of the audit log."""
        if answer is Confirmation.YES:
            return
        declined = answer is Confirmation.NO
        self._caller().audit_unconfirmed(
            attempt.action,
            attempt.namespace,
            "NotConfirmed" if declined else "ClientCannotAsk",
            digest=attempt.digest,
        )
        if declined:
            raise refused("the user did not confirm; nothing was written")
        raise refused(
            "this client can't ask its user to confirm, and this server writes only what a user"
            " has confirmed; nothing was written"
        )


def _applied_result(view: AppliedView, *, of_rollback: bool = False) -> ToolResult:
    return ToolResult(
        content=result_text.applied_text(view),
        structured_content=RollbackView(applied=view) if of_rollback else view,
        is_error=bool(view.failed),
    )


def _applying(plan: Plan) -> _WriteAttempt:
    action = "rollback" if plan.rollback else "apply"
    return _WriteAttempt(action, plan.request.namespace, plan.digest)


def _question(plan: Plan) -> str:
    return plan_text.question(plan, plan_view(plan, applicable=True, objects=False))
