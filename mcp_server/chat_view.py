"""The view in a chat: the optimizer's page as an MCP App, and which clients are told of it.

Source: SEP-1865, the extension io.modelcontextprotocol/ui (2026-01-26).
"""

from collections.abc import Sequence
from importlib.resources.abc import Traversable
from typing import Any

from fastmcp.apps.config import UI_EXTENSION_ID, is_model_visible
from fastmcp.exceptions import ResourceError
from fastmcp.server.context import Context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.providers import LocalProvider
from fastmcp.tools.base import Tool
from fastmcp.utilities.mime import UI_MIME_TYPE
from mcp_types import ListToolsRequest

from optimizer.page import PAGE

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


class ChatViewNegotiation(Middleware):
    """Lists the view's tools and links for clients that can show a view, and for no others.

    Over stateless HTTP, a client up to MCP 2025-11-25 tells its capabilities in another request
    than the list's. It gets the whole list; the extension has such hosts leave out what is not for
    the model.
    """

    async def on_list_tools(
        self,
        context: MiddlewareContext[ListToolsRequest],
        call_next: CallNext[ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        """Return the tools as the client can use them."""
        tools = await call_next(context)
        if _may_show_views(context.fastmcp_context):
            return tools
        return [_without_view(tool) for tool in tools if is_model_visible(tool)]


def _may_show_views(context: Context | None) -> bool:
    if context is None or context.request_context is None:
        return False
    if context.session.client_capabilities is None:
        return True
    return context.client_supports_extension(UI_EXTENSION_ID)


def _without_view(tool: Tool) -> Tool:
    if not tool.meta or "ui" not in tool.meta:
        return tool
    kept: dict[str, Any] = {name: value for name, value in tool.meta.items() if name != "ui"}
    return tool.model_copy(update={"meta": kept or None})
