"""`dsf agent --inventory`, over the API servers' HTTP."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from dsf.agent.cli import agent
from dsf.agent.run import AgentSettings, run
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.embedded.http import server as api
from dsf.kube.kinds import CONFIG_MAP, NODE_INVENTORY
from tests.command_line import invoked, invoked_meanwhile
from tests.dsf.agent.conftest import AGENT_NAMESPACE, CLUSTER
from tests.dsf.agent.inventory.cluster_objects import cluster_with, node, pod
from tests.eventually import eventually

NAME = f"--cluster-name={CLUSTER}"
SCORERS = {
    "metadata": {"name": "dynamic-scoring-config", "namespace": AGENT_NAMESPACE},
    "data": {"summaries": "[]"},
}
WRONG = {
    "labels without an inventory": (
        ("--inventory-node-labels=rack",),
        "--inventory-node-labels needs --inventory",
    ),
    "a label that is none": (
        ("--inventory", "--inventory-node-labels=rack,a b"),
        "'a b' is no label",
    ),
    "no API server": (
        ("--inventory", "--once", f"--summaries-file={__file__}"),
        "--inventory needs the managed cluster's --kubeconfig",
    ),
}


@pytest.mark.parametrize(("options", "said"), WRONG.values(), ids=WRONG)
def test_options_are_honoured_or_refused(options: tuple[str, ...], said: str) -> None:
    code, _, err = invoked(agent, NAME, *options, env={"KUBERNETES_SERVICE_HOST": None})
    assert code == 2
    assert said in err


async def test_once_prints_the_inventory(tmp_path: Path) -> None:
    managed = await cluster_with(
        node("n1", labels={"rack": "r1", "other": "x"}), pod("p", {"nvidia.com/gpu": "1"}, on="n1")
    )
    await managed.create(CONFIG_MAP, SCORERS)
    async with api.serving(managed) as url:
        kubeconfig = tmp_path / "managed.yaml"
        kubeconfig.write_text(yaml.safe_dump(api.kubeconfig(url)))
        options = ("--once", "--inventory", "--inventory-node-labels=rack")
        code, out, err = await invoked_meanwhile(
            agent, NAME, *options, f"--kubeconfig={kubeconfig}"
        )
    assert (code, err) == (0, "")
    inventory = yaml.safe_load(out)
    assert (inventory["kind"], inventory["metadata"]["name"]) == ("NodeInventory", CLUSTER)
    (group,) = inventory["status"]["nodes"]
    assert group["labels"] == {"rack": "r1"}
    assert group["requested"] == {"nvidia.com/gpu": "1", "pods": "1"}


async def test_an_agent_reports_only_if_it_is_told_to(hub: EmbeddedHub) -> None:
    managed = await cluster_with(node("n1"))
    await managed.create(CONFIG_MAP, SCORERS)
    settings = AgentSettings(CLUSTER, metrics_bind_address="127.0.0.1:0", inventory=True)
    running = asyncio.create_task(run(settings, hub=hub, managed=managed))

    async def reported() -> int | None:
        found = await hub.list(NODE_INVENTORY, CLUSTER)
        return next((one["status"]["nodeCount"] for one in found.items if "status" in one), None)

    assert await eventually(reported) == 1
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
