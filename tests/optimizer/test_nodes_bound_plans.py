"""Node boundaries through the service: which plans are made, and which are out of date."""

from typing import Any

import pytest

from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from optimizer.plan.plan import Plan
from optimizer.wire.request_problem import RequestProblem
from optimizer.wire.result import Applied
from tests.optimizer.build import body
from tests.optimizer.inventoried_nodes import (
    GPU,
    deploying,
    deployment,
    inventory,
    node,
    publish_nodes,
)
from tests.optimizer.neighbours import planned, service
from tests.optimizer.operations.test_recorded_plans import client
from tests.optimizer.test_seen_capacity import alone, asking, hub_with, places

ROOM = {"cpu": 64, "memory": "256Gi", "pods": 110}
ONE = {"targetWorkloads": [{"name": "mwrs-app01"}]}


def gpu_node(gpus: int, taken: int = 0, **fields: Any) -> dict[str, Any]:
    return node({GPU: gpus, **ROOM}, {GPU: taken, "pods": taken}, **fields)


async def hub_of_one(*nodes: dict[str, Any], gpus: int = 4, pods: int = 1) -> EmbeddedHub:
    """worker01 with these nodes, and a Deployment of Pods that each need some GPUs."""
    made = deploying("mwrs-app01", "app01", gpus * pods, deployment(pods, gpu=gpus, cpu=4))
    return await hub_with(inventory("worker01", nodes), workloads=(made,))


@pytest.mark.parametrize(
    ("nodes", "gpus", "pods", "reason", "said"),
    [
        ([gpu_node(4)], 4, 1, "", ""),
        ([gpu_node(2), gpu_node(2)], 2, 2, "", ""),
        (
            [gpu_node(2), gpu_node(2)],
            4,
            1,
            "NoNodeFits",
            "4 nvidia.com/gpu free (the most on one is 2 nvidia.com/gpu) on cluster worker01",
        ),
        ([gpu_node(4, 2), gpu_node(4, 2)], 4, 1, "NoNodeFits", "the most on one is 2"),
        (
            [gpu_node(4, taints=[{"key": "gpu", "effect": "NoSchedule"}])],
            4,
            1,
            "NoNodeFits",
            "that it selects and tolerates",
        ),
    ],
)
async def test_pods_have_to_find_nodes(
    nodes: list[Any], gpus: int, pods: int, reason: str, said: str
) -> None:
    hub = await hub_of_one(*nodes, gpus=gpus, pods=pods)
    made = await planned(hub, asking(alone(), **ONE))
    assert (len(places(made)), [item.reason for item in made.unplaced]) == (
        (0, [reason]) if reason else (1, [])
    )
    assert all(said in item.message for item in made.unplaced)


async def test_a_label_that_the_inventory_lacks_is_named() -> None:
    pods = deployment(gpu=1)
    pods["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/rack": "r1"}
    made = deploying("mwrs-app01", "app01", 1, pods)
    hub = await hub_with(inventory("worker01", [gpu_node(4)]), workloads=(made,))
    (left,) = (await planned(hub, asking(alone(), **ONE))).unplaced
    assert (
        "(there is none; its inventory has no label example.com/rack:"
        " see --inventory-node-labels of the agent) on cluster worker01"
    ) in left.message


async def test_an_explanation_names_the_node_that_is_missing() -> None:
    hub = await hub_of_one(gpu_node(2), gpu_node(2))
    made = await planned(hub, asking(alone(), explain=True, **ONE))
    assert made.explanation is not None
    (found,) = made.explanation.unplaced
    (limit,) = found.limits
    assert limit.message == (
        "on cluster worker01 each Pod of workload mwrs-app01 needs a node with 4 cpu,"
        " 4 nvidia.com/gpu free (the most on one is 2 nvidia.com/gpu)"
    )
    assert found.remedy is not None
    [change] = found.remedy.changes
    assert change.message == (
        "give cluster worker01 a node for each Pod of workload mwrs-app01: add nodes, or end what"
        " holds them"
    )


