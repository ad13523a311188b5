"""What if there were a cluster with other GPUs: by policies, and where agents report nodes."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from dsf.kube.embedded import EmbeddedHub
from tests.optimizer.build import guide
from tests.optimizer.hubs import hub_of
from tests.optimizer.inventoried_nodes import GH200, GPU, deploying, deployment, inventory, node
from tests.optimizer.operations.test_planning import planned
from tests.optimizer.operations.test_recorded_plans import client

L40S = {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.count": "2"}
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-PCIe", "nvidia.com/gpu.count": "1"}


async def reporting_hub(labels: dict[str, str], **of_pods: Any) -> EmbeddedHub:
    """The guide's fleet with nodes; one cluster has GPUs, and the other none."""
    fleet, amounts = guide(), {"cpu": 8, "pods": 110}
    gpus = {**amounts, GPU: labels["nvidia.com/gpu.count"]}
    inventories = (
        inventory("worker01", [node(gpus, labels=labels, names=["n"]), node(amounts)]),
        inventory("worker02", [node(amounts)]),
    )
    pods = deployment(**of_pods)
    workloads = [deploying(f"mwrs-{app}", app, 2, pods) for app in ("app01", "app02")]
    return await hub_of(replace(fleet, workloads=tuple(workloads), inventories=inventories))


def adding(*gpus: tuple[str, Any], **more: str) -> dict[str, Any]:
    """The question with one more cluster, on which alone workloads may run."""
    listed = [{"product": product, "count": count} for product, count in gpus]
    added = {"name": "worker03", "gpus": listed, **more}
    return {"whatIf": {"add": [added], "drain": ["worker01", "worker02"]}}


async def placed(http: httpx.AsyncClient, *gpus: tuple[str, int], **more: str) -> dict[str, str]:
    """The device of each workload that has a place with more GPUs."""
    plan = await planned(http, **adding(*gpus, **more))
    assert plan["request"] is None
    assert {item["cluster"] for item in plan["placements"]} <= {"worker03"}
    return {item["workload"][5:]: item["device"] for item in plan["placements"]}


@pytest.mark.parametrize("reported", [False, True])
async def test_gpus_that_are_added_are_divided_as_is_best(reported: bool) -> None:
    hub = await (reporting_hub(GH200, cpu=1) if reported else hub_of())
    async with client(hub) as http:
        one = await placed(http, ("gh200", 1), like="worker01")
        two = await placed(http, ("NVIDIA-GH200-480GB", 2), like="worker01")
        whole = await placed(http, ("H100-96GB", 4), like="worker01")
        drawn = (await planned(http, **adding(("gh200", 2), like="worker01")))["gpus_after"]
        two_models = adding(("gh200", 1), ("B200", 1), like="worker01")
        (mixed,) = (await planned(http, **two_models))["gpus_after"]
    assert one == {"app01": "3g.48gb"}
    assert two == {"app01": "3g.48gb", "app02": "3g.48gb"}
    assert whole == {"app01": "all", "app02": "all"}
    (cluster,) = drawn
    assert {item["model"] for item in (*cluster["before"], *cluster["gpus"])} == {"H100-96GB"}
    assert [sum(item["count"] for item in cluster[when]) for when in ("before", "gpus")] == [2, 2]
    assert {item["model"] for item in mixed["gpus"]} == {"H100-96GB", "B200-180GB"}


async def test_added_nodes_have_as_much_cpu_for_each_gpu_as_those_that_exist() -> None:
    async with client(await reporting_hub(GH200, cpu=9)) as http:
        found = [await placed(http, ("gh200", gpus)) for gpus in (1, 2, 4, 16)]
    assert [len(places) for places in found] == [0, 1, 2, 2]


async def test_gpus_without_mig_are_whole_and_named_as_the_fleet_names_them() -> None:
    async with client(await reporting_hub(L40S, gpu=1)) as http:
        few = await placed(http, ("l40s", 2))
        many = await placed(http, ("L40S", 3), ("NVIDIA-L40S", 1))
    assert few == {"app01": "all"}
    assert many == {"app01": "all", "app02": "all"}


async def test_part_of_a_name_means_a_model_of_the_fleet_first() -> None:
    async with client(await reporting_hub(H100, cpu=1)) as http:
        there = await http.post("/plan", json={"objective": {"power": 1}, **adding(("H100", 2))})
    async with client(await hub_of()) as http:
        nowhere = await http.post("/plan", json={"objective": {"power": 1}, **adding(("H100", 2))})
    assert there.status_code == 200
    assert "H100 is ambiguous" in nowhere.json()["detail"]


@pytest.mark.parametrize(
    ("gpus", "like", "said"),
    [
        ([("B200", 0)], "worker01", "greater than or equal to 1"),
        ([("B200", -1)], "worker01", "greater than or equal to 1"),
        ([("B200", 10**9)], "worker01", "less than or equal to 512"),
        ([("B200", 512), ("A30", 1)], "worker01", "at most 512 in all"),
        ([("B200", "two")], "worker01", "valid integer"),
        ([], "worker01", "must list at least 1"),
        ([("RTX-9999", 1)], "worker01", "no GPU model is named"),
        ([("A100", 1)], "worker01", "ambiguous; GPU models that match"),
        ([("B200", 1)], "", "no cluster has "),
        ([("B200", 1)], "worker02", "worker02 has no node with GPUs"),
        ([("B200", 1)], "worker09", "no managed cluster is named worker09"),
    ],
)
async def test_what_no_cluster_can_have_is_refused_in_a_sentence(
    gpus: list[tuple[str, Any]], like: str, said: str
) -> None:
    question = adding(*gpus, **({"like": like} if like else {}))
    async with client(await reporting_hub(GH200)) as http:
        answer = await http.post("/plan", json={"objective": {"performance": 1}, **question})
    assert answer.status_code == 422
    assert said in answer.json()["detail"], answer.text
