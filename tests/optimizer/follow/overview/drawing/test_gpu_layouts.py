"""GPUs as they are drawn: by inventory, policies or labels; what is reserved; bad counts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.kube.port import Object
from optimizer.domain.mig.geometry import GEOMETRIES, Geometry
from optimizer.domain.mig.layouts import layouts_with_counts, packed_gpus
from optimizer.follow.overview.fleet_facts import FleetFacts
from optimizer.follow.overview.fleet_matrix import FleetMatrix, MatrixRows, fleet_matrix
from optimizer.snapshot import drawn_gpus
from optimizer.snapshot.observation import Observation
from optimizer.wire.placement_status import BoundPolicy, PlacementStatus, WorkloadLanding
from tests.optimizer.build import NOW, managed_cluster, policy, workload
from tests.optimizer.follow.overview.test_capacity import group, inventory
from tests.optimizer.follow.overview.test_fleet_matrix import facts_of_the_guide

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-"
H100 = "NVIDIA-H100-80GB-HBM3"


def facts(
    cluster: Object | None = None,
    *nodes: Object,
    policies: Sequence[Object] = (),
    placed: Sequence[Object] = (),
    **observed: Any,
) -> FleetFacts:
    """A fleet of the cluster `a`, with an inventory if there are nodes."""
    names = [item["metadata"]["name"] for item in policies]
    where: dict[str, Any] = {"cluster": "a", "state": "Landed", "reason": "", "message": ""}
    landings = [WorkloadLanding(workload=i["metadata"]["name"], **where) for i in placed]
    status = PlacementStatus(
        namespace="default",
        landed=True,
        workloads=tuple(landings),
        policies=tuple(BoundPolicy(cluster="a", policy=name) for name in names),
        drift=(),
        unbound_policies=(),
    )
    observation = Observation(
        managed_clusters=(cluster or managed_cluster("a"),),
        policies=tuple(policies),
        workloads=tuple(placed),
        inventories=(inventory("a", *nodes),) if nodes else (),
        observed_at=NOW,
    )
    return FleetFacts("default", observation, status, **observed)


def drawn(found: FleetMatrix) -> list[tuple[str, str, int]]:
    """Model, slices with their starts, and number of the GPUs of the first cluster."""
    return [
        (
            item.model,
            " ".join(f"{part.device}@{part.start}" for part in found.layouts[item.layout].slices),
            item.count,
        )
        for item in found.clusters[0].gpus
    ]


def gpu_node(count: object = 8, /, *, model: str = H100, **advertised: object) -> Object:
    names = {
        GPU if name == "gpu" else MIG + name.removeprefix("g").replace("_", "."): str(amount)
        for name, amount in advertised.items()
    }
    labels = {"nvidia.com/gpu.product": model, "nvidia.com/gpu.count": str(count)}
    return group(names, labels=labels)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (gpu_node(8, gpu=8), [("H100-80GB", "all@0", 8)]),
        (gpu_node(8, g3g_40gb=16), [("H100-80GB", "3g.40gb@0 3g.40gb@4", 8)]),
        (gpu_node(4, g3g_40gb=4), [("H100-80GB", "3g.40gb@4", 4)]),
        (
            gpu_node(2, gpu=1, g1g_10gb=7),
            [
                ("H100-80GB", "all@0", 1),
                ("H100-80GB", ONES := (" ".join(f"1g.10gb@{at}" for at in range(7))), 1),
            ],
        ),
        (gpu_node(2, g1g_10gb=7), [("H100-80GB", ONES, 1), ("H100-80GB", "", 1)]),
        (gpu_node(2, g3g_40gb=40), [("H100-80GB", "", 2)]),
        (gpu_node(14, gpu=14, model=f"{H100}-MIG-1g.10gb"), [("H100-80GB", ONES, 2)]),
        (gpu_node(8, gpu=32, model="Tesla-T4"), [("Tesla-T4", "all@0", 8)]),
        (group({GPU: "3"}, model=""), [("", "all@0", 3)]),
        (group({MIG + "3g.48gb": "2"}, model=""), [("H100-96GB", "3g.48gb@0 3g.48gb@4", 1)]),
        (group({MIG + "1g.10gb": "7"}, model=""), [("", ONES, 1)]),
        (group({MIG + "9g.999gb": "64"}, model=""), [("", "9g.999gb@0", 64)]),
        (gpu_node("many", gpu=999_999_999_999), [("H100-80GB", "all@0", 100_000)]),
        (group({"cpu": "8"}, model=""), []),
    ],
)
def test_an_inventory_tells_how_gpus_are_divided(
    node: Object, expected: list[tuple[str, str, int]]
) -> None:
    found = fleet_matrix(facts(None, node))
    assert drawn(found) == expected
    assert {item.known for item in found.clusters[0].gpus} <= {"Inventory"}


def labelled_cluster(**labels: str) -> Object:
    made = managed_cluster("a")
    made["metadata"]["labels"] = {f"nvidia.com/{k.replace('_', '.')}": v for k, v in labels.items()}
    return made


def with_allocatable(cluster: Object, **amounts: str) -> Object:
    return {
        **cluster,
        "status": {"allocatable": {f"nvidia.com/{k}": v for k, v in amounts.items()}},
    }


LABELLED = labelled_cluster(gpu_product=H100, gpu_count="2")


@pytest.mark.parametrize(
    ("cluster", "policies", "known", "expected"),
    [
        (None, [policy("p", "3g.48gb", 2)], "Policy", [("H100-96GB", "3g.48gb@0 3g.48gb@4", 1)]),
        (None, [policy("p", "all", 4)], "Policy", [("", "all@0", 4)]),
        (None, [policy("p", "quarter", 64)], "Policy", [("", "quarter@0", 64)]),
        (None, [policy("p", "all", 0)], "", []),
        (None, [policy("p", "all", "many")], "", []),
        (LABELLED, [policy("p", "3g.40gb", 2)], "Policy", [("H100-80GB", "3g.40gb@4", 2)]),
        (LABELLED, [policy("p", "all", 3)], "Policy", [("H100-80GB", "all@0", 3)]),
        (LABELLED, [], "Hardware", [("H100-80GB", "", 2)]),
        (
            labelled_cluster(gpu_product=H100, gpu_count="2", mig_config="all-disabled"),
            [],
            "Hardware",
            [("H100-80GB", "all@0", 2)],
        ),
        (labelled_cluster(gpu_product="L40S", gpu_count="x"), [], "", []),
        (with_allocatable(LABELLED, gpu="2"), [], "Hardware", [("H100-80GB", "all@0", 2)]),
        (with_allocatable(managed_cluster("a"), gpu="0"), [], "", []),
        (with_allocatable(managed_cluster("a"), gpu="none"), [], "", []),
        (managed_cluster("a"), [], "", []),
    ],
)
def test_without_an_inventory_policies_tell_or_what_the_cluster_states(
    cluster: Object | None, policies: list[Object], known: str, expected: list[tuple[str, str, int]]
) -> None:
    found = fleet_matrix(facts(cluster, policies=policies))
    assert drawn(found) == expected
    assert {item.known for item in found.clusters[0].gpus} == ({known} if known else set())


def test_a_policy_that_declares_layouts_tells_each_gpu() -> None:
    declared = "0=off,1=1x1g.10gb-1x3g.40gb"
    made = policy("p", "3g.40gb", 1)
    made["metadata"]["annotations"] = {
        "dynamic-scoring.open-cluster-management.io/layouts": declared
    }
    found = fleet_matrix(facts(LABELLED, policies=[made]))
    assert drawn(found) == [("H100-80GB", "all@0", 1), ("H100-80GB", "1g.10gb@0 3g.40gb@4", 1)]


async def test_an_applied_plan_tells_which_workload_reserves_what() -> None:
    found = fleet_matrix(await facts_of_the_guide(applied=True))
    assert {
        (item.device, item.workload, item.amount)
        for cluster in found.clusters
        for item in cluster.occupied
    } == {("3g.48gb", "mwrs-app01", 2), ("3g.48gb", "mwrs-app02", 2)}


def test_pods_tell_what_is_reserved_before_requests_do() -> None:
    half = MIG + "3g.40gb"
    works = [{"name": "w1", "requested": {half: "1"}}, {"name": "theirs", "requested": {half: "2"}}]
    node = {**gpu_node(8, g3g_40gb=16), "count": 3, "requested": {half: "5"}, "works": works}
    placed = [workload("w1", "app01", 9), workload("w2", "app02", 4)]
    found = fleet_matrix(facts(None, node, placed=placed)).clusters[0]
    assert [(item.device, item.workload, item.amount) for item in found.occupied] == [
        ("3g.40gb", "", 12),
        ("3g.40gb", "w1", 3),
        ("3g.40gb", "w2", 4),
    ]


def test_what_pods_do_not_hold_takes_no_place_among_the_occupants() -> None:
    half, names = MIG + "3g.40gb", [f"w{at}" for at in range(drawn_gpus.MAX_OCCUPANTS)]
    works = [{"name": name, "requested": {half: "1"}} for name in names]
    node = {**gpu_node(8, g3g_40gb=8, g1g_10gb=28), "requested": {half: "500"}, "works": works}
    placed = [workload(name, "app01") for name in names]
    found = fleet_matrix(facts(None, node, placed=placed)).clusters[0]
    assert [(item.device, item.workload) for item in found.occupied] == [
        ("3g.40gb", name) for name in sorted(names)
    ]


def test_which_of_several_devices_a_workload_has_is_not_known() -> None:
    placed = [workload("w1", "app01", 2), {**workload("w2", "app02"), "metadata": {"name": "w2"}}]
    found = fleet_matrix(facts(None, gpu_node(2, gpu=1, g3g_40gb=2), placed=placed)).clusters[0]
    assert [(item.device, item.workload, item.amount) for item in found.occupied] == [("", "w1", 2)]


def test_labels_that_make_groups_are_told_region_first() -> None:
    clusters = []
    for number in range(8):
        own = {"name": f"c{number}", "team": f"t{number % 3}", "vendor": "OpenShift", "one": ""}
        clusters.append(managed_cluster(f"c{number}", **own))
        claim = {"name": "region.open-cluster-management.io", "value": f"eu-{number % 2}"}
        both = [{"name": "both", "value": "x"}] if number < 4 else []
        clusters[-1]["metadata"]["labels"] |= {item["name"]: item["value"] for item in both}
        clusters[-1]["status"] = {"clusterClaims": [claim, *both]}
    del clusters[0]["metadata"]["labels"]["one"]
    made = facts()
    seen = FleetFacts("default", Observation(managed_clusters=tuple(clusters)), made.status)
    first = fleet_matrix(seen).clusters[1].labels
    region = {"region.open-cluster-management.io": "eu-1"}
    assert first == {**region, "both": "x", "team": "t1", "one": ""}


@given(geometry=st.sampled_from(GEOMETRIES), data=st.data(), number=st.integers(0, 20))
def test_packed_gpus_have_the_devices_in_legal_layouts(
    geometry: Geometry, data: st.DataObject, number: int
) -> None:
    names = [item.device for item in geometry.profiles]
    amounts = st.one_of(st.integers(0, 9), st.integers(0, 10**12))
    devices: Mapping[str, int] = data.draw(st.dictionaries(st.sampled_from(names), amounts))
    found, have = packed_gpus(geometry, devices, number), Counter[str]()
    for counts, many in found:
        assert layouts_with_counts(geometry, counts)
        for name, amount in counts:
            have[name.replace("+", ".")] += amount * many
    assert have == {name: amount for name, amount in devices.items() if amount}
    assert len(found) <= 8 * len(names)


def test_too_many_layouts_are_left_out_and_forgotten_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_gpus, "MAX_LAYOUTS", 1)
    rows = MatrixRows()
    found = fleet_matrix(facts(None, gpu_node(2, gpu=1, g3g_40gb=2)), rows)
    assert (len(found.layouts), drawn(found)) == (1, [("H100-80GB", "all@0", 1)])
    found = fleet_matrix(facts(None, gpu_node(1, g3g_40gb=2)), rows)
    assert drawn(found) == [("H100-80GB", "3g.40gb@0 3g.40gb@4", 1)]


def test_a_row_changes_with_its_inventory_its_policies_and_its_workloads() -> None:
    rows, cluster = MatrixRows(), managed_cluster("a")
    same = facts(cluster, gpu_node(2, gpu=2))
    assert fleet_matrix(same, rows).clusters[0] is fleet_matrix(same, rows).clusters[0]
    assert drawn(fleet_matrix(facts(cluster, gpu_node(4, gpu=4)), rows))[0][2] == 4
    for amount in (1, 3):
        enforced = facts(cluster, policies=[policy("p", amount=amount)])
        assert drawn(fleet_matrix(enforced, rows))[0][2] == amount
    for amount in (1, 3):
        row = fleet_matrix(facts(cluster, placed=[workload("w", "app01", amount)]), rows)
        assert [item.amount for item in row.clusters[0].occupied] == [amount]


def test_hostile_names_and_numbers_are_told_cut() -> None:
    node = group({MIG + f"x{at}" * 80: "1e99" for at in range(200)}, model="<b>" * 90)
    found = fleet_matrix(facts(managed_cluster("a" * 253), node))
    assert len(found.model_dump_json()) < 100_000
