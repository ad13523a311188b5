"""The view in a chat: the optimizer's page as an MCP App, and the tool that it asks for its data.

What the page reads by REST in a browser, it reads by this tool in a chat.

Source: SEP-1865, the extension io.modelcontextprotocol/ui (2026-01-26).
"""

from hashlib import sha256
from importlib.resources.abc import Traversable
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from fastmcp.exceptions import ResourceError
from fastmcp.server.providers import LocalProvider
from fastmcp.tools.base import ToolResult
from fastmcp.utilities.mime import UI_MIME_TYPE
from pydantic import Field, WithJsonSchema, create_model, model_validator

from mcp_server.tools.hub_calls import CallerRights, asked, granted
from mcp_server.tools.plan_tools import PlanTools
from optimizer.api.page_route import PAGE
from optimizer.follow.overview.plan_request import PlanResult
from optimizer.follow.record.recorded_plan import recorded_request
from optimizer.operations.fleet import fleet
from optimizer.operations.kept_placements import list_optimizations, show_waiting_plan
from optimizer.operations.operation import Operation
from optimizer.operations.planning import make_plan, plan
from optimizer.operations.recorded_plans import list_plans, rollback, show_plan
from optimizer.operations.rollouts import list_rollouts
from optimizer.plan.plan import Plan, result
from optimizer.wire.base import RequestPart, ResultPart
from optimizer.wire.request import Namespace, RollbackRequest
from optimizer.wire.request_problem import dry_request

URI = "ui://dynamic-scoring-framework/page.html"

OPENS_VIEW = {"ui": {"resourceUri": URI}}
"""`_meta` of a tool whose result a host shows in the view."""

FOR_VIEW_ONLY = {"ui": {"resourceUri": URI, "visibility": ["app"]}}
"""`_meta` of a tool that the view calls and the model never sees."""

_PAGE_POLICY = {"ui": {"csp": {}, "prefersBorder": False}}
"""The page needs no other origin, so a host may forbid all of them."""


def add_chat_view(provider: LocalProvider, page: Traversable = PAGE) -> None:
    """Add the page as a resource that hosts of MCP Apps show; it is read when it is asked for."""

    @provider.resource(URI, title="Fleet and plans", mime_type=UI_MIME_TYPE, meta=_PAGE_POLICY)
    def chat_view() -> str:
        """The fleet as a matrix, plans before and after, and their approval."""
        try:
            return page.read_text(encoding="utf-8")
        except OSError as error:
            raise ResourceError(
                "the page was not built: run `make page` in the checkout; released packages and"
                " images have it"
            ) from error


SAID = "The data of the page that this chat shows."
"""The text of a result, for a reader that is not the page."""

Digest = Annotated[str, Field(max_length=128)]


class AskedFleet(RequestPart):
    """The fleet as a matrix; None if its tag is still the one that the page has."""

    of: Literal["fleet"]
    namespace: Namespace = "default"
    tag: Annotated[str, Field(max_length=64)] = ""


class AskedShownPlan(RequestPart):
    """The plan that a tool has shown in the chat."""

    of: Literal["shownPlan"]
    digest: Digest


class AskedExplanation(RequestPart):
    """The plan of a complete request, which may ask for explanations; it can't be applied."""

    of: Literal["explanation"]
    request: dict[str, Any]


class AskedRollback(RequestPart):
    """The plan that restores a recorded one."""

    of: Literal["rollback"]
    request: RollbackRequest

    @model_validator(mode="after")
    def _only_shown(self) -> Self:
        if "dry_run" in self.request.model_fields_set and not self.request.dry_run:
            raise ValueError("request: dryRun: this only plans; apply the plan that is shown")
        return self


def _asked(operation: Operation[..., Any]) -> type[RequestPart]:
    """Return the question that asks an operation; its fields are the parts of the request."""
    fields: dict[str, Any] = {
        name: (hint, ... if default is Parameter.empty else default)
        for name, (hint, default) in operation.parameters.items()
    }
    fields["of"] = (Literal[operation.name], ...)
    return create_model(operation.name, __base__=RequestPart, **fields)


_READ: dict[str, Operation[..., Any]] = {
    item.name: item
    for item in (plan, list_plans, show_plan, list_rollouts, list_optimizations, show_waiting_plan)
}
"""The operations whose answer the page gets as it is; none of them writes."""

QUESTIONS: dict[str, type[RequestPart]] = {
    **{name: _asked(item) for name, item in _READ.items()},
    "fleet": AskedFleet,
    "shownPlan": AskedShownPlan,
    "explanation": AskedExplanation,
    "rollback": AskedRollback,
}

if TYPE_CHECKING:
    ViewQuestion = RequestPart
else:
    ViewQuestion = Annotated[
        Union[tuple(QUESTIONS.values())],  # noqa: UP007 - made of a tuple
        Field(discriminator="of"),
        WithJsonSchema({"type": "object"}),
    ]


class ViewAnswer(ResultPart):
    """`answer` is what REST answers to the same question."""

    answer: Annotated[
        dict[str, Any] | None, Field(description="null: the fleet is as the page has it.")
    ]
    tag: Annotated[str, Field(description="Of a fleet: names this state of it.")] = ""
    read_only: Annotated[bool, Field(description="Whether no tool of this server writes.")]


class ViewTools:
    """Answers the page that a host shows in a chat; writes nothing."""

    def __init__(self, caller: CallerRights, plans: PlanTools, *, read_only: bool) -> None:
        self._caller = caller
        self._plans = plans
        self._read_only = read_only

    async def page_data(self, question: ViewQuestion) -> ToolResult:
        """For the page in a chat only: its data. An assistant has better tools."""
        tag = ""
        match question:
            case AskedFleet():
                answer, tag = await self._fleet(question)
            case AskedShownPlan():
                answer = _applicable_plan(self._plans.shown_plan(question.digest))
            case AskedExplanation():
                made = granted(dry_request(question.request))
                # Not kept as shown: the page shows an explanation of it, and no moves.
                answer = result(await asked(make_plan(self._caller(), made)), None)
            case AskedRollback():
                asked_for = question.request.model_copy(update={"dry_run": True})
                answer = await asked(rollback(self._caller(), asked_for))
            case _:
                operation = _READ[type(question).__name__]
                parts = {name: getattr(question, name) for name in operation.parameters}
                answer = await asked(operation(self._caller(), **parts))
        said = answer.model_dump(mode="json") if isinstance(answer, ResultPart) else answer
        view = ViewAnswer(answer=said, tag=tag, read_only=self._read_only)
        return ToolResult(content=SAID, structured_content=view)

    async def _fleet(self, question: AskedFleet) -> tuple[ResultPart | None, str]:
        found = await asked(fleet(self._caller(), question.namespace))
        identity = found.model_dump_json(exclude={"observed_at"})
        tag = sha256(identity.encode()).hexdigest()[:32]
        return (None if tag == question.tag else found), tag


def _applicable_plan(plan: Plan) -> PlanResult:
    return PlanResult(**dict(result(plan, None)), request=recorded_request(plan))
