"""Arrays of numbers that need little room: as narrow as holds each of them exactly."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]

WIDTHS = (np.float16, np.float32, np.float64)
"""Scores are whole numbers up to 100: the narrowest holds those up to 2,048."""


def narrow(values: FloatArray) -> FloatArray:
    """Return the same numbers in a narrower array, or the array itself where there is none.

    `values` has rows; NaN stays NaN.
    """
    for width in WIDTHS:
        if values.dtype == width or all(is_exact(row, width) for row in values):
            return values.astype(width, copy=False)
    return values


def widen(values: FloatArray) -> FloatArray:
    """Return the same numbers in the usual width."""
    return values.astype(np.float64, copy=False)


def wide_enough(values: FloatArray, added: NDArray[np.float64]) -> FloatArray:
    """Return the array, of wider numbers where it could not hold what is added exactly."""
    widths = (width for width in WIDTHS if np.can_cast(values.dtype, width))
    return values.astype(next(width for width in widths if is_exact(added, width)), copy=False)


def is_exact(values: FloatArray, width: type[np.floating[Any]]) -> bool:
    """Tell whether numbers of this width are the same numbers."""
    with np.errstate(over="ignore"):
        same = values.astype(width) == values
    return bool((same | np.isnan(values)).all())
