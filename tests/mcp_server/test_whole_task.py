"""A whole task over real sockets and standard input and output: see, plan, apply, go back."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport

from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http.server import kubeconfig
from dsf.kube.embedded.http.server import serving as serving_hub
from dsf.kube.kinds import PLACEMENT_BINDING
from tests.mcp_server.service import scenario_hub, serving

SLOW = pytest.mark.exhaustive
"""A process costs seconds of imports."""


async def yes(*_: object) -> ElicitResult[Any]:
    return ElicitResult(action="accept", content={"confirm": True})


@asynccontextmanager
async def over_socket(era: Any, _: Path) -> AsyncIterator[tuple[Client[Any], EmbeddedHub]]:
    async with (
        serving(read_only=False) as service,
        Client(service.mcp, mode=era, elicitation_handler=yes) as client,
    ):
        yield client, service.hub


@asynccontextmanager
async def over_stdio(era: Any, folder: Path) -> AsyncIterator[tuple[Client[Any], EmbeddedHub]]:
    hub = await scenario_hub()
    async with serving_hub(hub) as url:
        config = folder / "config"
        config.write_text(yaml.safe_dump(kubeconfig(url)))
        arguments = ["-m", "dsf", "mcp", "--allow-writes", "--kubeconfig", str(config)]
        transport = StdioTransport(
            sys.executable, [*arguments, "--log-level", "error"], keep_alive=False
        )
        async with Client(transport, mode=era, elicitation_handler=yes) as client:
            yield client, hub


async def enforced(hub: EmbeddedHub) -> set[str]:
    """The profiles whose policies are bound."""
    bindings = (await hub.list(PLACEMENT_BINDING, "default")).items
    names = {subject["name"] for binding in bindings for subject in binding["subjects"]}
    return {name.removeprefix("policy-enable-mig-").partition("-")[0] for name in names}


@pytest.mark.parametrize(
    ("connected", "era"),
    [
        (over_socket, "auto"),
        (over_socket, "legacy"),
        pytest.param(over_stdio, "auto", marks=SLOW),
        pytest.param(over_stdio, "legacy", marks=SLOW),
    ],
)
async def test_see_plan_explain_approve_apply_follow_and_roll_back(
    connected: Any, era: str, tmp_path: Path
) -> None:
    async with connected(era, tmp_path) as (client, hub):

        async def call(tool: str, **arguments: Any) -> Any:
            return (await client.call_tool(tool, arguments)).structured_content

        seen = await call("fleet_overview")
        assert (seen["ready_clusters"], seen["total_workloads"]) == (2, 2)
        plan = await call("plan_placement", objective="power")
        assert plan["objective_value"] == 170
        explained = await call("explain_placement", workload="app01", digest=plan["digest"])
        assert explained["workload"] == "mwrs-app01"
        assert await enforced(hub) == set()
        await call("apply_plan", digest=plan["digest"])
        assert await enforced(hub) == {"2g"}
        followed = await call("follow_rollout")
        assert {item["workload"] for item in followed["status"]["workloads"]} == {
            "mwrs-app01",
            "mwrs-app02",
        }
        assert followed["current"] == plan["digest"]
        better = await call("plan_placement", objective="performance")
        await call("apply_plan", digest=better["digest"])
        assert await enforced(hub) == {"3g"}
        back = await call("rollback")
        assert (back["plan"] is None) is not (back["applied"] is None)
        if back["plan"]:  # because the server can't ask this client
            await call("apply_plan", digest=back["plan"]["digest"])
        assert await enforced(hub) == {"2g"}
