"""The simulated scheduler: Pods run where there is room, and say why where there is none."""

from dsf.kube import kinds
from dsf.kube.apply import apply
from dsf.kube.changes import Delete, Patch
from dsf.kube.port import Object
from tests.dsf.sim.builders import SimulatedFleet, create, make, manifest_work, simulated_fleet

CLUSTER, NODE = "worker01", "worker01-control-plane"
GPU = "nvidia.com/gpu"


def pod(name: str, gpus: int) -> Object:
    container = {"name": "c", "image": "i", "resources": {"limits": {GPU: str(gpus)}}}
    return make(kinds.POD, name, "default", spec={"containers": [container]})


async def fleet_with_gpus(gpus: int) -> SimulatedFleet:
    fleet = await simulated_fleet()
    status = {"status": {"allocatable": {"cpu": "4", "pods": "10", GPU: str(gpus)}}}
    await apply(fleet.clusters[CLUSTER], [Patch(kinds.NODE, NODE, None, status, "status")])
    return fleet


async def phases(fleet: SimulatedFleet) -> dict[str, str]:
    await fleet.simulation.settle()
    found = (await fleet.clusters[CLUSTER].list(kinds.POD)).items
    return {item["metadata"]["name"]: item["status"]["phase"] for item in found}


async def test_a_pod_waits_until_another_one_leaves_room() -> None:
    fleet = await fleet_with_gpus(3)
    cluster = fleet.clusters[CLUSTER]
    await create(cluster, kinds.POD, pod("first", 2))
    assert await phases(fleet) == {"first": "Running"}
    await create(cluster, kinds.POD, pod("second", 2))
    assert await phases(fleet) == {"first": "Running", "second": "Pending"}
    waiting = await cluster.get(kinds.POD, "second", "default")
    (condition,) = waiting["status"]["conditions"]
    assert condition["reason"] == "Unschedulable"
    assert condition["message"] == f"0/1 nodes are available: 1 Insufficient {GPU}."
    await apply(cluster, [Delete(kinds.POD, "first", "default")])
    assert await phases(fleet) == {"second": "Running"}


async def test_the_pod_of_a_manifest_work_is_named_by_its_applied_manifest_work() -> None:
    fleet = await fleet_with_gpus(1)
    await create(fleet.hub, kinds.MANIFEST_WORK, manifest_work("app", CLUSTER, pod("app", 1)))
    assert await phases(fleet) == {"app": "Running"}
    cluster = fleet.clusters[CLUSTER]
    applied = await cluster.get(kinds.APPLIED_MANIFEST_WORK, "hub-app")
    assert applied["spec"]["manifestWorkName"] == "app"
    (resource,) = applied["status"]["appliedResources"]
    running = await cluster.get(kinds.POD, "app", "default")
    assert (resource["resource"], resource["uid"]) == ("pods", running["metadata"]["uid"])
    await apply(fleet.hub, [Delete(kinds.MANIFEST_WORK, "app", CLUSTER)])
    assert await phases(fleet) == {}
    assert not (await cluster.list(kinds.APPLIED_MANIFEST_WORK)).items
