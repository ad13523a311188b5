"""Amounts by resource, in thousandths of the base unit: exact, so that sums never drift.

Kubernetes rounds quantities up to thousandths where it adds requests (Quantity.MilliValue).
"""

import math
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from dsf.api.scoring.quantity import format_quantity, parse_quantity

Amounts = tuple[tuple[str, int], ...]
"""Pairs of resource and amount, sorted by resource."""

ONE = 1_000
"""A whole unit: a core, a byte, a device, a Pod."""

MOST = ONE << 50
"""A larger amount is not believed: no node has a pebibyte of anything."""

_KNOWN = 1 << 17

T = TypeVar("T")

MAX_RESOURCES = 64
"""Resources of a node, and resources that a Pod requests; with more, nothing is believed."""


def read_amount(quantity: object, *, down: bool = False) -> int | None:
    """Return a quantity, rounded up or `down`; None if it is unreadable, negative or absurd."""
    number = parse_quantity(str(quantity))
    if number is None or number * ONE > MOST:
        return None
    exact = round(number * ONE, 6)  # 0.07 * 1000 is not quite 70
    return math.floor(exact) if down else math.ceil(exact)


class OneOfEach(Generic[T]):
    """Returns one and the same value for equal ones; at times it forgets all, also unused ones."""

    def __init__(self) -> None:
        self._known: dict[T, T] = {}

    def __call__(self, value: T) -> T:
        """Return the equal value that was seen first."""
        if len(self._known) > _KNOWN:
            self._known.clear()
        return self._known.setdefault(value, value)


def pairs(amounts: Mapping[str, int]) -> Amounts:
    """Return the amounts that are not 0."""
    return tuple(sorted((name, amount) for name, amount in amounts.items() if amount))


def add(total: dict[str, int], amounts: Iterable[tuple[str, int]], sign: int = 1) -> None:
    """Add amounts to a total, or subtract them; what is 0 then is left out."""
    for name, amount in amounts:
        after = total.get(name, 0) + sign * amount
        if after:
            total[name] = after
        else:
            total.pop(name, None)


def quantities(amounts: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return amounts as quantities by resource, sorted, at most MAX_RESOURCES of them."""
    return {
        name: f"{amount}m" if amount % ONE else format_quantity(float(amount // ONE))
        for name, amount in sorted(amounts)[:MAX_RESOURCES]
    }


def is_device(resource: str) -> bool:
    """Tell whether a resource is counted in whole devices, such as nvidia.com/gpu."""
    return "/" in resource
