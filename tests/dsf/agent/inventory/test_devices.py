"""Devices of nodes from ResourceSlices and ResourceClaims."""

from collections.abc import Iterable
from typing import Any

import pytest

from dsf.agent.inventory.device_classes import list_device_classes, read_class
from dsf.agent.inventory.device_pools import read_slice
from dsf.agent.inventory.devices import DeviceSummary, read_claim, summarize_devices
from tests.device_slices import (
    claim,
    counters,
    device_class,
    mig_slice,
    nvidia_classes,
    plain_gpu,
    resource_slice,
)


def summarized(slices: Iterable[Any], claims: Iterable[Any] = ()) -> DeviceSummary:
    works = {("shop", "a"): "app01"}
    return summarize_devices(map(read_slice, slices), map(read_claim, claims), works)


def test_equal_gpus_of_all_nodes_are_one_set() -> None:
    slices = [mig_slice(f"node-{number}", gpus=8) for number in range(3)]
    found = summarized(slices)
    (only,) = found.sets
    assert found.problems == ()
    assert [[(part.set, part.count) for part in parts] for parts in found.nodes.values()] == [
        [(only["name"], 8)]
    ] * 3
    assert only["counters"] == {"0.multiprocessors": "98"} | {
        f"0.memory-slice-{place}": "1" for place in range(8)
    }
    whole, first, *_ = only["devices"]
    assert whole["consumes"] == only["counters"]
    assert whole["identities"] == {"uuid": 0, "resource.kubernetes.io/pciBusID": 0}
    assert first["consumes"] == {"0.multiprocessors": "14", "0.memory-slice-0": "1"}
    assert first["strings"]["profile"] == "1g.5gb"
    assert first["capacity"] == {"memory": "5Gi", "multiprocessors": "14"}
    assert first["versions"] == {"driverVersion": "580.65.6"}
    assert {tuple(one["identities"].items()) for one in only["devices"][1:]} == {
        (("parentUUID", 0), ("resource.kubernetes.io/pciBusID", 0))
    }


