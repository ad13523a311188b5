"""Which devices of a node the claims of a Pod get.

`allocate` searches as kube-scheduler does: claim by claim, request by request, the devices in the
order of their slices, and takes the first allocation that keeps counters and constraints.
Source: k8s.io/dynamic-resource-allocation v0.34.3, structured/internal/incubating.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from optimizer.domain.dra.device_sets import (
    AttributeValue,
    DeviceSet,
    MatchAttribute,
    NodeDevices,
    attribute,
)

MAX_STEPS = 5_000
"""Devices that a search tries; what needs more is taken not to fit."""

MAX_CLAIM_DEVICES = 32
"""Devices of one claim at most (AllocationResultsMaxSize of resource.k8s.io/v1)."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An alternative of a request; `matching`: by device set, the indexes of what it may get."""

    name: str
    matching: tuple[tuple[DeviceSet, frozenset[int]], ...]
    count: int = 1
    every: bool = False

    def of(self, devices: DeviceSet) -> frozenset[int]:
        """Return the indexes of the devices of a set that it may get."""
        return next((found for one, found in self.matching if one == devices), frozenset())


class WantedClaim(NamedTuple):
    """A claim whose selectors are evaluated."""

    requests: tuple[tuple[Wanted, ...], ...]
    constraints: tuple[MatchAttribute, ...] = ()


Claims = tuple[WantedClaim, ...]
"""The claims of a Pod."""


class DeviceSetState:
    """One device set of a node while devices of it are tried."""

    def __init__(self, state: NodeDevices) -> None:
        self.state, self.set = state, state.devices
        self.taken = set(state.taken)
        self.left = list(self.set.counters)
        for index in state.taken:
            self._consume(index, -1)

    def fits(self, index: int) -> bool:
        """Tell whether a device is free, and counters suffice for it."""
        if index in self.taken or index in self.state.unavailable:
            return False
        consumes = self.set.devices[index].consumes
        return all(amount <= left for amount, left in zip(consumes, self.left, strict=False))

    def take(self, index: int) -> bool:
        """Allocate a device if it fits."""
        if not self.fits(index):
            return False
        self.taken.add(index)
        self._consume(index, -1)
        return True

    def give_back(self, index: int) -> None:
        """Undo an allocation."""
        self.taken.discard(index)
        self._consume(index, 1)

    def _consume(self, index: int, sign: int) -> None:
        for place, amount in enumerate(self.set.devices[index].consumes):
            self.left[place] += sign * amount


class _Chosen(NamedTuple):
    """A device that a request of the current claim gets."""

    request: Wanted
    instance: int
    device: int


class _Search:
    """A search for devices of the claims of one Pod."""

    def __init__(self, devices: Iterable[NodeDevices], claims: Claims) -> None:
        self.instances = [DeviceSetState(item) for item in devices for _ in range(item.count)]
        self._claims, self._steps = claims, 0

    def claim(self, number: int) -> bool:
        """Allocate the claims from a number on."""
        return number == len(self._claims) or self._request(number, 0, [])

    def _request(self, number: int, place: int, chosen: list[_Chosen]) -> bool:
        requests = self._claims[number].requests
        if place == len(requests):
            return self.claim(number + 1)
        return any(self._alternative(number, place, wanted, chosen) for wanted in requests[place])

    def _alternative(self, number: int, place: int, wanted: Wanted, chosen: list[_Chosen]) -> bool:
        found = [
            (at, index)
            for at, instance in enumerate(self.instances)
            for index in sorted(wanted.of(instance.set))
        ]
        count = len(found) if wanted.every else wanted.count
        if not 0 < count <= min(len(found), MAX_CLAIM_DEVICES - len(chosen)):
            return False

        def rest(start: int, left: int) -> bool:
            if not left:
                return self._request(number, place + 1, chosen)
            tried: set[tuple[NodeDevices, int]] = set()
            for at in range(start, len(found) - left + 1):
                instance, index = self.instances[found[at][0]], found[at][1]
                untouched = instance.taken == instance.state.taken
                if untouched and (instance.state, index) in tried:
                    continue  # an equal device set failed
                if untouched:
                    tried.add((instance.state, index))
                if self._try(_Chosen(wanted, *found[at]), number, chosen):
                    if rest(at + 1, left - 1):
                        return True
                    chosen.pop()
                    instance.give_back(index)
                if wanted.every:
                    return False
            return False

        return rest(0, count)

    def _try(self, choice: _Chosen, number: int, chosen: list[_Chosen]) -> bool:
        self._steps += 1
        instance = self.instances[choice.instance]
        if self._steps > MAX_STEPS or not instance.take(choice.device):
            return False
        chosen.append(choice)
        if all(self._keeps(rule, chosen) for rule in self._claims[number].constraints):
            return True
        chosen.pop()
        instance.give_back(choice.device)
        return False

    def _keeps(self, rule: MatchAttribute, chosen: Sequence[_Chosen]) -> bool:
        values = set()
        for item in chosen:
            names = {item.request.name, item.request.name.partition("/")[0]}
            if not rule.requests or not names.isdisjoint(rule.requests):
                values.add(self._value(item, rule.attribute))
        return len(values) <= 1 and None not in values

    def _value(self, item: _Chosen, name: str) -> tuple[type, AttributeValue, int] | None:
        """Return an attribute's value; one that the inventory has not differs between sets."""
        instance = self.instances[item.instance]
        device = instance.set.devices[item.device]
        value = attribute(instance.set.driver, device, name)
        if value is None:
            return None
        known = any(value is found for _, found in device.attributes)
        return type(value), value, -1 if known else item.instance


def allocate(devices: Sequence[NodeDevices], claims: Claims) -> tuple[NodeDevices, ...] | None:
    """Return the devices of a node after the claims of a Pod got some; None if they get none."""
    search = _Search(devices, claims)
    if not search.claim(0):
        return None
    states = Counter(
        replace(item.state, count=1, taken=frozenset(item.taken)) for item in search.instances
    )
    return tuple(replace(state, count=number) for state, number in states.items())
