"""How little of other Pods can keep a Pod from the devices of a node, whichever they get.

A device set is blocked for a Pod if its claims get nothing there. Take the sets A of devices that
block it and of which no proper part does. A device e then weighs

    w_e = 1 / min {|A| : e in A},    0 if it is in none

and the devices that block a set weigh 1 or more, because they contain some A, each device of which
weighs 1/|A| or more. The Pod stays away from the node only if at least D of its sets are blocked,
so Pods that bring less than D together leave it a place: a Pod that gets n devices brings at most
n max_e w_e. For equal Pods that is exact where a set gives places to each of them in any order.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from optimizer.domain.dra.allocation import (
    MAX_CLAIM_DEVICES,
    Claims,
    DeviceSetState,
    Wanted,
    WantedClaim,
    allocate,
)
from optimizer.domain.dra.device_sets import DeviceSet, NodeDevices

_MAX_TRIED = 2_000
"""Sets of devices that the search for blocking ones tries; with more, each device blocks alone."""

_MAX_ASKED = 128
"""Devices of a set among which it looks; a GPU with MIG has about 30. With more, the same."""


class PodShares(NamedTuple):
    """For one Pod on a node: what others bring, by their number, of what keeps it away."""

    needed: int
    loads: tuple[float, ...]


def shares(
    devices: Sequence[NodeDevices], pod: Claims, others: Sequence[Claims]
) -> PodShares | None:
    """Return what Pods bring of what keeps a Pod from a node; None if even alone it gets nothing.

    The Pod gets its devices, in any order, if the loads of those before it sum to less than
    `needed`. A Pod may be among the others.
    """
    if allocate(devices, pod) is None:
        return None
    unit, wanted = pod, 1
    able = _able(devices, pod)
    if not able and (one := _one_of(pod)):
        unit, wanted = one
        able = _able(devices, unit)
    needed = sum(item.count for item in able) - wanted + 1
    if not able or needed < 1:
        touched = (any(_asked(claims, item.devices) for item in devices) for claims in others)
        return PodShares(1, tuple(map(float, touched)))
    weights = [
        (
            item.devices,
            _weights(
                replace(item, count=1),
                unit,
                frozenset[int]().union(*(_asked(claims, item.devices) for claims in others)),
            ),
        )
        for item in able
    ]
    return PodShares(needed, tuple(_load(claims, weights) for claims in others))


def _able(devices: Iterable[NodeDevices], claims: Claims) -> list[NodeDevices]:
    """Return the device sets that give a Pod all its devices."""
    return [item for item in devices if allocate([replace(item, count=1)], claims) is not None]


def _one_of(pod: Claims) -> tuple[Claims, int] | None:
    """Return a claim for one of the devices, and how many there are, if they are independent."""
    if len(pod) != 1 or pod[0].constraints or len(pod[0].requests) != 1:
        return None
    (alternatives,) = pod[0].requests
    if len(alternatives) != 1 or alternatives[0].every:
        return None
    one = replace(alternatives[0], count=1)
    return (WantedClaim(((one,),)),), alternatives[0].count


def _requests(claims: Claims) -> Iterator[tuple[Wanted, ...]]:
    return (request for claim in claims for request in claim.requests)


def _asked(claims: Claims, devices: DeviceSet) -> frozenset[int]:
    """Return the devices of a set that claims may get."""
    found = (wanted.of(devices) for request in _requests(claims) for wanted in request)
    return frozenset[int]().union(*found)


def _load(claims: Claims, weights: Sequence[tuple[DeviceSet, dict[int, float]]]) -> float:
    """Return the most that the devices of a Pod weigh."""
    total = 0.0
    for request in _requests(claims):
        most = 0.0
        for wanted in request:
            matching = [(found, wanted.of(devices)) for devices, found in weights]
            each = max((found.get(i, 0.0) for found, own in matching for i in own), default=0.0)
            count = MAX_CLAIM_DEVICES if wanted.every else wanted.count
            most = max(most, count * each)
        total += most
    return total


@lru_cache(maxsize=4_096)
def _weights(state: NodeDevices, unit: Claims, asked: frozenset[int]) -> dict[int, float]:
    """Return w_e of each device of a set that others ask for."""
    search = _BlockingSets(state, unit)
    if len(asked) > _MAX_ASKED or not search.extend([], sorted(asked)):
        return dict.fromkeys(asked, 1.0)
    return {index: 1.0 / size for index, size in search.smallest.items()}


class _BlockingSets:
    """Finds the devices of a set that block claims; `smallest`: how many of them, by device."""

    def __init__(self, state: NodeDevices, unit: Claims) -> None:
        self.smallest: dict[int, int] = {}
        self._state, self._unit = DeviceSetState(state), unit
        own = _asked(unit, state.devices)
        self._own = own if _one_of(unit) == (unit, 1) else None
        self._tried = 0

    def extend(self, members: list[int], rest: Sequence[int]) -> bool:
        """Look for blocking sets with these members and some of the rest; False: too many."""
        for place, index in enumerate(rest):
            self._tried += 1
            if self._tried > _MAX_TRIED:
                return False
            if not self._state.take(index):
                continue
            members.append(index)
            if not self._blocked():
                if not self.extend(members, rest[place + 1 :]):
                    return False
            elif all(map(self._needed, members[:-1])):
                for member in members:
                    known = self.smallest.get(member, len(members))
                    self.smallest[member] = min(len(members), known)
            members.pop()
            self._state.give_back(index)
        return True

    def _needed(self, member: int) -> bool:
        self._state.give_back(member)
        still = self._blocked()
        self._state.take(member)
        return not still

    def _blocked(self) -> bool:
        if self._own is None:
            now = replace(self._state.state, taken=frozenset(self._state.taken))
            return allocate([now], self._unit) is None
        return not any(map(self._state.fits, self._own))
