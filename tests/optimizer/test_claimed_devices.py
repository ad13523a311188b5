"""Plans with devices of dynamic resource allocation, alone and beside clusters with policies."""

import json
from dataclasses import replace
from typing import Any

import pytest

from dsf.agent.inventory.device_classes import read_class
from dsf.agent.inventory.device_pools import read_slice
from dsf.agent.inventory.devices import read_claim, summarize_devices
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.port import Object
from optimizer.wire.request import OptimizeRequest
from tests.device_slices import claim, mig_slice, nvidia_classes
from tests.optimizer.build import guide, request
from tests.optimizer.hubs import hub_of
from tests.optimizer.inventoried_nodes import (
    GH200,
    deploying,
    deployment,
    inventory,
    node,
    publish_nodes,
)
from tests.optimizer.neighbours import applied, planned
from tests.optimizer.test_not_alone import reasons
from tests.optimizer.test_seen_capacity import alone, asking, places

pytestmark = pytest.mark.virtual_time

HALF = "device.attributes['gpu.nvidia.com'].profile == '3g.48gb'"
HALVES = (("3g.20gb", "3g.48gb"), ("mig-3g20gb", "mig-3g48gb"))


def devices(cluster: str, gpus: int = 1, *held: str, works: Any = None, **fields: Any) -> Object:
    """The inventory of a cluster with a node whose GPUs become what is claimed."""
    text = json.dumps(mig_slice("n", gpus))
    for before, after in HALVES:
        text = text.replace(before, after)
    claims = [claim(f"c{at}", "n", name, pods=[f"p{at}"]) for at, name in enumerate(held)]
    found = summarize_devices([read_slice(json.loads(text))], map(read_claim, claims), works or {})
    (own,) = found.nodes.values()
    group = {
        "count": 1,
        "ready": True,
        "allocatable": {"cpu": "64", "pods": "110"},
        "requested": {},
        "devices": [item.document() for item in own],
        **fields,
    }
    return inventory(
        cluster,
        [group],
        deviceSets=list(found.sets),
        deviceClasses=list(map(read_class, nvidia_classes())),
    )


def claiming(app: str, amount: int, selector: str = HALF, cls: str = "mig.nvidia.com") -> Object:
    """A workload whose Pods claim one device each."""
    exactly: dict[str, Any] = {"deviceClassName": cls}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu"},
        "spec": {
            "spec": {
                "devices": {
                    "requests": [{"name": "gpu", "exactly": exactly}],
                    "constraints": [
                        {"requests": ["gpu"], "matchAttribute": "gpu.nvidia.com/productName"}
                    ],
                }
            }
        },
    }
    pod = {
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    spec = {"replicas": amount, "selector": {}, "template": {"metadata": {}, "spec": pod}}
    deployed = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    return deploying(f"mwrs-{app}", app, amount, {**deployed, "spec": spec}, template)


async def fleet(*inventories: Object, workloads: tuple[Object, ...]) -> EmbeddedHub:
    hub = await hub_of(replace(guide(), workloads=workloads))
    await publish_nodes(hub, *inventories)
    return hub


def asked(*apps: str) -> OptimizeRequest:
    targets = [{"name": f"mwrs-{app}"} for app in apps or ("app02",)]
    return asking(alone("worker02"), targetWorkloads=targets)


async def test_one_plan_places_on_mig_policies_and_on_devices_that_are_claimed() -> None:
    """Worker01 needs a policy to have MIG devices, worker02 makes them when they are claimed."""
    workloads = (deploying("mwrs-app01", "app01", 2, deployment(2, mig=1)), claiming("app02", 2))
    gpu = node({"cpu": 64}, labels=GH200)
    hub = await fleet(inventory("worker01", [gpu]), devices("worker02"), workloads=workloads)
    both = request(clusters=[request().clusters[0].model_dump(by_alias=True), alone("worker02")])
    made = await applied(hub, both)
    assert places(made) == {
        ("mwrs-app01", "worker01", "3g.48gb"),
        ("mwrs-app02", "worker02", "3g.48gb"),
    }
    assert made.solution.objective_value == 60 + 55
    bindings = (await hub.list(kinds.PLACEMENT_BINDING)).items
    assert [item["metadata"]["name"].startswith("binding-worker01-") for item in bindings] == [True]


@pytest.mark.parametrize(
    ("workload", "held", "gpus", "device"),
    [
        (claiming("app02", 2), (), 1, "3g.48gb"),
        (claiming("app02", 3), (), 1, ""),
        (claiming("app02", 3), (), 2, "3g.48gb"),
        (claiming("app02", 2), ("gpu-0-mig-1g5gb-0",), 1, ""),
        (claiming("app02", 1), ("gpu-0-mig-1g5gb-0",), 1, "3g.48gb"),
        (claiming("app02", 1), ("gpu-0",), 1, ""),
        (claiming("app02", 1, "", "gpu.nvidia.com"), (), 1, "all"),
        (claiming("app02", 1, "", "gpu.nvidia.com"), ("gpu-0-mig-1g5gb-0",), 1, ""),
        (claiming("app02", 2, "", "gpu.nvidia.com"), ("gpu-0-mig-1g5gb-0",), 2, ""),
        (claiming("app02", 1, "", "gpu.example.com"), (), 1, ""),
        (claiming("app02", 1, "device.attributes['gpu.nvidia.com'].index == 0"), (), 1, ""),
    ],
)
async def test_a_workload_goes_where_its_claims_find_devices(
    workload: Object, held: tuple[str, ...], gpus: int, device: str
) -> None:
    hub = await fleet(devices("worker02", gpus, *held), workloads=(workload,))
    made = await planned(hub, asked())
    assert places(made) == ({("mwrs-app02", "worker02", device)} if device else set())


async def test_two_workloads_share_the_counters_of_one_gpu() -> None:
    workloads = (claiming("app01", 1), claiming("app02", 2))
    hub = await fleet(devices("worker02"), workloads=workloads)
    made = await planned(hub, asked("app01", "app02"))
    assert len(places(made)) == 1
    hub = await fleet(devices("worker02", 2), workloads=workloads)
    made = await planned(hub, asked("app01", "app02"))
    assert len(places(made)) == 2


async def test_claims_that_can_not_be_told_are_issues() -> None:
    index = "device.attributes['gpu.nvidia.com'].index == 0"
    workloads = (claiming("app01", 1, "", "gpu.example.com"), claiming("app02", 1, index))
    hub = await fleet(devices("worker02"), workloads=workloads)
    found = reasons(await planned(hub, asked("app01", "app02")))
    assert found["ClaimNotEvaluated"] == [
        (
            "workload mwrs-app01 on cluster worker02: the devices that it claims are not known:"
            " the cluster has no DeviceClass gpu.example.com"
        ),
        (
            "workload mwrs-app02 on cluster worker02: the devices that it claims are not known:"
            f' a device of gpu.nvidia.com has no index (selector "{index}")'
        ),
    ]


async def test_devices_of_nodes_that_are_cordoned_or_not_ready_do_not_count() -> None:
    for state in ({"unschedulable": True}, {"ready": False}):
        hub = await fleet(devices("worker02", **state), workloads=(claiming("app02", 1),))
        assert places(await planned(hub, asked())) == set()
