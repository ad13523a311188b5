"""The demand for a cluster's GPUs: requests per device, each with a value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple


class DeviceRequest(NamedTuple):
    """A workload's request for `amount` instances of a device, and the value of serving it."""

    amount: int
    value: float


@dataclass(frozen=True)
class Demand:
    """Requests of positive value by device: a profile's device name, or WHOLE_GPU.

    `before_costs`: a saved cost never outweighs a lost value, because costs count in the last of
    several priorities.
    """

    requests: tuple[tuple[str, tuple[DeviceRequest, ...]], ...]
    before_costs: bool = False

    @classmethod
    def of(
        cls, requests: Mapping[str, Iterable[DeviceRequest]], *, before_costs: bool = False
    ) -> "Demand":
        """Return the demand of requests by device, in a stable order."""
        useful = {
            device: tuple(sorted(item for item in items if item.value > 0 and item.amount > 0))
            for device, items in requests.items()
        }
        listed = sorted((device, items) for device, items in useful.items() if items)
        return cls(tuple(listed), before_costs)

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """The devices asked for."""
        return tuple(device for device, _ in self.requests)

    @cached_property
    def caps(self) -> tuple[int, ...]:
        """The most instances of each device that all requests together can use."""
        return tuple(sum(item.amount for item in items) for _, items in self.requests)

    def usable(self, supply: Iterable[int]) -> tuple[int, ...]:
        """Return the largest supply of each device that some set of requests uses exactly.

        A supply and its usable part serve the same sets of requests.
        """
        return tuple(
            table[min(amount, len(table) - 1)]
            for amount, table in zip(supply, self._used_up, strict=True)
        )

    def value(self, supply: Iterable[int]) -> float:
        """Return the highest value of requests that fit, each for one device: a knapsack."""
        return sum(
            table[min(amount, len(table) - 1)]
            for amount, table in zip(supply, self.best_values, strict=True)
        )

    @cached_property
    def fractional_values(self) -> tuple[tuple[float, ...], ...]:
        """The value of 0, 1, 2, ... instances of each device in the linear relaxation.

        Concave: requests are served by value per instance, highest first, the last one in part.
        """
        return tuple(_fractions(items) for _, items in self.requests)

    @cached_property
    def subdemands(self) -> tuple["Demand", ...]:
        """Parts of the demand that other clusters may leave to this one: every n-th request."""
        return tuple(
            Demand(tuple((device, items[offset::step] or items[-1:]) for device, items in cut))
            for step in (1, 2, 3, 4, 6, 8, 12, 16)
            for offset in range(min(step, 5))
            for cut in [self.requests]
        )

    @cached_property
    def amounts(self) -> tuple[tuple[int, int], ...]:
        """The smallest and the largest amount of a request for each device."""
        return tuple(
            (min(item.amount for item in items), max(item.amount for item in items))
            for _, items in self.requests
        )

    @cached_property
    def highest_values(self) -> tuple[float, ...]:
        """The highest value of a request for each device."""
        return tuple(max(item.value for item in items) for _, items in self.requests)

    @cached_property
    def best_values(self) -> tuple[tuple[float, ...], ...]:
        """The highest value of requests that fit 0, 1, 2, ... instances of each device."""
        return tuple(_knapsack(items) for _, items in self.requests)

    @cached_property
    def _used_up(self) -> tuple[tuple[int, ...], ...]:
        return tuple(_sums(item.amount for item in items) for _, items in self.requests)


def _sums(amounts: Iterable[int]) -> tuple[int, ...]:
    """Return the largest subset sum of amounts that is at most 0, 1, 2, ..."""
    reached = 1
    for amount in amounts:
        reached |= reached << amount
    every = (index if reached >> index & 1 else 0 for index in range(reached.bit_length()))
    return tuple(accumulate(every, max))


def _fractions(items: Iterable[DeviceRequest]) -> tuple[float, ...]:
    dearest = sorted((item.value / item.amount, item.amount) for item in items)
    each = [value for value, amount in reversed(dearest) for _ in range(amount)]
    return tuple(accumulate(each, initial=0.0))


def _knapsack(items: Iterable[DeviceRequest]) -> tuple[float, ...]:
    best = [0.0]
    for amount, value in items:
        best += [best[-1]] * amount
        for size in range(len(best) - 1, amount - 1, -1):
            best[size] = max(best[size], best[size - amount] + value)
    return tuple(best)
