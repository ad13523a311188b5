"""Array types of the optimizer, exact narrowing of floats, and groups of values by key."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def first_maxima(values: Floats, starts: Ints) -> Ints:
    """Return the first position of the highest value from each start to the next."""
    most = np.maximum.reduceat(values, starts)
    at = np.nonzero(values == np.repeat(most, np.diff(np.append(starts, len(values)))))[0]
    return np.asarray(at[np.searchsorted(at, starts)], dtype=np.int64)


FloatArray = NDArray[np.floating[Any]]

WIDTHS = (np.float16, np.float32, np.float64)
"""From narrow to wide. float16 is exact for whole numbers up to 2,048; scores are up to 100."""


def narrow(values: FloatArray) -> FloatArray:
    """Return the numbers in the narrowest array that is exact; NaN stays NaN.

    `values` [rows, columns] is checked row by row, which needs less memory.
    """
    for width in WIDTHS:
        if values.dtype == width or all(is_exact(row, width) for row in values):
            return values.astype(width, copy=False)
    return values


def widen(values: FloatArray) -> FloatArray:
    """Return the numbers as float64."""
    return values.astype(np.float64, copy=False)


def wide_enough(values: FloatArray, added: NDArray[np.float64]) -> FloatArray:
    """Return `values` in a type that also represents the numbers of `added` exactly."""
    widths = (width for width in WIDTHS if np.can_cast(values.dtype, width))
    return values.astype(next(width for width in widths if is_exact(added, width)), copy=False)


def is_exact(values: FloatArray, width: type[np.floating[Any]]) -> bool:
    """Tell whether a type represents each number exactly."""
    with np.errstate(over="ignore"):
        same = values.astype(width) == values
    return bool((same | np.isnan(values)).all())


GroupKey = TypeVar("GroupKey", bound=Hashable)
Member = TypeVar("Member")


def members_by_key(pairs: Iterable[tuple[GroupKey, Member]]) -> dict[GroupKey, list[Member]]:
    """Return the members of each key; keys and members keep their order."""
    found: dict[GroupKey, list[Member]] = {}
    for key, member in pairs:
        found.setdefault(key, []).append(member)
    return found


def grouped(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each distinct key with the positions that have it, both ascending."""
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts[1:]), strict=True) if len(keys) else ()
