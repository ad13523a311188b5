"""What an assistant reads of a workload for which what runs leaves no room."""

from fastmcp import Client

from dsf.kube.clock import utc_now
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.evals.fleets import running


async def test_what_runs_is_said_to_stay_and_to_be_what_uses_the_devices() -> None:
    hub = await running()
    asked = {"objective": "performance", "what_if": {"run": [{"amount": 1, "like": "app01"}]}}
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now))) as client:
        text = (await client.call_tool("plan_placement", asked)).content[0].text
    assert text.startswith(
        "No planned workload has a place, so nothing changes and what runs stays.\n"
    )
    assert "cluster worker01 has 0 of 2 gpu 3g.48gb free (used by mwrs-app01); " in text
    assert "after this: add 1 gpu 3g.48gb to cluster worker01." in text
    assert "deliver a score" not in text
    assert "Name it in workloads to plan it too." in text
