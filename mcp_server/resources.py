"""Resources that a client attaches to a conversation: the fleet, a score, a plan, the contract.

A client that subscribes is told when one that it named has changed. The answer to
`subscriptions/listen` is a stream, so this works without sessions. A resource is read again after a
change of the hub with the rights of the subscriber, and compared with what it was.

Source: MCP 2026-07-28, subscriptions/listen; SEP-2575.
"""

import asyncio
import hashlib
import json
from collections.abc import Coroutine, Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from fastmcp import FastMCP
from fastmcp.exceptions import FastMCPError, NotFoundError, ResourceError, ToolError
from fastmcp.server.dependencies import bind_request_context
from fastmcp.server.providers import LocalProvider
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_REQUEST,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from pydantic import Field

from dsf.api.scoring.openapi import openapi
from dsf.api.untrusted_text import UntrustedName
from mcp_server.results.fleet_results import PAGES
from mcp_server.results.plan_results import plan_view
from mcp_server.results.tool_result import bounded, cleaned_texts
from mcp_server.tools.fleet_tools import OVERVIEW_ITEMS
from mcp_server.tools.hub_calls import CallerRights, T, asked
from optimizer.api.caller_limits import SUBSCRIPTIONS, StreamPlaces
from optimizer.follow.overview.fleet_overview import fleet_overview
from optimizer.operations.fleet import fleet_facts
from optimizer.operations.recorded_plans import list_plans, recorded_in, show_plan
from optimizer.operations.scores import scores
from optimizer.wire.base import ResultPart
from optimizer.wire.request import Namespace
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import ScoreList

JSON = "application/json"

Segment = Annotated[str, Field(max_length=253)]


class FleetResources:
    """Reads resources with the rights of their caller."""

    def __init__(self, caller: CallerRights) -> None:
        self._caller = caller

    async def default_fleet(self) -> str:
        """Overview of the fleet, with the workloads of namespace default; ?offset=8 goes on."""
        return await self.fleet("default")

    async def fleet(self, namespace: Namespace, offset: int = 0) -> str:
        """Overview of the fleet, with the workloads of a namespace; ?offset=8 has the next page."""
        facts = await _asked(fleet_facts(self._caller(), namespace))
        return _json(bounded(fleet_overview(facts), OVERVIEW_ITEMS, max(0, offset)))

    async def scores_of(self, cluster: Segment, name: Segment) -> str:
        """The entries of one AddOnPlacementScore of one managed cluster."""
        found = await _asked(scores(self._caller(), cluster, name))
        if not found:
            raise ResourceError(
                f"cluster {UntrustedName(cluster)} has no score {UntrustedName(name)};"
                " list_scores lists names"
            )
        return _json(ScoreList(items=found))

    async def plan(self, digest: Segment) -> str:
        """A plan that was shown to you, or that is recorded, by its digest, with its objects."""
        caller = self._caller()
        plan = caller.shown.get(caller.owner, digest)
        if plan is not None:
            return _json(plan_view(plan, applicable=True, objects=True, whole=True))
        where = await _asked(recorded_in(caller, digest))
        if where is not None:
            return _json(await _asked(show_plan(caller, digest, where)))
        raise ResourceError(
            f"no plan with digest {UntrustedName(digest)} was shown to you of late, or is recorded;"
            " plan_history lists recorded ones"
        )

    async def plans(self, namespace: Namespace) -> str:
        """The recorded plans of a namespace, the newest of each optimization first."""
        return _json(await _asked(list_plans(self._caller(), namespace)))


async def _asked(work: Coroutine[Any, Any, T | RequestProblem]) -> T:
    try:
        return await asked(work)
    except ToolError as error:
        raise ResourceError(str(error)) from error


def scoring_api() -> str:
    """The contract of scoring APIs as OpenAPI 3.1."""
    return json.dumps(openapi(), indent=1)


def documentation(page: str) -> str:
    """Return a page of the documentation: that of the package, or of the checkout."""
    packaged = files("mcp_server").joinpath("docs", f"{page}.md")
    checkout = Path(__file__).parents[1] / "docs/how-to" / f"{page}.md"
    try:
        return (packaged if packaged.is_file() else checkout).read_text(encoding="utf-8")
    except OSError as error:
        raise ResourceError(f"page {page} is not in this installation") from error


def add_resources(provider: LocalProvider, caller: CallerRights) -> None:
    """Add the resources and their templates to a server."""
    own = FleetResources(caller)
    for uri, read, title in (
        ("fleet://default", own.default_fleet, "Fleet"),
        ("fleet://{namespace}{?offset}", own.fleet, "Fleet with the workloads of a namespace"),
        ("scores://{cluster}/{name}", own.scores_of, "Score of a cluster"),
        ("plan://{digest}", own.plan, "Plan"),
        ("plans://{namespace}", own.plans, "Recorded plans of a namespace"),
        ("docs://scoring-api", scoring_api, "Scoring API"),
    ):
        provider.resource(uri, title=title, mime_type=JSON)(read)
    for page in dict.fromkeys(PAGES.values()):
        title = page.replace("-", " ").capitalize()
        provider.resource(f"docs://{page}", name=page, title=title, mime_type="text/markdown")(
            partial(documentation, page)
        )


def _json(part: ResultPart) -> str:
    return cleaned_texts(part).model_dump_json()


CHECK_SECONDS = 10.0
"""Least seconds between two readings: scores change every half minute or so."""

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
        before, hub, seen = dict(known), self._caller().service.hub, -1
        try:
            async with asyncio.timeout(STREAM_SECONDS):
                while True:
                    await asyncio.gather(asyncio.sleep(CHECK_SECONDS), hub.change_after(seen))
                    seen = hub.changes()
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
