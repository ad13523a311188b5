"""What every tool needs: the caller's rights, refusals as tool errors, and callers who leave."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Protocol, TypeVar

from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_context, get_http_request
from fastmcp.tools.base import ToolResult
from starlette.types import Message, Receive

from dsf.api.untrusted_text import MESSAGE_LIMIT, quoted
from dsf.kube.access_reviews import UserInfo
from dsf.kube.errors import KubeError
from mcp_server.results import tool_result
from mcp_server.results.tool_result import (
    ANSWER_CHARACTERS,
    LEAST_CHARACTERS,
    PAGE_CHARACTERS,
    Part,
    bounded,
    fitted,
    json_characters,
    next_page,
    structured,
)
from optimizer.api.request_guards import user_of
from optimizer.domain.issue import Issue
from optimizer.follow.record.recorded_plan import RecordedPlan
from optimizer.operations import recorded_plans as plans
from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
from optimizer.operations.access.caller import Caller, CallerGone, caller_of, progress_of
from optimizer.operations.access.rights import lacking_own_right
from optimizer.operations.rollouts import list_rollouts
from optimizer.wire.base import ResultPart
from optimizer.wire.request_problem import CALLER_GONE, RequestProblem
from optimizer.wire.rollout import RolloutStatus

logger = logging.getLogger(__name__)

T = TypeVar("T")


class CallerRights(Protocol):
    """Knows the user of the current call."""

    def __call__(self, client: Caller | None = None) -> AuthorizedOptimizer:
        """Return the optimizer with the rights of the user; `client` may leave."""


NEXT_TOOL = {
    "UnknownName": "fleet_overview lists names",
    "AmbiguousName": "say more of the name",
    "NoObjective": "list_scores describes the scores",
    "Busy": "call again later",
    "StalePlan": "call plan_placement again",
    "NoRollout": "follow_rollout shows what was placed",
    "RollbackRefused": "plan_placement makes a new plan",
    "UnusableRecord": "plan_history lists other plans, plan_placement makes a new one",
    "NoEarlierPlan": "plan_placement makes a new plan",
    "UnknownPlan": "plan_history without plan lists recorded ones",
    "NotInForce": "plan_placement makes a new plan, rollback goes back to a recorded one",
    "NoPlacementOptimization": "kept_placements lists them",
    "ContradictoryConstraints": "fleet_overview lists what is remembered",
    "UnknownConstraint": "fleet_overview lists what is remembered",
    "NotAwaitingApproval": "kept_placements says what waits",
    "StaleApproval": "call kept_placements again, and show the plan that waits",
    "ResetChanged": "call reset_placements without a digest, and show what goes",
}
"""What to call next after a refusal, by its reason."""


async def asked(work: Coroutine[Any, Any, T | RequestProblem]) -> T:
    """Return the result of work on the hub; ToolError if it is refused or the hub can't be read.

    The work is cancelled if the caller leaves.
    """
    return granted(await answered(work))


async def answered(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work on the hub, also a refusal; ToolError if the hub can't be read."""
    with hub_errors():
        async with caller_of(http_messages()) as client:
            return await client.wait(work)


async def with_progress(
    work: Coroutine[Any, Any, T], caller: AuthorizedOptimizer, what: str = "Planning"
) -> T:
    """Return the result of work that takes seconds; report and log each second how far it is."""
    task, context, started = asyncio.ensure_future(work), get_context(), monotonic()
    try:
        async for item in progress_of(task, caller.caller, what):
            await context.report_progress(item.seconds, message=item.message)
            await context.debug(item.message)
        done = await task
        await context.info(f"{what}: done after {monotonic() - started:.1f} s")
        return done
    finally:
        task.cancel()
        await asyncio.wait({task})


async def written(
    caller: CallerRights, write: Callable[[AuthorizedOptimizer], Awaitable[T | RequestProblem]]
) -> T:
    """Return the result of a write; ToolError as of `asked`.

    If the caller leaves before the first change, nothing is written; after it, all is.
    """
    with hub_errors():
        async with caller_of(http_messages()) as client:
            return granted(await write(caller(client)))


async def recorded_plans(caller: AuthorizedOptimizer, namespace: str) -> tuple[RecordedPlan, ...]:
    """Return the recorded plans of a namespace; none if the caller may not read them."""
    found = await plans.recorded_plans(caller, namespace)
    return () if isinstance(found, Issue | RequestProblem) else found


async def recorded_rollouts(
    caller: AuthorizedOptimizer, namespace: str
) -> tuple[RolloutStatus, ...]:
    """Return the rollouts of a namespace; none if the caller may not read them."""
    found = await list_rollouts(caller, namespace)
    return () if isinstance(found, RequestProblem) else found.items


def granted(found: T | RequestProblem) -> T:
    """Return a value; raise ToolError if it is a problem, with the tool to call next."""
    if isinstance(found, RequestProblem):
        hint = NEXT_TOOL.get(found.reason)
        raise refused(tool_result.refusal(found) + (f"\nNext: {hint}." if hint else ""))
    return found


def answer(
    text: str,
    view: ResultPart,
    *,
    is_error: bool = False,
    brief: bool = False,
    most: int = ANSWER_CHARACTERS,
) -> ToolResult:
    """Return the result of a tool: a text, and the same as structured content as far as it fits.

    `brief`: fields at their default are left out, because an assistant pays for each word.
    `most`: characters of both.
    """
    content = fitted(structured(view, brief=brief), text, most)
    return ToolResult(content=text, structured_content=content, is_error=is_error)


def paged(text: Callable[[Part], str], view: Part, most: int, offset: int) -> ToolResult:
    """Return a page of a view: `most` items of each list, or as many as an answer has room for."""
    for shown in range(most, 0, -1):
        page = bounded(view, shown, offset)
        if offset:
            refuse_an_empty(page)
        told = text(page) + next_page(page, offset + shown)
        if len(told) <= PAGE_CHARACTERS - LEAST_CHARACTERS:
            found = answer(told, page, brief=True, most=PAGE_CHARACTERS)
            if len(told) + json_characters(found.structured_content) <= PAGE_CHARACTERS:
                return found
    return answer(told, page, brief=True, most=PAGE_CHARACTERS)


def refuse_an_empty(page: ResultPart) -> None:
    """Raise ToolError if a page after the first has no item."""
    if not any(value for _, value in page if isinstance(value, tuple)):
        raise refused("offset: there is nothing left to list from there")


def refused(why: str) -> ToolError:
    """Return the error that tells the caller why nothing was done."""
    return ToolError(why, log_level=logging.INFO)


@contextmanager
def hub_errors() -> Iterator[None]:
    """Turn errors of the hub, and callers who left, into tool errors."""
    try:
        yield
    except CallerGone as error:
        raise refused(tool_result.refusal(CALLER_GONE)) from error
    except KubeError as error:
        lacking = lacking_own_right(error)
        if lacking is not None:
            raise refused(tool_result.refusal(lacking)) from error
        message = quoted(str(error), MESSAGE_LIMIT)
        logger.warning("can't read the hub", extra={"error": str(error)})
        raise refused(f"can't read the hub: {message}; nothing was written") from error


def user() -> UserInfo | None:
    """Return the authenticated user; None on standard input and output, or if nobody is asked."""
    try:
        return user_of(get_http_request())
    except RuntimeError:
        return None


def http_messages() -> Receive:
    """Return how to receive the messages of the HTTP request that a tool runs for.

    The last one is a disconnect. On standard input and output none ever comes: the client ends the
    process.
    """
    try:
        return get_http_request().receive
    except RuntimeError:
        return _no_message


async def _no_message() -> Message:
    message: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
    return await message
