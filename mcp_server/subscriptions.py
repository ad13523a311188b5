"""Subscriptions to resources: tells a client when one that it named has changed.

The answer to `subscriptions/listen` is a stream, so this works without sessions. A resource is read
again every few seconds with the rights of the subscriber, and compared with what it was.

Source: MCP 2026-07-28, subscriptions/listen; SEP-2575.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import FastMCPError, NotFoundError
from fastmcp.server.dependencies import bind_request_context
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_REQUEST,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from mcp_server.tools.hub_calls import CallerRights
from optimizer.api.stream_limit import SUBSCRIPTIONS, StreamPlaces

CHECK_SECONDS = 10.0
"""Seconds between two readings: scores change every half minute or so."""

STREAM_SECONDS = 900.0
"""How long a stream lasts. The client then subscribes again, with a token that is still valid."""

MOST_RESOURCES = 4
"""Resources of one stream that are honored, the first ones. Each is a reading of the fleet."""


class ResourceSubscriptions:
    """Serves streams of changes of the resources that a server has."""

    def __init__(self, server: FastMCP, caller: CallerRights) -> None:
        self._server = server
        self._caller = caller
        self._streams = StreamPlaces(SUBSCRIPTIONS)

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Tell of changes until the client leaves, or for STREAM_SECONDS.

        Only resources are honored that the caller can read. Raises MCPError if there are too many
        streams.
        """
        with bind_request_context(context):
            owner = self._caller().owner
            if refused := self._streams.refusal(owner):
                raise MCPError(INVALID_REQUEST, f"too many subscriptions: {refused}")
            self._streams.take(owner)
            try:
                return await self._serve(context, params)
            finally:
                self._streams.free(owner)

    async def _serve(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        named = (params.notifications.resource_subscriptions or [])[:MOST_RESOURCES]
        known = {uri: found for uri in named if (found := await self._content(uri))}
        honored = SubscriptionFilter(resource_subscriptions=list(known))
        bus = InMemorySubscriptionBus()
        stream = ListenHandler(bus)
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._tell(bus, stream, known))
            try:
                return await stream(context, params.model_copy(update={"notifications": honored}))
            finally:
                telling.cancel()

    async def _tell(
        self, bus: InMemorySubscriptionBus, stream: ListenHandler, known: Mapping[str, bytes]
    ) -> None:
        """Publish each resource whenever it differs from what it was; then close the stream."""
        before = dict(known)
        try:
            async with asyncio.timeout(STREAM_SECONDS):
                while True:
                    await asyncio.sleep(CHECK_SECONDS)
                    for uri, content in before.items():
                        now = await self._content(uri)
                        if now != content:
                            before[uri] = now
                            await bus.publish(ResourceUpdated(uri))
        except TimeoutError:
            stream.close()

    async def _content(self, uri: str) -> bytes:
        """Return a digest of what the caller reads; empty if it can't be read."""
        try:
            result = await self._server.read_resource(uri)
        except (FastMCPError, NotFoundError):
            return b""
        digest = hashlib.sha256()
        for part in result.contents:
            digest.update(
                part.content if isinstance(part.content, bytes) else part.content.encode()
            )
        return digest.digest()
