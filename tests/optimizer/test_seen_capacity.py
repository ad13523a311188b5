"""Plans with NodeInventories: what nodes have left counts, and contradictions are issues."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.api.names import GROUP
from dsf.kube import kinds
from dsf.kube.embedded import EmbeddedHub
from dsf.kube.errors import Forbidden, Invalid
from dsf.kube.port import Object
from optimizer.model.formulate import formulate
from optimizer.plan.plan import Plan
from optimizer.service.optimizer import Optimizer
from optimizer.snapshot.capacity.seen_capacity import STARTING
from optimizer.solve.greedy import greedy
from optimizer.wire.request import OptimizeRequest
from tests.kube_wrappers.fault_injection import Fault, Faulty
from tests.kube_wrappers.wrapper import Call
from tests.optimizer.build import NOW, guide, read_fleet, request, workload
from tests.optimizer.hubs import hub_of
from tests.optimizer.inventoried_nodes import (
    GH200,
    GPU,
    MIG,
    compliant,
    deploying,
    deployment,
    inventory,
    node,
    publish_nodes,
)
from tests.optimizer.neighbours import applied, planned, work_of
from tests.optimizer.test_not_alone import reasons

SINGLE = {"nvidia.com/gpu.product": "NVIDIA-GH200-480GB-MIG-3g.48gb"}
"""A node whose GPUs are MIG devices, by strategy `single`."""


def alone(cluster: str = "worker01", **fields: Any) -> dict[str, Any]:
    """A cluster of a request without policies."""
    return {"name": cluster, **fields}


def asking(*clusters: dict[str, Any], **changed: Any) -> OptimizeRequest:
    return request(clusters=list(clusters or [alone(), alone("worker02")]), **changed)


async def hub_with(
    *inventories: Object, workloads: tuple[Object, ...] = (), settled: bool = True
) -> EmbeddedHub:
    """The guide's hub with inventories."""
    found = guide()
    if settled:
        found = replace(found, managed_clusters=(compliant("worker01"), compliant("worker02")))
    if workloads:
        found = replace(found, workloads=workloads)
    hub = await hub_of(found)
    await publish_nodes(hub, *inventories)
    return hub


def places(plan: Plan) -> set[tuple[str, str, str]]:
    return {(item.workload, item.cluster, item.device) for item in plan.placements}


async def test_an_agent_tells_of_no_other_cluster() -> None:
    """It can create objects in its cluster's namespace, also one with the name of another."""
    hub = await hub_with(inventory("worker01", [node({GPU: 1})]))
    spoofed = inventory("worker01", [node({GPU: 64})])
    spoofed["metadata"]["namespace"] = "worker02"
    await hub.create(kinds.NODE_INVENTORY, {**spoofed, "status": {}})
    status = {"status": spoofed["status"]}
    await hub.patch(kinds.NODE_INVENTORY, "worker01", status, "worker02", subresource="status")
    assert not (await planned(hub, asking())).placements


async def test_an_agent_of_another_version_adds_no_capacity() -> None:
    """One publishes nothing, and one knows more fields. What lacks a field is not stored at all."""
    later = {**node({GPU: 2}), "quantum": "9"}
    hub = await hub_with(inventory("worker01", [later], power={"watts": "1"}))
    assert {cluster for _, cluster, _ in places(await planned(hub, asking()))} == {"worker01"}
    del later["requested"]
    with pytest.raises(Invalid, match=r"status\.nodes\[0\]\.requested"):
        await publish_nodes(hub, inventory("worker01", [later]))


