"""Fills a server with tools, resources and prompts on the first request that needs one.

What they import takes longer than the rest of a start. A client that starts this program on its
standard input and output waits for `initialize` alone, which needs none of it.
"""

from collections.abc import Callable, Sequence

from fastmcp.prompts.base import Prompt
from fastmcp.resources.base import Resource
from fastmcp.resources.template import ResourceTemplate
from fastmcp.server.providers import LocalProvider
from fastmcp.tools.base import Tool
from fastmcp.utilities.versions import VersionSpec


class LateProvider(LocalProvider):
    """Has what `fill` adds to it, which is called once."""

    def __init__(self, fill: Callable[[LocalProvider], None]) -> None:
        super().__init__(on_duplicate="error")
        self._fill = fill
        self._filled = False

    async def _list_tools(self) -> Sequence[Tool]:
        self._fill_once()
        return await super()._list_tools()

    async def _get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        self._fill_once()
        return await super()._get_tool(name, version)

    async def _list_resources(self) -> Sequence[Resource]:
        self._fill_once()
        return await super()._list_resources()

    async def _get_resource(self, uri: str, version: VersionSpec | None = None) -> Resource | None:
        self._fill_once()
        return await super()._get_resource(uri, version)

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        self._fill_once()
        return await super()._list_resource_templates()

    async def _get_resource_template(
        self, uri: str, version: VersionSpec | None = None
    ) -> ResourceTemplate | None:
        self._fill_once()
        return await super()._get_resource_template(uri, version)

    async def _list_prompts(self) -> Sequence[Prompt]:
        self._fill_once()
        return await super()._list_prompts()

    async def _get_prompt(self, name: str, version: VersionSpec | None = None) -> Prompt | None:
        self._fill_once()
        return await super()._get_prompt(name, version)

    def _fill_once(self) -> None:
        if not self._filled:
            self._filled = True
            self._fill(self)
