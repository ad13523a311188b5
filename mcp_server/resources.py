"""Resources that a client attaches to a conversation: the fleet, a score, a plan, the contract."""

import json
from typing import Annotated

from fastmcp.exceptions import ResourceError, ToolError
from fastmcp.server.providers import LocalProvider
from pydantic import Field

from dsf.api.scoring.openapi import openapi
from dsf.api.untrusted_text import UntrustedName
from mcp_server.results.plan_results import plan_view
from mcp_server.results.tool_result import cleaned_texts
from mcp_server.tools.fleet_tools import OVERVIEW_ITEMS
from mcp_server.tools.hub_calls import CallerRights, asked
from optimizer.operations.fleet import fleet_facts
from optimizer.operations.scores import scores
from optimizer.overview.fleet_overview import fleet_overview
from optimizer.wire.base import ResultPart
from optimizer.wire.request import Namespace
from optimizer.wire.result import ScoreList

JSON = "application/json"

Segment = Annotated[str, Field(max_length=253)]


class FleetResources:
    """Reads resources with the rights of their caller."""

    def __init__(self, caller: CallerRights) -> None:
        self._caller = caller

    async def default_fleet(self) -> str:
        """Overview of the fleet, with the workloads of namespace default."""
        return await self.fleet("default")

    async def fleet(self, namespace: Namespace) -> str:
        """Overview of the fleet, with the workloads of a namespace."""
        try:
            facts = await asked(fleet_facts(self._caller(), namespace))
        except ToolError as error:
            raise ResourceError(str(error)) from error
        return _json(fleet_overview(facts, shown=OVERVIEW_ITEMS))

    async def scores_of(self, cluster: Segment, name: Segment) -> str:
        """The entries of one AddOnPlacementScore of one managed cluster."""
        try:
            found = await asked(scores(self._caller(), cluster, name))
        except ToolError as error:
            raise ResourceError(str(error)) from error
        if not found:
            raise ResourceError(
                f"cluster {UntrustedName(cluster)} has no score {UntrustedName(name)};"
                " list_scores lists names"
            )
        return _json(ScoreList(items=found))

    async def plan(self, digest: Segment) -> str:
        """A plan that was shown to you, by its digest, with all its objects."""
        caller = self._caller()
        plan = caller.shown.get(caller.owner, digest)
        if plan is None:
            raise ResourceError(
                f"no plan with digest {UntrustedName(digest)} was shown to you of late; call"
                " plan_placement"
            )
        return _json(plan_view(plan, applicable=True, objects=True))


def scoring_api() -> str:
    """The contract of scoring APIs as OpenAPI 3.1."""
    return json.dumps(openapi(), indent=1)


def add_resources(provider: LocalProvider, caller: CallerRights) -> None:
    """Add the resources and their templates to a server."""
    own = FleetResources(caller)
    for uri, read, title in (
        ("fleet://default", own.default_fleet, "Fleet"),
        ("fleet://{namespace}", own.fleet, "Fleet with the workloads of a namespace"),
        ("scores://{cluster}/{name}", own.scores_of, "Score of a cluster"),
        ("plan://{digest}", own.plan, "Plan"),
        ("docs://scoring-api", scoring_api, "Scoring API"),
    ):
        provider.resource(uri, title=title, mime_type=JSON)(read)


def _json(part: ResultPart) -> str:
    return cleaned_texts(part).model_dump_json()