async def test_gpus_without_a_policy_are_what_nodes_have_left() -> None:
    hub = await hub_with(
        inventory("worker01", [node({GPU: 4}, {GPU: 1}), node({GPU: 4}, {GPU: 4})]),
        inventory("worker02", [node({GPU: 2}, ready=False), node({GPU: 2}, unschedulable=True)]),
    )
    made = await planned(hub, asking())
    assert places(made) == {("mwrs-app01", "worker01", "all")}
    assert reasons(made)["UsedWithoutTheHub"] == [
        (
            "cluster worker01: 5 gpu of all are requested by Pods of no ManifestWork"
            " (NodeInventory), which is not planned again"
        )
    ]
    why = (
        "cluster worker02: 4 gpu of all are on nodes that are not ready or cordoned"
        " (NodeInventory): nothing new starts there"
    )
    assert reasons(made)["NodesUnavailable"] == [why]
    (left,) = made.unplaced
    assert left.message.endswith(why)


@pytest.mark.parametrize(
    ("there", "limit"),
    [
        (node({GPU: 2}, {GPU: 2}), " (held by Pods of no ManifestWork)"),
        (node({GPU: 2}, unschedulable=True), ", as nodes with more are cordoned or not ready"),
    ],
)
async def test_gpus_of_others_and_of_cordoned_nodes_are_not_told_as_none(
    there: Object, limit: str
) -> None:
    hub = await hub_with(inventory("worker01", [there]))
    why_not = [{"cluster": "worker01", "workload": "mwrs-app01"}]
    made = await planned(hub, asking(alone(), explain=True, whyNot=why_not))
    (issue,) = made.issues
    assert made.unplaced[0].message == (
        f"workload mwrs-app01: it requests 2 gpu, and no cluster has gpu free; {issue.message}"
    )
    assert made.explanation is not None
    (answer,) = made.explanation.why_not
    assert answer.message == f"cluster worker01 has no gpu free. {issue.message}"
    (found,) = made.explanation.unplaced[0].limits
    assert found.message == f"cluster worker01 has no gpu free{limit}"


@pytest.mark.parametrize(
    ("held", "policy", "free"),
    [
        (2, "3g.48gb", "0 of 2 gpu 3g.48gb"),
        (1, "3g.48gb", "1 of 2 gpu 3g.48gb"),
        (2, "2g.24gb", "0 of 3 gpu 2g.24gb"),
    ],
)
async def test_gpus_of_others_are_not_told_as_what_policies_lack(
    held: int, policy: str, free: str
) -> None:
    hub = await hub_with(inventory("worker01", [node({MIG: 2}, {MIG: held}, labels=GH200)]))
    cluster = alone(availablePolicies=[{"name": f"{policy}-worker01"}])
    why_not = [{"cluster": "worker01", "workload": "mwrs-app01"}]
    made = await planned(hub, asking(cluster, explain=True, whyNot=why_not))
    (issue,) = made.issues
    left, of, most, *_ = free.split()
    assert made.unplaced[0].message == (
        f"workload mwrs-app01: it requests 2 gpu; the most that a cluster can have is {left} {of}"
        f" {policy} (cluster worker01; {most} without what others hold); {issue.message}"
    )
    assert made.explanation is not None
    (answer,) = made.explanation.why_not
    said = f"NoSupply: cluster worker01 has only {free} free. {issue.message}"
    assert answer.message == said
    (found,) = made.explanation.unplaced[0].limits
    assert found.message == f"cluster worker01 has {free} free (held by Pods of no ManifestWork)"


async def test_what_others_took_is_told_only_to_who_asks_for_it() -> None:
    """One whose Pods name whole GPUs is not told that others use MIG devices and processors."""
    hub = await hub_with(
        inventory("worker01", [node({GPU: 2, "cpu": 8}, {"cpu": 2, GPU: 1})]),
        inventory("worker02", [node({GPU: 1, MIG: 4, "cpu": 8}, {"cpu": 3, MIG: 1})]),
        workloads=(
            deploying("mwrs-app01", "app01", 5, deployment(gpu=5)),
            workload("mwrs-app02", "app02", 2),
        ),
    )
    second = {"name": "mwrs-app02", "requests": "cpu=7"}
    made = await planned(hub, asking(targetWorkloads=[{"name": "mwrs-app01"}, second]))
    whole, any_device = (item.message for item in made.unplaced)
    of_first, of_second = reasons(made)["UsedWithoutTheHub"]
    assert whole.endswith(f"(cluster worker01; 2 without what others hold); {of_first}")
    assert any_device.endswith(f"{of_first}; {of_second}")


