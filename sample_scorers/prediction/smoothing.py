"""Members of the combined forecast: exponential smoothing and the running mean.

A *member* is one method with fixed factors. All members are linear in the values of a series, and
their weights add up to 1. So the recursion runs once, over the unit vectors, and the forecasts of
all series are one product of matrices.

Source: Gardner, "Exponential smoothing: the state of the art, part II" (2006), in the
error-correction form of Hyndman et al., "Forecasting with Exponential Smoothing" (2008).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Steps = NDArray[np.intp]
Flags = NDArray[np.bool_]

_FLAT = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
_TREND = ((0.4, 0.1, 0.9), (0.8, 0.1, 0.9), (0.2, 0.1, 0.95), (0.8, 0.5, 1.0))
_ALPHA, _BETA, _PHI = np.array([*((alpha, 0.0, 1.0) for alpha in _FLAT), *_TREND]).T[:, :, None]
"""Level, trend and damping factors, a row for each member."""

REVERTING = slice(1, 5)
"""Members that are also pulled towards the running mean: levels of medium memory."""


def smoothing_weights(steps: int, ahead: int) -> Floats:
    """Return the weights of the values in the forecast mean of the `ahead` steps after each step.

    The axes are [step, member, value]; the last member is the running mean.
    """
    values = np.eye(steps)
    members = len(_ALPHA)
    forecasts = np.empty((steps, members + 1, steps))
    growth = np.cumsum(_PHI ** np.arange(1, ahead + 1), axis=1).mean(axis=1)[:, None]
    level = np.broadcast_to(values[0], (members, steps)).copy()
    trend, mean = np.zeros((members, steps)), np.zeros(steps)
    for step, value in enumerate(values):
        mean = mean + (value - mean) / (step + 1)
        trend = _PHI * trend
        level = level + trend
        error = value - level
        # While values are few, a flat level is their mean: the first one has no special weight.
        level = level + np.where(_BETA > 0, _ALPHA, np.maximum(_ALPHA, 1 / (step + 1))) * error
        trend = trend + _ALPHA * _BETA * error
        forecasts[step, :-1] = level + growth * trend
        forecasts[step, -1] = mean
    return forecasts
