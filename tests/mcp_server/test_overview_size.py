"""What the overview of twelve clusters costs an assistant, and that it still says all of it."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from fastmcp import Client

from dsf.kube import kinds
from dsf.kube.clock import utc_now
from dsf.kube.port import Object
from mcp_server.server import create_mcp
from optimizer.service.optimizer import Optimizer
from tests.optimizer.build import guide, obj, workload
from tests.optimizer.follow.overview.test_capacity import GPU, group, inventory
from tests.optimizer.hubs import hub_of

CLUSTERS = tuple(f"worker{number:02}" for number in range(1, 13))
LOST = ("worker05", "worker10")
CORDONED = {"worker02": 4, "worker07": 4}
MODELS = ("NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3")
APART = {"default": "train", "team-b": "serve"}
"""The first words of the workloads of each namespace."""

PROMISED_CALLS, PROMISED_CHARACTERS = 3, 6_000
MARGIN = 200


def _inventory(number: int, cluster: str) -> Object:
    """16 GPUs of which each second one's are of the other model, and those of cordoned nodes."""
    whole = {GPU: "8", "cpu": "64", "memory": "512Gi"}
    taken = {GPU: str(number % 5), "cpu": "8"}
    nodes = [group(whole, taken, ({GPU: "1"},), model=MODELS[number % 2], count=2)]
    if closed := CORDONED.get(cluster):
        nodes.append(group({GPU: str(closed)}, model=MODELS[1], unschedulable=True))
    if cluster == "worker04":
        nodes.append(group({GPU: "8"}, model=MODELS[0]))
    return inventory(cluster, *nodes, age=20 + number, now=utc_now())


def _cluster(cluster: Object) -> Object:
    if cluster["metadata"]["name"] not in LOST:
        return cluster
    lost = {
        "type": "ManagedClusterConditionAvailable",
        "status": "Unknown",
        "reason": "ManagedClusterLeaseUpdateStopped",
        "message": "Registration agent stopped updating its lease.",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {**cluster, "status": {"conditions": [lost]}}


@pytest.mark.parametrize("namespace", APART)
async def test_the_overview_of_twelve_clusters_costs_less_than_promised(namespace: str) -> None:
    fleet = guide(CLUSTERS)
    idle = tuple(
        obj(
            kinds.ADD_ON_PLACEMENT_SCORE,
            "gpu-idle",
            name,
            status={"scores": [{"name": "all", "value": 25}], "validUntil": "2999-01-01T00:00:00Z"},
        )
        for name in CLUSTERS
    )
    hub = await hub_of(
        replace(
            fleet,
            managed_clusters=tuple(map(_cluster, fleet.managed_clusters)),
            workloads=(),
            scores=(*fleet.scores, *idle),
            inventories=tuple(_inventory(*item) for item in enumerate(CLUSTERS)),
        )
    )
    for space, word in APART.items():
        if space != "default":
            await hub.create(kinds.NAMESPACE, obj(kinds.NAMESPACE, space))
        for number in range(1, 10):
            made = workload(f"{word}-{number:02}", "app01")
            made["metadata"]["namespace"] = space
            await hub.create(kinds.MANIFEST_WORK_REPLICA_SET, made)
    async with Client(create_mcp(lambda: Optimizer(hub, now=utc_now))) as client:
        told = await _pages(client, namespace)
    assert len(told) <= PROMISED_CALLS
    assert sum(map(_characters, told)) <= PROMISED_CHARACTERS - MARGIN
    text = "\n".join(page.content[0].text for page in told)
    assert "10 of 12 clusters ready, 0 of 9 workloads placed" in text
    for name in CLUSTERS:
        (row,) = re.findall(rf"^{name} \(\d+s ago\): (.*)", text, re.MULTILINE)
        assert re.search(r"\d+ of \d+ free", row)
        assert (f"{CORDONED.get(name)} closed" in row) is (name in CORDONED)
        assert (f"{name} (ClusterLost)" in text) is (name in LOST)
    assert len({*re.findall(rf"{APART[namespace]}-\d\d", text)}) == 9
    assert len(re.findall(r'^nvidia.com/gpu ".*free, reserved', text, re.MULTILINE)) == 2


async def _pages(client: Client[Any], namespace: str) -> list[Any]:
    """Return the answers of all calls that it takes to see everything."""
    pages, offset = list[Any](), 0
    while True:
        asked = {"namespace": namespace, "offset": offset}
        pages.append(await client.call_tool("fleet_overview", asked))
        following = re.search(r"Next page: offset (\d+)", pages[-1].content[0].text)
        if following is None:
            return pages
        offset = int(following[1])


def _characters(answer: Any) -> int:
    """Return how much of an answer a model reads, its structure as Python writes it by default."""
    text = "\n".join(item.text for item in answer.content)
    return len(text) + len(json.dumps(answer.structured_content))