@pytest.mark.parametrize(
    ("nodes", "most"),
    [
        ([node({GPU: 1, MIG: 4})], "1 of all"),
        ([node({GPU: 1, MIG: 4}), node({GPU: 2}, labels=SINGLE)], "4 of 3g.48gb"),
    ],
)
async def test_pods_that_request_gpus_have_no_mig_device_that_nodes_name(
    nodes: list[Object], most: str
) -> None:
    """Unless nodes anywhere advertise MIG devices as GPUs, which strategy `single` does."""
    hub = await hub_with(
        inventory("worker01", [nodes[0]]),
        inventory("worker02", nodes[1:] or [node({GPU: 1})]),
        workloads=(deploying("mwrs-app01", "app01", 5, deployment(gpu=5)),),
    )
    made = await planned(hub, asking(targetWorkloads=[{"name": "mwrs-app01"}]))
    (left,) = made.unplaced
    assert f"the most that a cluster can have is {most}" in left.message


async def test_without_an_inventory_only_what_is_stated_counts() -> None:
    hub = await hub_with()
    assert places(await planned(hub, asking())) == set()
    assert (await planned(hub, request())).solution.objective_value == 115


RUNNING = {"mwrs-app01": {GPU: 2}}


@pytest.mark.parametrize(
    ("seen", "stays"),
    [
        (inventory("worker01", [node({GPU: 2}, works=RUNNING)]), True),
        (inventory("worker01", [node({GPU: 2}, works=RUNNING, unschedulable=True)]), True),
        # The kubelet or the device plugin restarts.
        (inventory("worker01", [node({GPU: 2}, works=RUNNING, ready=False)]), True),
        (inventory("worker01", [node({GPU: 0}, works=RUNNING)]), True),
        (inventory("worker01", [node({}, works=RUNNING)]), True),
        # What the inventory says is not relied on.
        (inventory("worker01", [], age=181), True),
        (inventory("worker01", [node({GPU: 4}, {GPU: 4})], age=181), True),
        (inventory("worker01", [node({GPU: -2})]), True),
        (inventory("worker01", [], observedTime=None), True),
        # Its Pods are on no node, and others took one of the GPUs.
        (inventory("worker01", [node({GPU: 2}, {GPU: 1})]), False),
    ],
)
async def test_what_runs_already_stays_where_it_holds_its_nodes(
    seen: Object, *, stays: bool
) -> None:
    hub = await hub_with(
        inventory("worker01", [node({GPU: 2})]), inventory("worker02", [node({GPU: 2})])
    )
    one = {"targetWorkloads": [{"name": "mwrs-app01"}]}
    await applied(hub, asking(alone(), **one))
    await work_of(hub, "mwrs-app01", "worker01", "app01-placement")
    await publish_nodes(hub, seen)
    where = "worker01" if stays else "worker02"
    assert places(await planned(hub, asking(**one))) == {("mwrs-app01", where, "all")}
    alone_there = {("mwrs-app01", "worker01", "all")} if stays else set()
    assert places(await planned(hub, asking(alone()))) == alone_there


async def test_a_work_of_others_counts_once_whether_or_not_its_pods_are_seen() -> None:
    hub = await hub_with(inventory("worker01", [node({GPU: 4})]))
    ours, theirs = (
        asking(alone(), targetWorkloads=[{"name": "mwrs-app02"}]),
        asking(alone(), targetWorkloads=[{"name": "mwrs-app01"}], optimization="second"),
    )
    await applied(hub, theirs)
    await work_of(hub, "mwrs-app01", "worker01", "app01-placement")
    for nodes in ([node({GPU: 4})], [node({GPU: 4}, works={"mwrs-app01": {GPU: 2}})]):
        await publish_nodes(hub, inventory("worker01", nodes))
        assert places(await planned(hub, ours)) == {("mwrs-app02", "worker01", "all")}
    nodes = [node({GPU: 3}, works={"mwrs-app01": {GPU: 2}})]
    await publish_nodes(hub, inventory("worker01", nodes))
    assert places(await planned(hub, ours)) == set()


