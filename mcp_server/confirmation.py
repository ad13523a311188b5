"""Elicitation: asks the user of the client for confirmation, in both versions of the protocol.

Up to version 2025-11-25 the server sends a request while the tool waits. From 2026-07-28 on the
tool returns its question, and the client calls the tool again with the answer. The tool then runs
from the start, so it may write nothing before `ask` has returned a Confirmation.

Source: MCP 2025-11-25 and 2026-07-28, elicitation; SEP-2322 (multi-round-trip requests).
"""

from enum import Enum
from typing import Literal

from fastmcp import Context
from mcp.shared.exceptions import MCPError
from mcp_types import (
    ClientCapabilities,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

WhenClientCannotAsk = Literal["deny", "digest"]
"""Whether a client that can't ask its user may write: never, or by naming the plan's digest.

Such a client is expected to ask its user before it calls a tool that is annotated as destructive.
"""

_KEY = "confirm"
_SCHEMA = {
    "type": "object",
    "properties": {_KEY: {"type": "boolean", "title": "Yes, do it", "default": False}},
    "required": [_KEY],
}


class Confirmation(Enum):
    """The user's answer, or that the client can't ask. A missing answer is NO."""

    YES = "yes"
    NO = "no"
    CANNOT_ASK = "the client can't ask"


async def ask(context: Context, question: str, *, about: str) -> Confirmation | InputRequiredResult:
    """Ask the user to confirm an action.

    `about` names the action: an answer to a question about another action does not count. Only an
    explicit yes is YES; an error while asking and an answer of another form are NO. Where this
    returns an InputRequiredResult, the tool returns that result unchanged.
    """
    session = context.session
    if not _can_show_a_form(session.client_capabilities):
        return Confirmation.CANNOT_ASK
    if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return _ask_by_result(context, question, about)
    if not session.can_send_request:
        return Confirmation.CANNOT_ASK
    try:
        reply = await session.elicit_form(question, _SCHEMA, related_request_id=context.request_id)
    except (MCPError, ValidationError):
        return Confirmation.NO
    return _answer(reply)


def _ask_by_result(
    context: Context, question: str, about: str
) -> Confirmation | InputRequiredResult:
    if context.request_state == about:
        reply = (context.input_responses or {}).get(_KEY)
        return _answer(reply) if isinstance(reply, ElicitResult) else Confirmation.NO
    form = ElicitRequestFormParams(message=question, requested_schema=_SCHEMA)
    return InputRequiredResult(
        request_state=about, input_requests={_KEY: ElicitRequest(params=form)}
    )


def _can_show_a_form(capabilities: ClientCapabilities | None) -> bool:
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _answer(reply: ElicitResult) -> Confirmation:
    agreed = reply.action == "accept" and (reply.content or {}).get(_KEY) is True
    return Confirmation.YES if agreed else Confirmation.NO
