"""Wrong arguments in sentences: which one, why, and which arguments there are."""

import logging

from fastmcp.exceptions import ToolError, ValidationError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import ToolResult
from mcp_types import CallToolRequestParams
from pydantic import ValidationError as PydanticValidationError

from mcp_server.result_text import wrong_arguments

_MOST_ARGUMENTS = 20


class ArgumentErrors(Middleware):
    """Says what FastMCP's validation found without its internals and without the input."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Call the tool; a ToolError where its arguments are wrong.

        What is found wrong takes a hundred times the memory of the arguments, so that they are
        counted first.
        """
        if len(context.message.arguments or {}) > _MOST_ARGUMENTS:
            raise ToolError(
                f"there are more than {_MOST_ARGUMENTS} arguments", log_level=logging.INFO
            )
        try:
            return await call_next(context)
        except ValidationError as error:
            if not isinstance(error.__cause__, PydanticValidationError):
                raise
            wrong = wrong_arguments(error.__cause__)
            known = ", ".join(await _arguments_of(context))
            raise ToolError(f"{wrong}\nthere is: {known}", log_level=logging.INFO) from error


async def _arguments_of(context: MiddlewareContext[CallToolRequestParams]) -> list[str]:
    server = context.fastmcp_context.fastmcp if context.fastmcp_context else None
    tool = await server.get_tool(context.message.name) if server else None
    return list(tool.parameters.get("properties", {})) if tool else []
