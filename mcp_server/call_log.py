"""Says in a client's log what was refused, for the person who reads it there.

MCP 2026-07-28 deprecates log messages (SEP-2577): a request gets them only if its `_meta` asks for
a level. Up to 2025-11-25 a client gets all, or those of the level that it set.
"""

import warnings

from fastmcp.exceptions import ToolError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import ToolResult
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import CallToolRequestParams

from dsf.api.untrusted_text import UntrustedName

warnings.filterwarnings("ignore", "The logging capability", MCPDeprecationWarning)


class RefusalLog(Middleware):
    """Sends a warning for each call that is refused: its tool, and why in a line."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Call the tool; log its refusal, and raise it."""
        try:
            return await call_next(context)
        except ToolError as error:
            if context.fastmcp_context:
                name, why = UntrustedName(context.message.name), str(error).partition("\n")[0]
                await context.fastmcp_context.warning(f"{name}: {why}")
            raise
