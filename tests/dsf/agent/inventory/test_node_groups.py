"""Sums of many changes, and groups of many nodes: never more free than there is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsf.agent.inventory.applied_works import AppliedWork, WorkIndex
from dsf.agent.inventory.node_capacity import NodeCapacity
from dsf.agent.inventory.node_groups import MAX_BYTES, NodeState, group_nodes, node_state
from dsf.agent.inventory.pod_sums import Key, NodeSums, PodSums
from dsf.agent.inventory.pod_use import PendingPod, PodOwner, PodUse

RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
NAMES = st.sampled_from(["a", "b", "c"])
AMOUNTS = st.dictionaries(st.sampled_from(RESOURCES), st.integers(1, 5_000)).map(
    lambda found: tuple(sorted(found.items()))
)
PENDING = st.none() | st.builds(PendingPod, NAMES)
PODS = st.builds(
    PodUse,
    node=st.sampled_from(["", "n1", "n2"]),
    requests=AMOUNTS.map(lambda found: (*found, ("pods", 1000))),
    unreadable=st.sampled_from([(), ("cpu",), ("*",)]),
    owner=st.builds(PodOwner, NAMES),
    running=st.booleans(),
    ready=st.booleans(),
    pending=PENDING,
)
CHANGES = st.lists(
    st.tuples(NAMES, st.none() | PODS) | st.dictionaries(NAMES, st.sampled_from(["w1", "w2"]))
)

pytestmark = pytest.mark.property


def index(works: dict[str, str]) -> WorkIndex:
    return WorkIndex(AppliedWork(work, frozenset({owner})) for owner, work in works.items())


@given(CHANGES)
def test_sums_after_any_changes_are_those_from_scratch(
    changes: list[tuple[str, PodUse | None] | dict[str, str]],
) -> None:
    sums, works, pods = PodSums(), dict[str, str](), dict[Key, PodUse]()
    for change in changes:
        if isinstance(change, dict):
            works = change
            sums.set_works(index(works))
            continue
        name, pod = change
        sums.put(("shop", name), pod)
        pods.pop(("shop", name), None)
        if pod:
            pods["shop", name] = pod
    fresh = PodSums()
    fresh.set_works(index(works))
    for key, pod in pods.items():
        fresh.put(key, pod)
    for part in ("pods", "nodes", "works", "others", "unreadable", "pending"):
        assert getattr(sums, part) == getattr(fresh, part), part


def consistent(sums: NodeSums) -> NodeSums:
    """What works hold is part of what is requested."""
    for held in sums.works.values():
        for name, amount in held.items():
            sums.requested[name] = sums.requested.get(name, 0) + amount
    return sums


STATES = st.builds(
    node_state,
    st.builds(
        NodeCapacity,
        ready=st.just(value=True),
        unschedulable=st.just(value=False),
        labels=st.sampled_from([(), (("zone", "a"),)]),
        taints=st.just(()),
        allocatable=st.tuples(*(st.integers(2_000, 4_095) for _ in RESOURCES)).map(
            lambda amounts: tuple(zip(RESOURCES, amounts, strict=True))
        ),
    ),
    st.builds(
        NodeSums,
        requested=AMOUNTS.map(dict),
        works=st.fixed_dictionaries({"w1": AMOUNTS.map(dict), "w2": AMOUNTS.map(dict)}),
        unreadable=st.sampled_from([{}, {}, {"cpu": 1}, {"*": 2}]),
    ).map(consistent),
)
"""Alike enough to be merged where they are too many."""


def free(state: NodeState, without: frozenset[str]) -> dict[str, int]:
    """What is free on a node once the Pods of some works are gone."""
    held = [dict(amounts) for work, amounts in state.works if work in without]
    return {
        name: amount + sum(each.get(name, 0) for each in held)
        for name, amount in state.free.items()
    }


@given(st.lists(STATES, max_size=30), st.integers(1, 8), st.sampled_from([200, 1_000, MAX_BYTES]))
def test_no_group_has_more_free_than_any_of_its_nodes(
    states: list[NodeState], most: int, most_bytes: int
) -> None:
    nodes = {f"n{number}": state for number, state in enumerate(states)}
    found = group_nodes(nodes, most, most_bytes)
    assert len(found.groups) <= most
    listed = [name for group in found.groups for name in group.names]
    assert len(set(listed)) == len(listed) == len(nodes) - found.left_out
    for group in found.groups:
        for name in group.names:
            node = nodes[name]
            assert group.state[:4] == node[:4]
            for gone in (frozenset[str](), frozenset({"w1"}), frozenset({"w1", "w2"})):
                there = free(node, gone)
                for resource, amount in free(group.state, gone).items():
                    assert amount <= there.get(resource, 0)
    if len(set(states)) > 4 * most and most_bytes == MAX_BYTES:
        assert found.merged
    if len(set(states)) <= most and most_bytes == MAX_BYTES:
        assert (found.merged, found.left_out) == (0, 0)
        assert all(nodes[name] == group.state for group in found.groups for name in group.names)
