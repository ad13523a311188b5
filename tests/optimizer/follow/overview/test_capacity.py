"""What NodeInventories tell of: sums, the largest free piece, what is idle, and bad inventories."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.times import rfc3339
from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE
from dsf.kube.port import Object
from optimizer.follow.overview.capacity import (
    MAX_FLEET_RESOURCES,
    MAX_RESOURCES,
    ClusterCapacity,
    ResourceCapacity,
    capacities,
    fleet_capacity,
    largest_first,
    shown_amount,
)
from optimizer.follow.overview.findings.fleet_findings import findings
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.placement_status.comparison import placement_status
from optimizer.snapshot.scores.score_row import ScoreRow
from tests.optimizer.build import NOW, guide, obj
from tests.optimizer.inventoried_nodes import inventory as inventory_of
from tests.optimizer.inventoried_nodes import node, texts

GPU, MIG, MODEL = "nvidia.com/gpu", "nvidia.com/mig-3g.40gb", "A100-40GB"
PRODUCT = "NVIDIA-A100-SXM4-40GB"
"""What a node's label says of the model."""


def group(
    allocatable: Mapping[str, Any],
    requested: Mapping[str, Any] = {},
    works: tuple[Mapping[str, Any], ...] = (),
    *,
    model: str = PRODUCT,
    **fields: Any,
) -> Object:
    """Equal nodes of an inventory; what `works` request is part of `requested`."""
    labels = {"nvidia.com/gpu.product": model} if model else {}
    own = [{"name": f"work{n}", "requested": texts(work)} for n, work in enumerate(works)]
    stated = {"labels": labels, "requested": texts(requested), "works": own}
    return {**node(allocatable), **stated, **fields}


def inventory(
    cluster: str, *nodes: Any, age: float = 10, now: datetime = NOW, **status: Any
) -> Object:
    """An inventory that was confirmed `age` seconds before a time."""
    return inventory_of(cluster, nodes, (NOW - now).total_seconds() + age, **status)


def idle_score(cluster: str, *, age: float = 0, **shares: int) -> ScoreRow:
    until = rfc3339(NOW + timedelta(seconds=60 - age))
    entries = [{"name": name.replace("_", "."), "value": value} for name, value in shares.items()]
    status = {"scores": entries, "validUntil": until}
    return ScoreRow(obj(ADD_ON_PLACEMENT_SCORE, "gpu-idle", cluster, status=status))


def seen(*nodes: Any, idle: tuple[ScoreRow, ...] = (), **changed: Any) -> Any:
    return capacities(["a"], [inventory("a", *nodes, **changed)], idle, NOW)["a"]


def amounts(row: ResourceCapacity) -> tuple[float, ...]:
    return row.capacity, row.ours, row.others, row.free, row.largest_free, row.unavailable


FULL, HALF = {GPU: "8", "cpu": "64"}, {GPU: "4", "cpu": "32"}


@pytest.mark.parametrize(
    ("nodes", "gpus"),
    [
        ([group(FULL)], (8, 0, 0, 8, 8, 0)),
        ([group(FULL, {GPU: "6"}, ({GPU: "1"}, {GPU: "3"}))], (8, 4, 2, 2, 2, 0)),
        ([group(FULL, {GPU: "6"}, count=3)], (24, 0, 18, 6, 2, 0)),
        ([group(FULL, {GPU: "7"}), group(HALF, {GPU: "1"})], (12, 0, 8, 4, 3, 0)),
        ([group(FULL, ready=False), group(HALF, unschedulable=True)], (0, 0, 0, 0, 0, 12)),
        ([group(FULL, {GPU: "9"})], (8, 0, 9, 0, 0, 0)),
        ([group(FULL, {GPU: "2"}, ({GPU: "5"},))], (8, 2, 0, 6, 6, 0)),
        ([group({GPU: "0", "cpu": "64"})], None),
        ([], None),
    ],
)
def test_the_gpus_of_a_cluster(nodes: list[Object], gpus: tuple[float, ...] | None) -> None:
    found = [amounts(row) for row in seen(*nodes).resources if row.resource == GPU]
    assert found == ([gpus] if gpus else [])


