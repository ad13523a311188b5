"""Requests that state nothing: devices that nodes advertise stay what administrators made them."""

from dataclasses import replace
from typing import Any

import pytest

from dsf.kube import kinds
from dsf.kube.port import Object
from tests.optimizer.build import guide, managed_cluster
from tests.optimizer.inventoried_nodes import GH200, GPU, MIG, inventory, node, publish_nodes
from tests.optimizer.neighbours import applied
from tests.optimizer.operations.test_planning import planned
from tests.optimizer.operations.test_recorded_plans import client
from tests.optimizer.service.kept_fleet import KeptFleet, kept_fleet
from tests.optimizer.test_seen_capacity import asking

RUNNING = {f"mwrs-{app}": {MIG: 2} for app in ("app01", "app02")}


def divided(cluster: str = "worker01", **status: Any) -> Object:
    """The inventory of a node that an administrator divided, or that has whole GPUs."""
    labels = {**GH200, "nvidia.com/gpu.count": "2"}
    amounts = status.pop("allocatable", {MIG: 4})
    nodes = [node(amounts, labels=labels, names=[f"{cluster}-gpu"], **status.pop("of_node", {}))]
    return inventory(cluster, nodes, **status)


async def fleet_without_policies() -> KeptFleet:
    """The guide's fleet without policies; labels tell the GPUs of its clusters."""
    clusters = [managed_cluster(name, cluster_name=name) for name in ("worker01", "worker02")]
    for cluster in clusters:
        cluster["metadata"]["labels"] |= GH200
    return await kept_fleet(replace(guide(), policies=(), managed_clusters=tuple(clusters)))


def devices(plan: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(item["workload"], item["cluster"], item["device"]) for item in plan["placements"]}


@pytest.mark.parametrize(
    "later",
    [
        {},
        {"of_node": {"works": RUNNING}},
        {"allocatable": {GPU: 2}},
        {"allocatable": {MIG: 0}, "of_node": {"works": RUNNING}},
        {"age": 181},
        {"observedTime": None},
    ],
)
async def test_nothing_is_stopped_and_no_policy_generated_where_nodes_are_known(
    later: dict[str, Any],
) -> None:
    fleet = await fleet_without_policies()
    first = {"allocatable": later["allocatable"]} if GPU in later.get("allocatable", ()) else {}
    await publish_nodes(fleet.hub, divided(**first), divided("worker02", **first))
    running = await applied(fleet.hub, asking())
    assert len(running.placements) == 2
    before = [item["spec"] for item in await fleet.all(kinds.PLACEMENT)]
    await publish_nodes(fleet.hub, *(divided(name, **later) for name in ("worker01", "worker02")))
    async with client(fleet.hub) as http:
        shown = await planned(http)
    assert (shown["changes"], shown["policies"]) == ([], {})
    await fleet.declare(mode="Apply")
    await fleet.look()
    assert [item["spec"] for item in await fleet.all(kinds.PLACEMENT)] == before
    assert await fleet.all(kinds.POLICY) == ()


async def test_gpus_are_divided_where_no_agent_reports_nodes_or_somebody_asks() -> None:
    fleet = await fleet_without_policies()
    await publish_nodes(fleet.hub, divided(allocatable={GPU: 2}))
    async with client(fleet.hub) as http:
        shown = await planned(http)
        asked = await planned(http, request={"mig": {"discover": True}})
    assert shown["policies"].keys() == {"worker02"}
    assert asked["policies"].keys() == {"worker01", "worker02"}
    await fleet.declare(mode="Apply")
    await fleet.look()
    assert len(await fleet.all(kinds.POLICY)) == 1


async def test_a_policy_that_was_generated_stays_in_force_when_agents_begin_to_report() -> None:
    fleet = await fleet_without_policies()
    await fleet.declare(mode="Apply")
    await fleet.look()
    generated = await fleet.bound()
    assert len(generated) == 2
    before = [item["spec"] for item in await fleet.all(kinds.PLACEMENT)]
    await publish_nodes(fleet.hub, divided(), divided("worker02"))
    await fleet.look()
    assert await fleet.bound() == generated
    assert [item["spec"] for item in await fleet.all(kinds.PLACEMENT)] == before


async def test_a_copy_of_a_cluster_has_its_nodes_without_what_runs_there() -> None:
    fleet = await fleet_without_policies()
    full = {"of_node": {"works": {"theirs": {MIG: 4}}}}
    await publish_nodes(fleet.hub, divided(**full), divided("worker02", **full))
    async with client(fleet.hub) as http:
        now = await planned(http)
        copied = await planned(http, whatIf={"add": [{"name": "worker03", "like": "worker01"}]})
    assert now["placements"] == []
    assert {cluster for _, cluster, _ in devices(copied)} == {"worker03"}
