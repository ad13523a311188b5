"""The simulated OCM on the embedded hub: what follows from the objects that users write."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from dsf.api.names import ADDON
from dsf.kube import kinds
from dsf.kube.errors import NotFound
from dsf.sim.simulation import PAUSE_SECONDS, DidNotSettle
from tests.dsf.sim.builders import (
    CLUSTERS,
    SimulatedFleet,
    binding,
    config_map,
    create,
    labelled,
    make,
    manifest_work,
    node_policy,
    placement,
    simulated_fleet,
)

if TYPE_CHECKING:
    from dsf.kube.port import Object


@pytest.fixture
async def fleet() -> SimulatedFleet:
    return await simulated_fleet()


async def test_the_add_on_of_a_joined_cluster_is_available(fleet: SimulatedFleet) -> None:
    for cluster in CLUSTERS:
        found = await fleet.hub.get(kinds.MANAGED_CLUSTER_ADD_ON, ADDON, cluster)
        [condition] = found["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("Available", "True")


async def decided(fleet: SimulatedFleet, name: str) -> list[str]:
    decision = await fleet.hub.get(kinds.PLACEMENT_DECISION, f"{name}-decision-1", "default")
    return [item["clusterName"] for item in decision.get("status", {}).get("decisions", [])]


async def reason(fleet: SimulatedFleet, name: str) -> str:
    found = await fleet.hub.get(kinds.PLACEMENT, name, "default")
    conditions = found["status"]["conditions"]
    (satisfied,) = (item for item in conditions if item["type"] == "PlacementSatisfied")
    return str(satisfied["reason"])


async def replica_set_reasons(fleet: SimulatedFleet) -> list[str]:
    found = await fleet.hub.get(kinds.MANIFEST_WORK_REPLICA_SET, "app", "default")
    return [condition["reason"] for condition in found["status"]["conditions"]]


async def test_a_settled_fleet_stays_settled(fleet: SimulatedFleet) -> None:
    await create(fleet.hub, kinds.PLACEMENT, placement("p", labelled("worker01")))
    await fleet.simulation.settle()
    assert await fleet.simulation.step() == []


async def test_a_work_is_applied_and_reported(fleet: SimulatedFleet) -> None:
    await create(fleet.hub, kinds.MANIFEST_WORK, manifest_work("w", "worker01", config_map("c")))
    await fleet.simulation.settle()
    applied = await fleet.clusters["worker01"].get(kinds.CONFIG_MAP, "c", "default")
    assert applied["data"] == {"key": "value"}
    work = await fleet.hub.get(kinds.MANIFEST_WORK, "w", "worker01")
    assert {c["type"]: c["status"] for c in work["status"]["conditions"]} == {
        "Applied": "True",
        "Available": "True",
    }


async def test_drift_on_the_managed_cluster_is_undone(fleet: SimulatedFleet) -> None:
    await create(fleet.hub, kinds.MANIFEST_WORK, manifest_work("w", "worker01", config_map("c")))
    await fleet.simulation.settle()
    cluster = fleet.clusters["worker01"]
    await cluster.patch(kinds.CONFIG_MAP, "c", {"data": {"key": "other"}}, "default")
    await fleet.simulation.settle()
    assert (await cluster.get(kinds.CONFIG_MAP, "c", "default"))["data"] == {"key": "value"}


@pytest.mark.parametrize(
    ("option", "stays"), [({}, False), ({"deleteOption": {"propagationPolicy": "Orphan"}}, True)]
)
async def test_a_removed_work_takes_its_objects_unless_they_are_orphaned(
    fleet: SimulatedFleet, option: dict[str, Any], stays: bool
) -> None:
    work = manifest_work("w", "worker01", config_map("c"), **option)
    await create(fleet.hub, kinds.MANIFEST_WORK, work)
    await fleet.simulation.settle()
    await fleet.hub.delete(kinds.MANIFEST_WORK, "w", "worker01")
    await fleet.simulation.settle()
    with pytest.raises(NotFound):
        await fleet.hub.get(kinds.MANIFEST_WORK, "w", "worker01")
    names = {
        obj["metadata"]["name"]
        for obj in (await fleet.clusters["worker01"].list(kinds.CONFIG_MAP, "default")).items
    }
    assert ("c" in names) == stays


async def test_a_kind_that_is_not_served_is_reported(fleet: SimulatedFleet) -> None:
    unknown: Object = {"apiVersion": "x.y/v1", "kind": "Z", "metadata": {"name": "z"}}
    await create(fleet.hub, kinds.MANIFEST_WORK, manifest_work("w", "worker01", unknown))
    await fleet.simulation.settle()
    work = await fleet.hub.get(kinds.MANIFEST_WORK, "w", "worker01")
    (condition,) = work["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Applied", "False")


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        (labelled("worker02"), ["worker02"]),
        ({}, ["worker01", "worker02"]),
        (
            {"celSelector": {"celExpressions": ['managedCluster.metadata.name == "worker01"']}},
            ["worker01"],
        ),
        ({"celSelector": {"celExpressions": ["managedCluster.nope.name == 1"]}}, []),
        (labelled("nowhere"), []),
    ],
    ids=str,
)
async def test_a_placement_selects(
    fleet: SimulatedFleet, selector: dict[str, Any], chosen: list[str]
) -> None:
    await create(fleet.hub, kinds.PLACEMENT, placement("p", selector))
    await fleet.simulation.settle()
    assert await decided(fleet, "p") == chosen


async def test_a_placement_waits_for_a_claim(fleet: SimulatedFleet) -> None:
    expression = {"key": "ready", "operator": "In", "values": ["yes"]}
    selector = {"claimSelector": {"matchExpressions": [expression]}}
    await create(fleet.hub, kinds.PLACEMENT, placement("p", selector, numberOfClusters=1))
    await fleet.simulation.settle()
    assert await reason(fleet, "p") == "NoManagedClusterMatched"
    claim = make(kinds.CLUSTER_CLAIM, "ready", spec={"value": "yes"})
    await create(fleet.clusters["worker02"], kinds.CLUSTER_CLAIM, claim)
    await fleet.simulation.settle()
    assert (await decided(fleet, "p"), await reason(fleet, "p")) == (
        ["worker02"],
        "AllDecisionsScheduled",
    )


async def test_an_unbound_namespace_selects_nothing(fleet: SimulatedFleet) -> None:
    await fleet.hub.delete(kinds.MANAGED_CLUSTER_SET_BINDING, "default", "default")
    await create(fleet.hub, kinds.PLACEMENT, placement("p", {}))
    await fleet.simulation.settle()
    assert await reason(fleet, "p") == "NoManagedClusterSetBindings"


async def test_scores_rank_and_expired_ones_count_as_zero(fleet: SimulatedFleet) -> None:
    for cluster, value, until in (
        ("worker01", 90, "2025-12-31T00:00:00Z"),
        ("worker02", 1, "2026-12-31T00:00:00Z"),
    ):
        await create(
            fleet.hub,
            kinds.ADD_ON_PLACEMENT_SCORE,
            make(kinds.ADD_ON_PLACEMENT_SCORE, "s", cluster),
        )
        status = {"scores": [{"name": "cpu", "value": value}], "validUntil": until}
        await fleet.hub.patch(
            kinds.ADD_ON_PLACEMENT_SCORE, "s", {"status": status}, cluster, subresource="status"
        )
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "s", "scoreName": "cpu"}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 1}]}
    ranked = placement("p", {}, numberOfClusters=1, prioritizerPolicy=policy)
    await create(fleet.hub, kinds.PLACEMENT, ranked)
    await fleet.simulation.settle()
    assert await decided(fleet, "p") == ["worker02"]


async def test_an_enforced_policy_changes_its_cluster_and_reports(fleet: SimulatedFleet) -> None:
    wanted = {"migsettinglabel": "3g.48gb"}
    policy = node_policy("mig", "worker01-control-plane", wanted, "enforce")
    await create(fleet.hub, kinds.POLICY, policy)
    await create(fleet.hub, kinds.PLACEMENT, placement("p", labelled("worker01")))
    await create(fleet.hub, kinds.PLACEMENT_BINDING, binding("b", "p", "mig"))
    await fleet.simulation.settle()
    node = await fleet.clusters["worker01"].get(kinds.NODE, "worker01-control-plane")
    assert node["metadata"]["labels"].items() >= wanted.items()
    root = await fleet.hub.get(kinds.POLICY, "mig", "default")
    assert root["status"]["compliant"] == "Compliant"


@pytest.mark.virtual_time
async def test_contradicting_policies_do_not_end_the_simulation(fleet: SimulatedFleet) -> None:
    for profile in ("2g", "3g"):
        policy = node_policy(profile, "worker01-control-plane", {"mig": profile}, "enforce")
        await create(fleet.hub, kinds.POLICY, policy)
        await create(fleet.hub, kinds.PLACEMENT_BINDING, binding(profile, "p", profile))
    await create(fleet.hub, kinds.PLACEMENT, placement("p", labelled("worker01")))
    with pytest.raises(DidNotSettle):
        await fleet.simulation.settle()
    running = asyncio.create_task(fleet.simulation.run())
    await asyncio.sleep(2 * PAUSE_SECONDS)
    assert not running.done()
    await fleet.hub.delete(kinds.PLACEMENT_BINDING, "2g", "default")
    await asyncio.sleep(2 * PAUSE_SECONDS)
    root = await fleet.hub.get(kinds.POLICY, "3g", "default")
    assert root["status"]["compliant"] == "Compliant"
    running.cancel()


async def test_an_informing_policy_only_reports(fleet: SimulatedFleet) -> None:
    policy = node_policy("mig", "worker01-control-plane", {"x": "y"}, "inform")
    await create(fleet.hub, kinds.POLICY, policy)
    await create(fleet.hub, kinds.PLACEMENT, placement("p", labelled("worker01")))
    await create(fleet.hub, kinds.PLACEMENT_BINDING, binding("b", "p", "mig"))
    await fleet.simulation.settle()
    replica = await fleet.hub.get(kinds.POLICY, "default.mig", "worker01")
    assert replica["status"]["compliant"] == "NonCompliant"
    node = await fleet.clusters["worker01"].get(kinds.NODE, "worker01-control-plane")
    assert "labels" not in node["metadata"]


async def test_an_unbound_policy_leaves_its_clusters(fleet: SimulatedFleet) -> None:
    policy = node_policy("mig", "worker01-control-plane", {"x": "y"}, "inform")
    await create(fleet.hub, kinds.POLICY, policy)
    await create(fleet.hub, kinds.PLACEMENT, placement("p", labelled("worker01")))
    await create(fleet.hub, kinds.PLACEMENT_BINDING, binding("b", "p", "mig"))
    await fleet.simulation.settle()
    await fleet.hub.delete(kinds.PLACEMENT_BINDING, "b", "default")
    await fleet.simulation.settle()
    for kube in (fleet.hub, fleet.clusters["worker01"]):
        assert (await kube.list(kinds.POLICY, "worker01")).items == ()


async def test_a_replica_set_keeps_its_works_while_its_placement_is_gone(
    fleet: SimulatedFleet,
) -> None:
    template = {"workload": {"manifests": [config_map("app")]}}
    spec = {"placementRefs": [{"name": "p"}], "manifestWorkTemplate": template}
    replica_set = make(kinds.MANIFEST_WORK_REPLICA_SET, "app", "default", spec=spec)
    await create(fleet.hub, kinds.MANIFEST_WORK_REPLICA_SET, replica_set)
    await create(fleet.hub, kinds.PLACEMENT, placement("p", labelled("worker01")))
    await fleet.simulation.settle()
    assert await replica_set_reasons(fleet) == ["AsExpected", "AsExpected"]
    await fleet.hub.delete(kinds.PLACEMENT, "p", "default")
    await fleet.simulation.settle()
    assert len((await fleet.hub.list(kinds.MANIFEST_WORK, "worker01")).items) == 1
    assert await replica_set_reasons(fleet) == ["PlacementDecisionNotFound", "AsExpected"]
    await fleet.hub.delete(kinds.MANIFEST_WORK_REPLICA_SET, "app", "default")
    await fleet.simulation.settle()
    assert (await fleet.hub.list(kinds.MANIFEST_WORK, "worker01")).items == ()


async def test_a_replica_set_follows_its_placement(fleet: SimulatedFleet) -> None:
    template = {"workload": {"manifests": [config_map("app")]}}
    reference = {"name": "p", "rolloutStrategy": {"type": "All"}}
    spec = {"placementRefs": [reference], "manifestWorkTemplate": template}
    replica_set = make(kinds.MANIFEST_WORK_REPLICA_SET, "app", "default", spec=spec)
    await create(fleet.hub, kinds.MANIFEST_WORK_REPLICA_SET, replica_set)
    await create(fleet.hub, kinds.PLACEMENT, placement("p", labelled("worker01")))
    await fleet.simulation.settle()
    predicates = [{"requiredClusterSelector": labelled("worker02")}]
    await fleet.hub.patch(kinds.PLACEMENT, "p", {"spec": {"predicates": predicates}}, "default")
    await fleet.simulation.settle()
    found = {
        name: [obj["metadata"]["name"] for obj in (await cluster.list(kinds.CONFIG_MAP)).items]
        for name, cluster in fleet.clusters.items()
    }
    assert found == dict(zip(CLUSTERS, ([], ["app"]), strict=True))
