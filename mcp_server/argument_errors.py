"""Turns validation errors into sentences: which argument is wrong, why, and which ones exist."""

import logging

from fastmcp.exceptions import ToolError, ValidationError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import ToolResult
from mcp_types import CallToolRequestParams
from pydantic import ValidationError as PydanticValidationError

_MOST_ARGUMENTS = 20
"""Arguments of one call: more than any tool has."""


class ArgumentErrors(Middleware):
    """Replaces FastMCP's validation errors, which quote the input, by sentences that do not."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Call the tool; raise ToolError if its arguments are wrong.

        The validation errors take a hundred times the memory of the arguments, so a call with too
        many arguments is refused before validation.
        """
        if len(context.message.arguments or {}) > _MOST_ARGUMENTS:
            raise ToolError(
                f"a call has at most {_MOST_ARGUMENTS} arguments", log_level=logging.INFO
            )
        try:
            return await call_next(context)
        except ValidationError as error:
            if not isinstance(error.__cause__, PydanticValidationError):
                raise
            from mcp_server.results.result_text import wrong_arguments  # noqa: PLC0415

            wrong = wrong_arguments(error.__cause__)
            known = ", ".join(await _arguments_of(context))
            raise ToolError(
                f"{wrong}\narguments of this tool: {known}", log_level=logging.INFO
            ) from error


async def _arguments_of(context: MiddlewareContext[CallToolRequestParams]) -> list[str]:
    server = context.fastmcp_context.fastmcp if context.fastmcp_context else None
    tool = await server.get_tool(context.message.name) if server else None
    return list(tool.parameters.get("properties", {})) if tool else []
