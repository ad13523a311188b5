"""Devices that the claims of Pods get, with real layouts and beside a brute-force allocator."""

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.domain.dra.allocation import Claims, Wanted, WantedClaim, allocate
from optimizer.domain.dra.device_sets import (
    ClaimRequest,
    Device,
    DeviceClaim,
    DeviceSet,
    NodeDevices,
)
from optimizer.domain.dra.shares import shares
from optimizer.snapshot.capacity.device_inventory import free_by_name, read_device_sets
from tests.device_slices import claim, mig_slice, plain_gpu, resource_slice
from tests.optimizer.device_nodes import gpus, mig, node, one_gpu, wanted

_ONE, _EIGHT = node([mig_slice("n")]), node([mig_slice("n", gpus=8)])
_PLAIN = node([resource_slice("n", [plain_gpu(minor, "n") for minor in range(8)])])
_PARTLY = node(
    [mig_slice("n", gpus=2)], [claim("other", "n", "gpu-0-mig-1g5gb-3", "gpu-0-mig-2g10gb-4")]
)


def max_pods(devices: Sequence[NodeDevices], claims: Claims) -> int:
    """How many equal Pods a node starts one after the other."""
    after = allocate(devices, claims)
    return 0 if after is None else 1 + max_pods(after, claims)


@pytest.mark.parametrize(
    ("devices", "asked", "most"),
    [
        (_ONE, [mig("1g.5gb")], 7),
        (_ONE, [mig("2g.10gb")], 3),
        (_ONE, [mig("3g.20gb")], 2),
        (_ONE, [mig("1g.5gb", 3)], 2),
        (_ONE, [mig("1g.5gb"), mig("2g.10gb")], 2),
        (_ONE, [mig("7g.40gb")], 1),
        (_ONE, [gpus()], 1),
        (_ONE, [one_gpu("1g.5gb", "2g.10gb", "3g.20gb")], 1),
        (_ONE, [one_gpu("3g.20gb", "7g.40gb")], 0),
        (_EIGHT, [one_gpu("1g.5gb", "2g.10gb", "3g.20gb")], 8),
        (_EIGHT, [mig("3g.20gb")], 16),
        (_EIGHT, [gpus(3)], 2),
        (_EIGHT, [gpus(9)], 0),
        (_EIGHT, [gpus(every=True)], 1),
        (_PLAIN, [gpus(every=True)], 1),
        (_PLAIN, [gpus()], 8),
        (_PLAIN, [mig("1g.5gb")], 0),
        (_PARTLY, [gpus()], 1),
        (_PARTLY, [gpus(every=True)], 0),
        (_PARTLY, [mig("3g.20gb")], 2),
        (_PARTLY, [mig("1g.5gb")], 11),
    ],
)
def test_a_node_starts_as_many_pods_as_its_gpus_have_room_for(
    devices: tuple[NodeDevices, ...], asked: list[DeviceClaim], most: int
) -> None:
    assert max_pods(devices, wanted(devices, *asked)) == most


def test_the_first_alternative_that_fits_is_taken() -> None:
    either = DeviceClaim(
        (
            (
                ClaimRequest("whole", "gpu.nvidia.com"),
                ClaimRequest("half", "mig.nvidia.com", mig("3g.20gb").requests[0][0].selectors),
            ),
        )
    )
    devices = node([mig_slice("n", gpus=2)], [claim("other", "n", "gpu-0-mig-1g5gb-0")])
    asked = wanted(devices, either)
    first = allocate(devices, asked)
    assert first is not None
    assert sorted(sorted(item.taken) for item in first) == [[0], [1]]
    second = allocate(first, asked)
    assert second is not None
    assert [item.taken for item in second if 1 in item.taken] == [{1, 12}]
    assert allocate(second, asked) is None


def test_values_that_the_inventory_has_not_differ_between_gpus() -> None:
    devices = node([mig_slice("n", gpus=2)], [claim("c", "n", "gpu-0-mig-3g20gb-4"),
                                              claim("d", "n", "gpu-1-mig-3g20gb-0")])  # fmt: skip
    assert max_pods(devices, wanted(devices, mig("3g.20gb", 2))) == 1
    assert max_pods(devices, wanted(devices, one_gpu("3g.20gb", "3g.20gb"))) == 0


def test_many_devices_that_share_counters_are_counted_without_a_search() -> None:
    """Counters for half of a thousand devices; each Pod that claims one may block another."""
    each = {"strings": {"profile": "1g.5gb"}, "consumes": {"slices": "1"}}
    listed = {"name": "a", "driver": "gpu.example.com", "counters": {"slices": "500"}}
    sets = read_device_sets([{**listed, "devices": [each] * 1_000}])
    (free,) = free_by_name(NodeDevices(sets["a"], count=2))
    assert free == ("gpu", "1g.5gb", 1_000)
    every = (WantedClaim(((Wanted("r", ((sets["a"], frozenset(range(1_000))),)),),)),)
    assert shares([NodeDevices(sets["a"])], every, [every]) is not None


def test_a_search_that_takes_too_long_finds_nothing() -> None:
    devices = tuple(
        NodeDevices(DeviceSet(f"d{number}", (Device((("a", number),)),))) for number in range(60)
    )
    every = tuple((item.devices, frozenset([0])) for item in devices)
    impossible = Wanted("no", tuple((item.devices, frozenset[int]()) for item in devices))
    hard = WantedClaim(((Wanted("a", every, 20),), (impossible,)))
    assert allocate(devices, (hard,)) is None


_AMOUNTS = st.integers(0, 4).map(float)