@pytest.mark.parametrize(
    ("nodes", "gpus", "said"),
    [
        (
            [gpu_node(2), gpu_node(4, unschedulable=True)],
            4,
            "2 gpu all, as nodes with more are cordoned or not ready",
        ),
        (
            [gpu_node(4, 4)],
            4,
            "needs a node with 4 cpu, 4 nvidia.com/gpu free (the most on one is 0 nvidia.com/gpu)",
        ),
    ],
)
async def test_an_explanation_names_what_is_cordoned_and_what_is_full(
    nodes: list[Any], gpus: int, said: str
) -> None:
    made = await planned(await hub_of_one(*nodes, gpus=gpus), asking(alone(), explain=True, **ONE))
    assert made.explanation is not None
    assert said in str(made.explanation.unplaced)


async def test_packing_of_a_cluster_says_which_pods_come_first() -> None:
    hub = await hub_with(
        inventory("worker01", [gpu_node(4), gpu_node(4)]),
        workloads=(
            deploying("mwrs-app01", "app01", 4, deployment(gpu=4)),
            deploying("mwrs-app02", "app02", 2, deployment(2, gpu=1)),
        ),
    )
    any_order = await planned(hub, asking(alone()))
    assert len(places(any_order)) == 1
    assert [item.reason for item in any_order.unplaced] == ["Fragmented"]
    packed = await planned(hub, asking(alone(packing="BestFit")))
    assert len(places(packed)) == 2


async def test_a_pod_of_a_stranger_makes_a_plan_stale_only_if_it_takes_what_it_needs() -> None:
    hub = await hub_of_one(gpu_node(8), gpu_node(4))
    made = await planned(hub, asking(alone(), **ONE))
    assert len(places(made)) == 1
    await publish_nodes(hub, inventory("worker01", [gpu_node(8, 4), gpu_node(4, 3)]))
    same = await planned(hub, asking(alone(), **ONE))
    assert same.digest == made.digest
    await publish_nodes(hub, inventory("worker01", [gpu_node(8, 5), gpu_node(4, 3)]))
    refused = await service(hub).apply(made)
    assert isinstance(refused, RequestProblem)
    assert refused.reason == "StalePlan"
    assert [item.field for item in refused.errors] == ["managed cluster worker01"]
    assert "4 nvidia.com/gpu" in refused.detail
    assert "the most on one is 3 nvidia.com/gpu" in refused.detail
    written = [await hub.list(kind) for kind in (kinds.PLACEMENT, kinds.PLACEMENT_PLAN)]
    assert [list(found.items) for found in written] == [[], []]
    await publish_nodes(hub, inventory("worker01", [gpu_node(8, 4), gpu_node(4, 4)]))
    assert isinstance(await service(hub).apply(made), Applied)


async def test_a_digest_that_was_approved_is_refused_once_nodes_are_gone() -> None:
    hub = await hub_of_one(gpu_node(4))
    asked = {**body(), "clusters": [alone()], **ONE}
    async with client(hub) as http:
        shown = (await http.post("/optimize", json={**asked, "dryRun": True})).json()
        assert len(shown["placements"]) == 1
        await publish_nodes(hub, inventory("worker01", [gpu_node(4, ready=False)]))
        answer = await http.post(
            "/optimize",
            json={**asked, "dryRun": False},
            params={"expected_digest": shown["digest"]},
        )
    assert answer.status_code == 409
    assert "managed cluster worker01: workload mwrs-app01 can't run on " in answer.json()["detail"]
    assert list((await hub.list(kinds.PLACEMENT)).items) == []


async def test_an_inventory_that_expires_before_the_plan_is_applied_makes_it_stale() -> None:
    hub = await hub_of_one(gpu_node(4))
    made = await planned(hub, asking(alone(), **ONE))
    assert isinstance(made, Plan)
    await publish_nodes(hub, inventory("worker01", [gpu_node(4)], 181))
    refused = await service(hub).apply(made)
    assert isinstance(refused, RequestProblem)
    assert "its inventory is too old to start workload mwrs-app01" in refused.detail
