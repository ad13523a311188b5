"""Type aliases of the arrays that the optimizer computes with, and their grouped maxima."""

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
