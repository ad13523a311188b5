"""What assistants are told of scorers that fail, and of a score that expires on one cluster."""

import pytest
import yaml
from fastmcp import Client

from dsf.kube.clock import utc_now
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.evals.fleets import BEFORE, FLEETS


async def told(fleet: str, tool: str, **said: str) -> str:
    hub = await FLEETS[fleet]()
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now))) as client:
        return str((await client.call_tool(tool, said)).content[0].text)


async def test_what_concerns_a_cluster_is_found_by_its_name() -> None:
    text = await told("broken", "diagnose", name="worker02")
    assert text.startswith("3 findings about worker02.")
    for part in (
        "cluster worker02: ClusterLost",
        "score carbon-intensity: ScoreExpired",
        "power: Un",
    ):
        assert part in text


async def test_a_scorer_that_is_ready_has_no_time_since_when_it_fails_elsewhere() -> None:
    text = await told("broken", "diagnose", name="power")
    assert "scorer power: Unauthorized: " in text
    assert BEFORE not in text
    assert "renew the token in it in namespace dynamic-scoring of that cluster" in text
    assert f"HealthCheckFailed since {BEFORE}" in await told("broken", "diagnose")


@pytest.mark.parametrize(
    ("fleet", "said"),
    [
        ("broken", ".\nStalest that has expired: carbon-intensity of worker02, published "),
        ("aged", "valid until 2098-01-01T00:00:00Z, and on 1 cluster without end; published "),
        ("aged", "(higher is better; mean of up to 6 entries) on 2 clusters: best worker01 50 "),
    ],
)
async def test_scores_say_what_expired_what_never_does_and_what_is_a_mean(
    fleet: str, said: str
) -> None:
    assert said in await told(fleet, "list_scores")


async def test_who_has_the_devices_of_a_cluster_is_shown() -> None:
    text = await told("whole_gpus", "plan_history", objects="NodeInventory worker01")
    inventory = yaml.safe_load(text)
    assert inventory["metadata"]["name"] == "worker01"
    assert [item["name"] for item in inventory["status"]["works"]] == ["work0"]