def test_what_claims_have_is_allocated_to_the_work_of_their_pod() -> None:
    claims = [
        claim("ours", "node-0", "gpu-0-mig-1g5gb-0", pods=["a"]),
        claim("theirs", "node-0", "gpu-0-mig-1g5gb-1", "gpu-0-mig-1g5gb-2", pods=["x"]),
        claim("both", "node-0", "gpu-0-mig-1g5gb-3", pods=["a", "x"]),
        claim("looks", "node-0", "gpu-0-mig-1g5gb-4", adminAccess=True),
        claim("gone", "node-0", "gpu-7", pods=["a"]),
    ]
    owned = claim("owned", "node-0", "gpu-0-mig-1g5gb-5")
    owned["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "a"}]
    found = summarized([mig_slice("node-0")], [*claims, owned])
    (part,) = found.nodes["node-0"]
    assert part.allocated == ((1, "app01"), (2, ""), (3, ""), (4, ""), (6, "app01"))


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old = resource_slice("node", [plain_gpu(0, "node"), plain_gpu(1, "node")], number=0)
    new = resource_slice("node", [plain_gpu(0, "node")], generation=2, number=1)
    (part,) = summarized([new, old]).nodes["node"]
    assert part.count == 1
    part_of_two = resource_slice("node", [plain_gpu(0, "node")], generation=3, count=2, number=2)
    found = summarized([new, old, part_of_two])
    assert not found.nodes
    assert found.problems == (
        "pool node of gpu.nvidia.com gives no devices: 1 of 2 ResourceSlices are there",
    )


def test_counters_may_be_in_a_slice_of_their_own() -> None:
    whole = mig_slice("node", gpus=2)
    shared = resource_slice(
        "node", [], count=2, number=1, sharedCounters=whole["spec"].pop("sharedCounters")
    )
    whole["spec"]["pool"]["resourceSliceCount"] = 2
    found = summarized([whole, shared])
    assert found.problems == ()
    assert [part.count for part in found.nodes["node"]] == [2]


@pytest.mark.parametrize(
    "changes",
    [
        {"taints": [{"key": "xid", "effect": "NoSchedule"}]},
        {"bindingConditions": ["attached"]},
        {"allowMultipleAllocations": True},
    ],
)
def test_devices_that_not_each_claim_gets_are_unavailable(changes: dict[str, Any]) -> None:
    found = summarized([resource_slice("node", [plain_gpu(0, "node") | changes])])
    assert [part.unavailable for part in found.nodes["node"]] == [(0,)]


def _device(**changes: Any) -> dict[str, Any]:
    return plain_gpu(0, "node") | changes


def _takes(name: str, **amounts: str) -> dict[str, Any]:
    takes = {counter: {"value": amount} for counter, amount in amounts.items()}
    return _device(consumesCounters=[{"counterSet": name, "counters": takes}])


_SHARED = {"sharedCounters": [{"name": "all", "counters": counters(98, [])}]}


@pytest.mark.parametrize(
    ("devices", "spec", "problem"),
    [
        (
            [{"name": f"gpu-{number}"} for number in range(10_000)],
            {},
            "it has 10000 devices, of which at most 1024 are read",
        ),
        ([_device(), _device()], {}, "two of its devices have the same name"),
        ([_device()], {"allNodes": True}, "several nodes share its devices, which are not counted"),
        (
            [_device(capacity={"memory": {"value": "-1"}})],
            {},
            "capacity memory of device gpu-0 is '-1', which is not an amount",
        ),
        (
            [_device(attributes={"type": {"list": ["a"]}})],
            {},
            "attribute type of device gpu-0 has no value of a known type",
        ),
        (
            [_takes("none", multiprocessors="1")],
            _SHARED,
            "device gpu-0 consumes counters of none, which is not there",
        ),
        ([_takes("all", slices="1")], _SHARED, "device gpu-0 consumes slices, which all has not"),
        (
            [_takes("all", multiprocessors="1e30")],
            _SHARED,
            "counter multiprocessors of device gpu-0 is '1e30', which is not an amount",
        ),
        (
            [_device()],
            {"sharedCounters": [{"name": "all", "counters": {"x": {"value": "NaN"}}}]},
            "counter x of all is 'NaN', which is not an amount",
        ),
    ],
)
def test_a_hostile_pool_is_named_and_gives_nothing(
    devices: list[Any], spec: dict[str, Any], problem: str
) -> None:
    good = resource_slice("other", [plain_gpu(0, "other")])
    found = summarized([resource_slice("node", devices, **spec), good])
    assert found.problems == (f"pool node of gpu.nvidia.com gives no devices: {problem}",)
    assert list(found.nodes) == ["other"]


def test_devices_of_one_set_on_two_nodes_are_not_counted() -> None:
    devices = [
        _takes("all", multiprocessors="1") | {"name": f"gpu-{node}", "nodeName": node}
        for node in ("a", "b")
    ]
    spec = {"perDeviceNodeSelection": True}
    found = summarized([resource_slice("pool", devices, **spec, **_SHARED)])
    assert "several nodes share" in found.problems[0]
    alone = [plain_gpu(0, "a") | {"name": node, "nodeName": node} for node in ("a", "b")]
    found = summarized([resource_slice("pool", alone, **spec)])
    assert [[part.count for part in parts] for parts in found.nodes.values()] == [[1], [1]]


def test_more_different_devices_than_an_inventory_lists_are_named() -> None:
    slices = [
        resource_slice(
            f"n{number}",
            [
                {"name": f"d{one}", "capacity": {"memory": {"value": f"{number * 100 + one}"}}}
                for one in range(100)
            ],
        )
        for number in range(11)
    ]
    found = summarized([mig_slice("m0"), mig_slice("m1"), *slices])
    assert sum(len(part["devices"]) for part in found.sets) == 1_000
    (problem,) = found.problems
    assert problem.startswith("114 of 1101 device sets are not listed, because an inventory lists")
    assert {part.count for part in found.nodes["m0"]} == {1}


def test_device_classes_are_listed_with_selectors_that_can_be_read() -> None:
    odd = device_class("odd")
    odd["spec"]["selectors"] = [{"sql": "select"}]
    classes = [*nvidia_classes(), odd, device_class("long", "x" * 2_049), device_class("any")]
    found, problems = list_device_classes(map(read_class, classes))
    assert [(item["name"], item.get("extendedResourceName")) for item in found] == [
        ("any", None),
        ("gpu.nvidia.com", "nvidia.com/gpu"),
        ("mig.nvidia.com", None),
    ]
    assert problems == [
        "DeviceClass long has a selector of more than 2048 characters",
        "DeviceClass odd has a selector that is not CEL",
    ]


def test_more_device_classes_than_an_inventory_lists_are_named() -> None:
    many = [read_class(device_class(f"c{number:03}")) for number in range(201)]
    found, problems = list_device_classes(many)
    assert len(found) == 200
    assert problems == ["DeviceClass c200 is not listed: 200 classes and 64 KiB are listed"]
    large = [read_class(device_class(f"c{number:03}", "x" * 2_048)) for number in range(33)]
    found, problems = list_device_classes(large)
    assert (len(found), len(problems)) == (32, 1)
