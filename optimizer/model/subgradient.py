"""Minimises a convex, piecewise linear function over the nonnegative orthant by subgradients.

Used for Lagrangian duals: the point holds the multipliers, the value is the dual bound, and the
subgradient is the slack of the relaxed constraints. With value f(x), subgradient g, a target
t < f(x) and the step rule of B. T. Polyak, "Minimization of unsmooth functionals", USSR
Computational Mathematics and Mathematical Physics 9 (1969), the next point is

    d  <-  fresh * g + kept * d     (deflection: Camerini, Fratta, Maffioli 1975)
    x  <-  max(0, x - distance / (d . d) * d)     where distance is f(x) - t

M. Held, P. Wolfe, H. Crowder, "Validation of subgradient optimization", Mathematical Programming 6
(1974), shrink the step where the value no longer improves; so does this.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optimizer.domain.arrays import Floats


@dataclass(frozen=True, slots=True)
class StepRule:
    """How a descent chooses its steps.

    `fresh`, `kept`: weights of the subgradient and of the previous direction. `distance(value,
    lowest, size)`: how far the value is above the target, where `size` starts at 1 and shrinks.
    `patience`: evaluations without progress after which `size` is multiplied by `shrink`.
    `least_size`: the descent ends below it. `progress(lowest)`: an improvement by less counts as
    none. Where a coordinate is 0 and would fall, the subgradient is 0, or with `project_direction`
    the direction.
    """

    fresh: float
    kept: float
    distance: Callable[[float, float, float], float]
    patience: int
    shrink: float
    least_size: float
    progress: Callable[[float], float] = lambda _lowest: 0.0
    project_direction: bool = False


def minimise(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    rule: StepRule,
    stop: Callable[[], bool],
    scale: Floats | float = 1.0,
) -> tuple[float, Floats]:
    """Return the lowest value met and its point, which has the shape of `start`.

    `evaluate` returns the value and a subgradient at a point. `stop` is called after every
    evaluation. `scale`: units of the coordinates; a step is taken in units.
    """
    point, direction = start, np.zeros(len(start))
    lowest, best, size, waited = np.inf, start, 1.0, 0
    while True:
        value, subgradient = evaluate(point)
        # For the first value, an infinite progress(inf) makes the difference nan: no progress.
        waited = 0 if value < lowest - rule.progress(lowest) else waited + 1
        if value < lowest:
            lowest, best = value, point
        if stop():
            return lowest, best
        if waited >= rule.patience:
            size, waited = size * rule.shrink, 0
        if size < rule.least_size:
            return lowest, best
        subgradient = subgradient / scale
        if not rule.project_direction:
            subgradient[(point <= 0) & (subgradient > 0)] = 0.0
        direction = rule.fresh * subgradient + rule.kept * direction
        if rule.project_direction:
            direction[(point <= 0) & (direction > 0)] = 0.0
        # A dot product may depend on the number of cores, this sum does not.
        length = float((direction * direction).sum())
        if length == 0:
            return lowest, best
        step = rule.distance(value, lowest, size) / length * direction
        point = np.maximum(0.0, point - step / scale)