@pytest.mark.parametrize(
    ("stated", "amount", "reason"),
    [
        ("gpu/all=8", 8, True),
        ("gpu/all=4", 4, False),  # UsedWithoutTheHub says that a Pod of others uses one
        ("gpu/all=2,license=1", 2, False),
    ],
)
async def test_what_is_stated_counts_as_far_as_nodes_have_it(
    stated: str, amount: int, reason: bool
) -> None:
    hub = await hub_with(inventory("worker01", [node({GPU: 4}, {GPU: 1})]))
    made = await planned(hub, asking(alone(allocatable=stated)))
    found = reasons(made).get("SupplyContradicted", [])
    assert found == (
        [
            (
                "cluster worker01: 8 gpu of all without a policy are stated, and its nodes have 4"
                " (NodeInventory); the smaller counts"
            )
        ]
        if reason
        else []
    )
    assert len(places(made)) == 1
    trusted = await planned(hub, asking(alone(allocatable=stated, capacitySource="Stated")))
    assert len(places(trusted)) == min(2, amount // 2)
    assert not reasons(trusted).keys() & {"SupplyContradicted", "UsedWithoutTheHub"}


async def test_a_policy_that_is_not_in_force_supplies_what_gpus_can_become() -> None:
    """One of the two GPUs of worker02 runs a Pod of a stranger; worker01 has no such devices."""
    labels = {**GH200, "nvidia.com/gpu.count": "2"}
    hub = await hub_with(
        inventory("worker01", [node({GPU: 1}, labels={**GH200, "nvidia.com/gpu.product": "A30"})]),
        inventory("worker02", [node({GPU: 2}, {GPU: 1}, labels=labels)]),
    )
    made = await planned(hub, request())
    assert made.policies == {"worker02": "3g.48gb-worker02"}
    found = " ".join(reasons(made)["SupplyContradicted"])
    assert (
        "cluster worker01: policy 3g.48gb-worker01 supplies 2 gpu of 3g.48gb, and the GPUs"
        " of its nodes allow 0 (NodeInventory); the smaller counts"
    ) in found
    assert "worker02" not in found


@pytest.mark.parametrize("labels", [{**GH200, "nvidia.com/gpu.count": "1"}, {"a": "b"}])
@pytest.mark.parametrize("closed", [0, 2], ids=["", "beside a cordoned node"])
@pytest.mark.parametrize(("taken", "placed"), [(0, 1), (1, 0)])
async def test_a_policy_that_nodes_are_divided_by_already_supplies_what_is_left(
    labels: dict[str, str], taken: int, placed: int, closed: int
) -> None:
    device = "nvidia.com/mig-3g.48gb"
    nodes = [node({device: 2}, {device: taken}, labels=labels)]
    nodes += [node({device: closed}, labels=labels, unschedulable=True)] if closed else []
    hub = await hub_with(inventory("worker01", nodes))
    asked = alone(availablePolicies=[{"name": "3g.48gb-worker01"}])
    assert len(places(await planned(hub, asking(asked)))) == placed


async def test_a_policy_in_force_supplies_what_nodes_advertise_once_it_is_compliant() -> None:
    hub = await hub_with(settled=False)
    await applied(hub, request())
    before = [node({GPU: 1}, labels=GH200)]
    await publish_nodes(hub, inventory("worker01", before), inventory("worker02", before))
    changing = await planned(hub, request())
    assert changing.changes == ()
    assert len(places(changing)) == 2
    for name in ("worker01", "worker02"):
        status = {"status": compliant(name)["status"]}
        await hub.patch(kinds.MANAGED_CLUSTER, name, status, subresource="status")
    at_once = await planned(hub, request())
    assert len(places(at_once)) == 2, "an inventory from before the policy says nothing of it"
    after = [node({MIG: 2}, labels=GH200)]
    less = [node({MIG: 1}, labels=GH200)]
    later = -STARTING.total_seconds()
    await publish_nodes(
        hub, inventory("worker01", after, age=later), inventory("worker02", less, age=later)
    )
    made = await planned(hub, request())
    assert len([item for item in places(made) if item[2] == "3g.48gb"]) == 1
    assert reasons(made)["SupplyContradicted"] == [
        (
            "cluster worker02: policy 3g.48gb-worker02 supplies 2 gpu of 3g.48gb, and its nodes"
            " have 1 (NodeInventory); the smaller counts"
        )
    ]


@pytest.mark.parametrize(
    ("amount", "pods", "devices", "issue"),
    [
        (2, deployment(gpu=2), {"all"}, ""),
        (2, deployment(2, gpu=2), {"all"}, "2 gpu are stated, and its Pods request 4 on each clu"),
        (
            3,
            deployment(gpu=2),
            {"all"},
            "are stated, and its Pods request 2 on each cluster; the larger",
        ),
        (4, deployment(3, gpu=2), set(), "4 gpu are stated, and its Pods request 6"),
        (2, deployment(cpu="500m"), {"all"}, ""),
        (1, deployment(mig=1), {"3g.48gb"}, ""),
        (1, deployment(gpu=1, mig=1), set(), "several GPU devices, 3g.48gb, all, and a work"),
        (
            2,
            deployment(gpu="-1"),
            set(),
            "(Deployment): spec.template.spec.containers[0].resources",
        ),
    ],
)
async def test_pods_are_checked_against_labels(
    amount: int, pods: dict[str, Any], devices: set[str], issue: str
) -> None:
    hub = await hub_with(
        inventory("worker01", [node({GPU: 4, MIG: 1, "cpu": 8, "pods": 100})]),
        workloads=(deploying("mwrs-app01", "app01", amount, pods),),
    )
    made = await planned(hub, asking(alone(), targetWorkloads=[{"name": "mwrs-app01"}]))
    assert {device for _, _, device in places(made)} == devices
    texts = [
        item.message
        for item in made.issues
        if item.reason in ("RequestContradicted", "SeveralDevices", "InvalidPodTemplate")
    ]
    assert len(texts) == bool(issue)
    assert issue in "".join(texts)
    if "stated" in issue and not devices:  # the contradiction is not why it has no place
        assert [item.reason for item in made.unplaced] == ["NoSupply"]


@pytest.mark.parametrize(
    ("stated", "pods", "devices", "issue"),
    [
        ("all", deployment(cpu=1), {"all"}, ""),
        ("3g.48gb,all", deployment(mig=1), {"3g.48gb"}, ""),
        ("all", deployment(mig=1), {"3g.48gb"}, "devices all are stated, and its Pods request 3g"),
        ("2g.24gb", deployment(cpu=1), set(), ""),
    ],
)
async def test_devices_that_pods_name_count_more_than_stated_ones(
    stated: str, pods: dict[str, Any], devices: set[str], issue: str
) -> None:
    workload = deploying("mwrs-app01", "app01", 1, pods)
    workload["metadata"]["annotations"] = {f"{GROUP}/devices": stated}
    hub = await hub_with(
        inventory("worker01", [node({GPU: 4, MIG: 1, "cpu": 8, "pods": 100})]),
        workloads=(workload,),
    )
    made = await planned(hub, asking(alone(), targetWorkloads=[{"name": "mwrs-app01"}]))
    assert {device for _, _, device in places(made)} == devices
    assert issue in "".join(reasons(made).get("RequestContradicted", [""]))
    assert ("RequestContradicted" in reasons(made)) == bool(issue)


@pytest.mark.parametrize(
    ("nodes", "status", "age", "reason", "why"),
    [
        (
            [node({GPU: 4})],
            {},
            181,
            "InventoryExpired",
            "NodeInventory of 2026-11-20T11:56:59Z has expired",
        ),
        (
            [node({GPU: 4})],
            {"observedTime": None},
            0,
            "InvalidInventory",
            "observedTime is missing",
        ),
        (
            [node({GPU: 4})],
            {"validUntil": "2100-01-01T00:00:00Z"},
            181,
            "InventoryExpired",
            "has expired",
        ),
        ([node({GPU: 4})], {}, -181, "InvalidInventory", "observedTime is 181 s ahead: the clock"),
        ([node({GPU: -4})], {}, 0, "InvalidInventory", 'nvidia.com/gpu: "-4" is no quantity'),
        ([node({GPU: "1e30"})], {}, 0, "InvalidInventory", '"1e30" is more than any node has'),
        ([node({GPU: 4}, count=2_000_000)], {}, 0, "InvalidInventory", "2000000 nodes are more"),
    ],
)
async def test_an_inventory_that_can_not_be_relied_on_keeps_what_runs_and_adds_nothing(
    nodes: list[Any], status: dict[str, Any], age: float, reason: str, why: str
) -> None:
    hub = await hub_with(inventory("worker01", [node({GPU: 2})]))
    asked = asking(alone(allocatable="gpu/all=4"))
    await applied(hub, asked)
    running = places(await planned(hub, asked))
    assert len(running) == 1
    await publish_nodes(hub, inventory("worker01", nodes, age, **status))
    made = await planned(hub, asked)
    assert places(made) == running
    (text,) = reasons(made)[reason]
    assert why in text
    assert text.endswith("nothing new is placed there, and what runs there stays")
    (left,) = made.unplaced
    assert left.reason == "NotSeen"


H20 = {"nvidia.com/gpu.product": "NVIDIA-H20", "nvidia.com/gpu.count": "2"}


def gpus(name: str = "a", **labels: str) -> dict[str, Any]:
    """A node with two GPUs, and some labels of them."""
    changed = {f"nvidia.com/gpu.{key}": value for key, value in labels.items()}
    return node({GPU: 2}, labels={**H20, **changed}, names=[name])


@pytest.mark.parametrize(
    ("nodes", "supplies", "issue"),
    [
        ([gpus("b"), gpus("a")], 8, ""),
        # Others use one GPU of a, and nobody knows which: its other one stays whole, too.
        ([node({GPU: 2}, {GPU: 1}, labels=H20, names=["a"])], 0, ""),
        ([gpus("a"), {**gpus("b"), "ready": False}], 4, ""),
        ([node({MIG: 4}, {MIG: 1}, labels=H20, names=["a"])], 3, ""),
        ([node({MIG: 4}, labels=H20, names=["a"], unschedulable=True)], 0, ""),
        ([node({MIG: 3}, {MIG: 1}, labels=H20, names=["a"])], 0, "GPUs whose layout is not known"),
        ([node({GPU: 1}, labels=H20, names=["a"])], 2, "is 2, and the device plugin advertises 1"),
        ([node({GPU: 1}, names=["a"])], 0, "gpu.product is missing"),
        ([gpus(count="99")], 0, 'is "99", not a number from 1 to 16'),
        ([gpus(count="9" * 5_000)], 0, "not a number from 1 to 16"),
        ([gpus(product="T4")], 0, "no MIG geometry is known for GPU T4"),
        ([gpus(product="NVIDIA-H20-MIG-3g.48gb")], 0, "counts MIG devices, not GPUs"),
        ([node({GPU: 2}, labels=H20)], 0, "not all have a name"),
    ],
)
def test_policies_are_generated_for_the_gpus_of_nodes(
    nodes: list[Any], supplies: int, issue: str
) -> None:
    """The most devices 3g.48gb that a generated policy supplies, of two for each GPU."""
    found = replace(
        guide(),
        workloads=tuple(deploying(f"w{at}", "app01", 1, placement=f"p{at}") for at in range(8)),
        managed_clusters=(compliant("worker01"),),
        inventories=(inventory("worker01", nodes),),
        observed_at=NOW,
    )
    targets = [{"name": f"w{at}"} for at in range(8)]
    asked = asking(alone(), mig={"discover": True}, targetWorkloads=targets)
    fleet = read_fleet(found, asked)
    (cluster,) = fleet.clusters
    most = [
        supply.amount
        for item in cluster.candidates
        for supply in item.supplies
        if supply.device == "3g.48gb"
    ]
    assert max(most, default=0) == supplies
    named = {layout.node for item in cluster.candidates for layout in item.layouts}
    assert named <= {"a", "b"}
    texts = [item.message for item in fleet.issues if item.reason == "UnknownGpus"]
    assert len(texts) == bool(issue)
    assert issue in "".join(texts)


amounts = st.integers(0, 6)


@pytest.mark.property
@given(
    st.lists(st.tuples(amounts, amounts, st.booleans(), st.booleans(), amounts), max_size=4),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.sampled_from(["", "gpu/all=9"]),
)
def test_no_plan_uses_more_than_nodes_have_left(
    drawn: list[tuple[int, int, bool, bool, int]], wanted: list[int], stated: str
) -> None:
    nodes = [
        node(
            {GPU: most, "cpu": 64, "pods": 9},
            {GPU: used, "cpu": 1},
            {"work-of-others": {GPU: others}},
            ready=ready,
            unschedulable=cordoned,
        )
        for most, used, ready, cordoned, others in drawn
    ]
    found = replace(
        guide(),
        workloads=tuple(
            deploying(f"w{at}", "app01", amount, placement=f"p{at}")
            for at, amount in enumerate(wanted)
        ),
        managed_clusters=(compliant("worker01"),),
        inventories=(inventory("worker01", nodes),),
        observed_at=NOW,
    )
    asked = asking(
        alone(**({"allocatable": stated} if stated else {})),
        targetWorkloads=[{"name": f"w{at}"} for at in range(len(wanted))],
    )
    problem = formulate(read_fleet(found, asked))
    chosen = greedy(problem, lambda: False)
    used = sum(wanted[int(item.workload[1:])] for item in chosen.assignments)
    free = sum(
        max(0, most - taken - others)
        for most, taken, ready, cordoned, others in drawn
        if ready and not cordoned
    )
    assert used <= free


async def test_a_hub_that_lets_nobody_list_inventories_is_planned_as_before() -> None:
    def refuse(call: Call) -> Fault | None:
        refused = call.verb == "list" and call.kind == kinds.NODE_INVENTORY
        return Fault(Forbidden("not allowed")) if refused else None

    hub = await hub_with(inventory("worker01", []), inventory("worker02", []))
    assert (await planned(hub, request())).placements == ()
    made = await Optimizer(Faulty(hub, refuse), now=lambda: NOW).plan(request())
    assert isinstance(made, Plan)
    assert made.solution.objective_value == 115
    (unread,) = reasons(made)["OthersNotRead"]
    assert unread.endswith("is not known: NodeInventory")


async def test_what_moves_is_told_to_leave_the_best_device_that_it_may_run_on() -> None:
    """Objects say on which cluster a workload runs, not on which of its devices."""
    hub = await hub_with(
        inventory("worker01", [node({GPU: 2, MIG: 2})]), inventory("worker02", [node({GPU: 2})])
    )
    only = {"targetWorkloads": [{"name": "mwrs-app01"}]}
    await scored(hub, "worker01", {"app01;3g.48gb": 60})
    await applied(hub, asking(alone(), **only))
    await scored(hub, "worker02", {"app01;all": 90})
    (move,) = (await planned(hub, asking(**only))).moves
    assert [(item.cluster, item.device) for item in move.before] == [("worker01", "3g.48gb")]
    assert move.gain == {"performance": 30.0}


async def scored(hub: EmbeddedHub, cluster: str, values: dict[str, int]) -> None:
    """Let the agent of a cluster publish these scores alone."""
    status = {"scores": [{"name": name, "value": value} for name, value in values.items()]}
    kind = kinds.ADD_ON_PLACEMENT_SCORE
    await hub.patch(kind, "performance", {"status": status}, cluster, subresource="status")