def test_devices_come_first_apart_by_model_and_what_is_no_device_is_left_out() -> None:
    many = {"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "1Ti", MIG: "2"}
    found = seen(group(many), group({GPU: "1", "cpu": "500m"}, model=""), group({GPU: "2"}))
    assert [(row.resource, row.model, row.capacity) for row in found.resources] == [
        (GPU, "", 1),
        (GPU, MODEL, 2),
        (MIG, MODEL, 2),
        ("cpu", "", 8.5),
        ("memory", "", 2**34),
    ]
    many = seen(*(group({f"example.com/d{n}": "1", "cpu": "1"}) for n in range(40)))
    assert len(many.resources) == MAX_RESOURCES


@pytest.mark.parametrize(
    ("resource", "amount", "shown"),
    [
        (GPU, 2.5, "2.5"),
        ("cpu", 1_234_567.5, "1234568"),
        ("cpu", 999_999.7, "1000000"),
        ("memory", 1.5 * 2**30, "1.5Gi"),
        ("memory", 11_264 * 2**30, "11264Gi"),
    ],
)
def test_no_amount_is_shown_with_an_exponent(resource: str, amount: float, shown: str) -> None:
    assert shown_amount(resource, amount) == shown


@pytest.mark.parametrize(
    "wrong",
    [
        group({GPU: "-8"}),
        group({GPU: "1e30"}),
        group(FULL, {GPU: "many"}),
        group(FULL, {GPU: "1"}, ({GPU: "NaN"},)),
        group(FULL, count=10**9),
        {**group(FULL), "devices": [{"set": "none", "count": 1, "allocated": [{"device": 0}]}]},
    ],
)
def test_nothing_is_told_of_an_inventory_that_can_not_be_read_but_why(wrong: Object) -> None:
    found = seen(group(FULL), wrong, deviceSets=[{"name": "none", "driver": "d", "devices": []}])
    assert "status.nodes" in found.unreadable
    assert (found.resources, found.current) == ((), False)
    assert fleet_capacity([found]).resources == ()


def test_an_inventory_says_whether_it_is_whole_and_until_when_it_counts() -> None:
    merged = {"type": "Complete", "status": "False", "reason": "NodesMerged"}
    assert not seen(conditions=[merged]).complete
    assert [seen(age=age).current for age in (179, 180)] == [True, False]
    assert seen(observedTime=None).unreadable


def test_idle_is_the_share_of_what_is_reserved_as_long_as_it_is_measured() -> None:
    nodes = group({GPU: "8", MIG: "4", "cpu": "1"}, {GPU: "6", MIG: "1", "cpu": "1"})

    def hours(*idle: ScoreRow) -> dict[str, float | None]:
        return {row.resource: row.idle for row in seen(nodes, idle=idle).resources}

    measured = idle_score("a", all=50, **{"3g_40gb": 0, "cpu": 90})
    assert hours(measured) == {GPU: 72.0, MIG: 0.0, "cpu": None}
    for unknown in (idle_score("a", age=60, all=50), idle_score("b", all=50)):
        assert hours(unknown)[GPU] is None
    assert [hours(idle_score("a", all=value))[GPU] for value in (-1, 101)] == [None, None]
    single = group({GPU: "7"}, {GPU: "2"}, model=f"{PRODUCT}-MIG-1g.10gb.me")
    (shown,) = seen(single, idle=(idle_score("a", **{"1g_10gb+me": 50}),)).resources
    assert shown.idle == 24


def test_a_fleet_is_the_sum_of_what_is_current_and_names_the_largest_free_piece() -> None:
    known = capacities(
        ["a", "b", "c", "d"],
        [
            inventory("a", group(FULL, {GPU: "6"})),
            inventory("b", group(FULL, {GPU: "4"}, ({GPU: "4"},), count=2)),
            inventory("c", group({GPU: "64"}), age=500),
            inventory("gone", group({GPU: "64"})),
        ],
        [idle_score("a", all=50), idle_score("b", all=25)],
        NOW,
    )
    fleet = fleet_capacity(known.values(), without=["d"])
    assert (fleet.current, fleet.expired) == (2, 1)
    assert fleet.not_counted == (
        "1 cluster whose NodeInventory has expired (c; last seen: 64 nvidia.com/gpu);"
        " 1 cluster without a NodeInventory (d)"
    )
    gpu, cpu = fleet.resources
    assert amounts(gpu) == (24, 8, 6, 10, 4, 0)
    assert (gpu.model, gpu.largest_on, gpu.idle) == (MODEL, "b", 120.0)
    assert (cpu.resource, cpu.capacity, cpu.idle) == ("cpu", 192, None)
    assert [item.cluster for item in largest_first(known.values())] == ["b", "a", "c"]
    full = capacities(["a"], [inventory("a", group({GPU: "1"}, {GPU: "1"}))], (), NOW)
    assert fleet_capacity(full.values()).resources[0].largest_on == ""


def test_a_fleet_of_5000_clusters_and_as_many_models_is_bounded() -> None:
    names = [f"{number:04}" + "x" * 249 for number in range(5000)]
    inventories = [inventory(name, group({GPU: "8"}, model=f"\x1b{name}")) for name in names]
    fleet = fleet_capacity(capacities(names, inventories, (), NOW).values())
    assert len(fleet.resources) == MAX_FLEET_RESOURCES
    assert fleet.omitted == 5000 - MAX_FLEET_RESOURCES
    assert "\x1b" not in f"{fleet.resources[0].model}"
    (shown,) = seen(group({GPU: "8", f"example.com/{'d' * 999}": "1"}, model="m" * 999)).resources
    assert (shown.resource, len(shown.model)) == (GPU, 63)


INCOMPLETE = {"type": "Complete", "status": "False", "reason": "NodesMerged", "message": "1"}


@pytest.mark.parametrize(
    ("groups", "status", "reasons"),
    [
        ([group({GPU: "4"}), group({GPU: "4"}, ready=False)], {}, set()),
        ([group({GPU: "4"}, ready=False), group({}, unschedulable=True)], {}, {"NodesUnavailable"}),
        ([group({GPU: "4"})], {"conditions": [INCOMPLETE]}, {"InventoryIncomplete"}),
        ([group({GPU: "4"}, ready=False)], {"age": 181}, {"InventoryExpired"}),
        ([group({GPU: "-4"}, ready=False)], {}, {"InvalidInventory"}),
    ],
)
def test_nodes_on_which_nothing_starts_and_what_is_not_counted_are_findings(
    groups: list[Object], status: dict[str, Any], reasons: set[str]
) -> None:
    """An inventory that plans do not rely on says nothing of nodes."""
    seen = replace(
        guide(), inventories=(inventory("worker01", *groups, **status),), observed_at=NOW
    )
    found = findings(FleetFacts("default", seen, placement_status(seen, "default")))
    assert {item.reason for item in found if item.stage == "cluster"} == reasons


QUANTITIES = st.sampled_from(["0", "1", "3", "8", "500m", "1e3"] * 9 + ["-1", "NaN", "", "9" * 40])
NAMES = st.sampled_from([GPU, MIG, "cpu", "memory", "pods"])
AMOUNTS = st.dictionaries(NAMES, QUANTITIES)
NODES = st.builds(
    group,
    AMOUNTS,
    AMOUNTS,
    st.lists(AMOUNTS, max_size=3).map(tuple),
    count=st.sampled_from([1, 2, 500]),
    ready=st.booleans(),
    unschedulable=st.booleans(),
)


@given(st.lists(NODES, max_size=5))
def test_nothing_is_free_that_nodes_do_not_have(nodes: list[Object]) -> None:
    found = seen(*nodes)
    for row in found.resources:
        every = amounts(row)
        assert all(0 <= amount < float("inf") for amount in every)
        assert row.free <= row.capacity <= row.reserved + row.free + 1e-6
        assert row.largest_free <= row.free or row.free == row.largest_free == 0
    assert found.unavailable_nodes <= found.nodes


def test_a_cluster_with_many_devices_is_shown_in_parts() -> None:
    rows = tuple(
        ResourceCapacity(resource=f"a.b/{n}", capacity=1, ours=0, others=0, free=1, largest_free=1)
        for n in range(7)
    )
    parts = [*ClusterCapacity(cluster="worker01", resources=rows).parts(3)]
    assert [len(item.resources) for item in parts] == [3, 3, 1]
    assert tuple(row for item in parts for row in item.resources) == rows
