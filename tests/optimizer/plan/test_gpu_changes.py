"""How the GPUs of the clusters that a plan changes are divided, before and after it."""

from typing import Any

import pytest

from dsf.kube.clock import utc_now
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.kinds import MANAGED_CLUSTER, NODE_INVENTORY
from dsf.kube.port import Object
from optimizer.plan.plan import Plan, result
from optimizer.service.optimizer import Optimizer
from optimizer.wire.request import OptimizeRequest
from optimizer.wire.result import ClusterGpus, OptimizeResult
from tests.mcp_server.service import PERFORMANCE, POWER, request, scenario_hub
from tests.optimizer.follow.overview.drawing.test_gpu_layouts import gpu_node
from tests.optimizer.follow.overview.test_capacity import inventory


async def planned(
    hub: EmbeddedHub, asked: dict[str, Any], *, apply: bool = False
) -> OptimizeResult:
    optimizer = Optimizer(hub, now=utc_now)
    plan = await optimizer.plan(OptimizeRequest(**asked))
    assert isinstance(plan, Plan), plan
    if apply:
        await optimizer.apply(plan)
    return result(plan, None)


def told(
    found: OptimizeResult, gpus: tuple[ClusterGpus, ...]
) -> list[tuple[str, list[str], int, str]]:
    return [
        (
            item.model,
            [part.device for part in found.layouts[item.layout].slices],
            item.count,
            item.known,
        )
        for item in gpus
    ]


async def seen(hub: EmbeddedHub, cluster: str, *nodes: Object) -> None:
    obj = inventory(cluster, *nodes, now=utc_now())
    created = await hub.create(NODE_INVENTORY, {**obj, "status": {}})
    status = {**created, "status": obj["status"]}
    await hub.update(NODE_INVENTORY, status, subresource="status")


HALVES = ("H100-96GB", ["3g.48gb", "3g.48gb"], 1, "Policy")


async def test_a_plan_tells_which_layout_becomes_which() -> None:
    hub = await scenario_hub()
    first = await planned(hub, request(PERFORMANCE), apply=True)
    assert [item.cluster for item in first.gpus_after] == ["worker01", "worker02"]
    for item in first.gpus_after:
        assert (told(first, item.before), told(first, item.gpus)) == ([], [HALVES])
    reserved = [item for cluster in first.gpus_after for item in cluster.occupied]
    assert {(item.device, item.workload, item.amount) for item in reserved} == {
        ("3g.48gb", "mwrs-app01", 2),
        ("3g.48gb", "mwrs-app02", 2),
    }
    assert (await planned(hub, request(PERFORMANCE))).gpus_after == ()
    then = await planned(hub, request(POWER))
    for item in then.gpus_after:
        assert told(then, item.before) == [HALVES]
        assert [device for _, device, *_ in told(then, item.gpus)] == [["2g.24gb"] * 3]


async def test_gpus_of_the_request_are_divided_as_generated_policies_say() -> None:
    hub = await scenario_hub()
    asked = request(PERFORMANCE)
    gpus = [{"model": "NVIDIA-H20", "count": 3}]
    clusters = [{"name": "worker01", "gpus": gpus}]
    found = await planned(hub, {**asked, "clusters": clusters, "mig": {}})
    (cluster,) = found.gpus_after
    assert sum(item.count for item in cluster.gpus) == 3
    assert {item.model for item in cluster.gpus} == {"H100-96GB"}
    amounts = {item.workload: item.amount for item in cluster.occupied}
    assert amounts == {"mwrs-app01": 2, "mwrs-app02": 2}


@pytest.mark.parametrize(
    ("cpu", "before", "after"),
    [
        ("64", ("H100-96GB", ["all"], 2, "Inventory"), ("H100-96GB", ["3g.48gb"], 2, "Policy")),
        ("!", ("H100-96GB", [], 1, "Hardware"), HALVES),
    ],
)
async def test_what_nodes_have_is_divided_anew(cpu: str, before: object, after: object) -> None:
    """An inventory that can't be read tells nothing: the labels of the cluster do."""
    hub = await scenario_hub()
    node = gpu_node(2, gpu=2, model="NVIDIA-GH200-480GB")
    await seen(hub, "worker01", {**node, "allocatable": {**node["allocatable"], "cpu": cpu}})
    labels = {"metadata": {"labels": {"nvidia.com/gpu.product": "H20"}}}
    await hub.patch(MANAGED_CLUSTER, "worker01", labels)
    policies = [{"name": "policy-enable-mig-3g-worker01"}]
    asked = {
        **request(PERFORMANCE),
        "clusters": [
            {"name": "worker01", "availablePolicies": policies, "capacitySource": "Stated"}
        ],
    }
    found = await planned(hub, asked)
    (cluster,) = found.gpus_after
    assert told(found, cluster.before) == [before]
    assert told(found, cluster.gpus) == [after]