@st.composite
def _sets(draw: st.DrawFn) -> NodeDevices:
    counters = draw(st.lists(_AMOUNTS, min_size=1, max_size=2))
    devices = draw(
        st.lists(st.tuples(*[st.integers(0, 3).map(float)] * len(counters)), min_size=1, max_size=5)
    )
    return NodeDevices(
        DeviceSet("d", tuple(Device(consumes=tuple(item)) for item in devices), tuple(counters)),
        draw(st.integers(1, 2)),
        unavailable=frozenset(draw(st.sets(st.integers(0, len(devices) - 1), max_size=1))),
    )


@st.composite
def _asked(draw: st.DrawFn, sets: tuple[NodeDevices, ...]) -> Claims:
    return tuple(
        WantedClaim(
            tuple(
                (
                    Wanted(
                        "r",
                        tuple(
                            (
                                item.devices,
                                frozenset(
                                    draw(st.sets(st.integers(0, len(item.devices.devices) - 1)))
                                ),
                            )
                            for item in sets
                        ),
                        draw(st.integers(1, 2)),
                    ),
                )
                for _ in range(draw(st.integers(1, 2)))
            )
        )
        for _ in range(draw(st.integers(1, 2)))
    )


def _room(sets: tuple[NodeDevices, ...], pods: list[Claims]) -> list[list[tuple[int, int]]]:
    """Return all ways in which each of the Pods gets devices, by definition."""
    places = [(set_, at) for at, set_ in enumerate(one for one in sets for _ in range(one.count))]
    devices = [
        (at, index)
        for set_, at in places
        for index in range(len(set_.devices.devices))
        if index not in set_.unavailable and index not in set_.taken
    ]
    requests = [alternatives[0] for pod in pods for one in pod for alternatives in one.requests]
    ways: list[list[tuple[int, int]]] = [[]]
    for request in requests:
        allowed = [
            (at, index) for at, index in devices if index in request.of(places[at][0].devices)
        ]
        ways = [
            [*way, *chosen]
            for way in ways
            for chosen in combinations([one for one in allowed if one not in way], request.count)
            if _within(places, [*way, *chosen])
        ]
    return ways


def _within(places: list[tuple[NodeDevices, int]], chosen: list[tuple[int, int]]) -> bool:
    for set_, at in places:
        taken = [index for own, index in chosen if own == at] + [*set_.taken]
        for counter, limit in enumerate(set_.devices.counters):
            if sum(set_.devices.devices[index].consumes[counter] for index in taken) > limit:
                return False
    return True


@given(st.data())
def test_claims_get_devices_exactly_if_counters_allow_it(data: st.DataObject) -> None:
    devices = data.draw(st.lists(_sets(), min_size=1, max_size=2).map(tuple))
    pod = data.draw(_asked(devices))
    found = allocate(devices, pod)
    assert (found is not None) == bool(_room(devices, [pod]))
    if found is not None:
        each = [item for item in found for _ in range(item.count)]
        assert all(_within([(item, 0)], []) for item in each)
        asked = sum(request[0].count for one in pod for request in one.requests)
        assert sum(len(item.taken) for item in each) == asked


@given(st.data())
def test_pods_that_bring_less_than_is_needed_leave_a_pod_its_devices(data: st.DataObject) -> None:
    devices = data.draw(st.lists(_sets(), min_size=1, max_size=2).map(tuple))
    pods = [data.draw(_asked(devices)) for _ in range(2)]
    before = [pods[at] for at in data.draw(st.lists(st.integers(0, 1), max_size=2))]
    found = shares(devices, pods[0], pods)
    alone = bool(_room(devices, [pods[0]]))
    assert (found is not None) == alone
    if found is None or sum(found.loads[pods.index(pod)] for pod in before) >= found.needed:
        return
    for way in _room(devices, before):
        states = [
            NodeDevices(
                one.devices, 1, one.taken | {i for own, i in way if own == at}, one.unavailable
            )
            for at, one in enumerate(one for one in devices for _ in range(one.count))
        ]
        assert _room(tuple(states), [pods[0]]), (way, found)


@pytest.mark.parametrize(
    ("devices", "pod", "others", "starts"),
    [
        (_ONE, mig("1g.5gb"), [(mig("1g.5gb"), 6)], True),
        (_ONE, mig("1g.5gb"), [(mig("1g.5gb"), 7)], False),
        (_EIGHT, mig("1g.5gb"), [(mig("1g.5gb"), 55)], True),
        (_EIGHT, mig("1g.5gb"), [(gpus(), 7)], True),
        (_EIGHT, mig("1g.5gb"), [(gpus(), 8)], False),
        (_EIGHT, gpus(), [(mig("1g.5gb"), 7)], True),
        (_EIGHT, gpus(), [(mig("1g.5gb"), 8)], False),
        (_EIGHT, gpus(4), [(gpus(4), 1)], True),
        (_EIGHT, gpus(4), [(gpus(4), 2)], False),
        (_EIGHT, gpus(2), [(gpus(), 6)], True),
        (_EIGHT, gpus(2), [(gpus(), 7)], False),
        (_ONE, mig("3g.20gb"), [(mig("3g.20gb"), 1)], True),
        (_ONE, mig("3g.20gb"), [(mig("1g.5gb"), 1)], True),
        (_ONE, mig("3g.20gb"), [(mig("1g.5gb"), 2)], False),
    ],
)
def test_how_many_pods_leave_another_its_devices_in_any_order(
    devices: tuple[NodeDevices, ...],
    pod: DeviceClaim,
    others: list[tuple[DeviceClaim, int]],
    starts: bool,
) -> None:
    found = shares(devices, wanted(devices, pod), [wanted(devices, other) for other, _ in others])
    assert found is not None
    loads = sum(load * number for load, (_, number) in zip(found.loads, others, strict=True))
    assert (loads < found.needed - 1e-9) == starts
