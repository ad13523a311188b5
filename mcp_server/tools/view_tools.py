"""The tool of the view in a chat: what the page reads by REST in a browser, it reads by this."""

import asyncio
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from fastmcp.tools.base import ToolResult
from pydantic import Field, WithJsonSchema, model_validator

from mcp_server.tools.hub_calls import CallerRights, asked, granted
from mcp_server.tools.plan_tools import PlanTools
from optimizer.access.shown_plans import ShownPlans
from optimizer.domain.issue import Issue
from optimizer.overview.plan_request import PlanRequest, PlanResult
from optimizer.plan.plan import Plan, result
from optimizer.record.plan_views import plan_record, plan_summary, rollback_result, unknown_digest
from optimizer.record.recorded_plan import RecordedPlan, recorded_request
from optimizer.wire.base import RequestPart, ResultPart
from optimizer.wire.plan_record import PlanList
from optimizer.wire.request import Namespace, RollbackRequest
from optimizer.wire.request_problem import dry_request

SAID = "The data of the page that this chat shows."
"""The text of a result: whoever reads it is no page."""

Digest = Annotated[str, Field(max_length=128)]


class AskedFleet(RequestPart):
    """The fleet as a matrix; None if its tag is still the one that the page has."""

    of: Literal["fleet"]
    namespace: Namespace = "default"
    tag: Annotated[str, Field(max_length=64)] = ""


class AskedWish(RequestPart):
    """A plan from few words."""

    of: Literal["plan"]
    wish: PlanRequest


class AskedShownPlan(RequestPart):
    """The plan that a tool has shown in the chat."""

    of: Literal["shownPlan"]
    digest: Digest


class AskedExplanation(RequestPart):
    """The plan of a complete request, which may ask for explanations; it can't be applied."""

    of: Literal["explanation"]
    request: dict[str, Any]


class AskedPlans(RequestPart):
    """The recorded plans."""

    of: Literal["plans"]
    namespace: Namespace = "default"


class AskedRecord(RequestPart):
    """A recorded plan."""

    of: Literal["record"]
    namespace: Namespace = "default"
    digest: Digest


class AskedRollback(RequestPart):
    """The plan that restores a recorded one."""

    of: Literal["rollback"]
    wish: RollbackRequest

    @model_validator(mode="after")
    def _only_shown(self) -> Self:
        if "dry_run" in self.wish.model_fields_set and not self.wish.dry_run:
            raise ValueError("wish: dryRun: this only plans; apply the plan that is shown")
        return self


class AskedRollouts(RequestPart):
    """The rollouts."""

    of: Literal["rollouts"]
    namespace: Namespace = "default"


ViewQuestion = Annotated[
    AskedFleet
    | AskedWish
    | AskedShownPlan
    | AskedExplanation
    | AskedPlans
    | AskedRecord
    | AskedRollback
    | AskedRollouts,
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

    def __init__(
        self, caller: CallerRights, shown: ShownPlans, plans: PlanTools, *, read_only: bool
    ) -> None:
        self._caller = caller
        self._shown = shown
        self._plans = plans
        self._read_only = read_only

    async def page_data(self, question: ViewQuestion) -> ToolResult:
        """For the page in a chat only: its data. An assistant has better tools."""
        tag = ""
        match question:
            case AskedFleet():
                answer, tag = await self._fleet(question)
            case AskedWish():
                answer = await self._planned(question.wish)
            case AskedShownPlan():
                answer = _applicable_plan(self._plans.shown_plan(question.digest))
            case AskedExplanation():
                made = granted(dry_request(question.request))
                # Not kept as shown: the page shows an explanation of it, and no moves.
                answer = result(await asked(self._caller().plan(made)), None)
            case AskedPlans():
                found = await self._records(question.namespace)
                issues = (found,) if isinstance(found, Issue) else ()
                items = () if isinstance(found, Issue) else tuple(map(plan_summary, found))
                answer = PlanList(namespace=question.namespace, items=items, issues=issues)
            case AskedRecord():
                answer = await self._record(question)
            case AskedRollback():
                plan = await asked(self._caller().plan_rollback(question.wish))
                self._shown.add(self._caller().owner, plan)
                answer = rollback_result(plan, None)
            case AskedRollouts():
                answer = await asked(self._caller().rollouts(question.namespace))
        said = answer.model_dump(mode="json") if isinstance(answer, ResultPart) else answer
        view = ViewAnswer(answer=said, tag=tag, read_only=self._read_only)
        return ToolResult(content=SAID, structured_content=view)

    async def _fleet(self, question: AskedFleet) -> tuple[ResultPart | None, str]:
        found = await asked(self._caller().fleet_matrix(question.namespace))
        identity = found.model_dump_json(exclude={"observed_at"})
        tag = sha256(identity.encode()).hexdigest()[:32]
        return (None if tag == question.tag else found), tag

    async def _planned(self, wish: PlanRequest) -> PlanResult:
        caller = self._caller()
        question = await asked(caller.question(wish.wish))
        made = await asked(caller.plan(question.request, pretended=question.pretended))
        if question.pretended is None:
            self._shown.add(caller.owner, made)
        return PlanResult(
            **dict(result(made, None)),
            request=None if question.pretended else recorded_request(made),
            objective_from=question.objective,
        )

    async def _records(self, namespace: str) -> tuple[RecordedPlan, ...] | Issue:
        found: tuple[RecordedPlan, ...] | Issue = await asked(self._caller().plans(namespace))
        return found

    async def _record(self, question: AskedRecord) -> ResultPart:
        found = await self._records(question.namespace)
        records = () if isinstance(found, Issue) else found
        named = (item for item in records if item.spec.digest == question.digest)
        record = max(named, key=lambda item: item.spec.revision, default=None)
        if record is None:
            return granted(unknown_digest(question.namespace))
        return await asyncio.to_thread(plan_record, record)


def _applicable_plan(plan: Plan) -> PlanResult:
    return PlanResult(**dict(result(plan, None)), request=recorded_request(plan))
