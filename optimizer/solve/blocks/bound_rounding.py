"""How bounds and cutoffs are rounded where all scores are whole numbers.

Every decision has a whole value then, so a bound is rounded down, a better decision is worth 1 more
at least, and a cutoff half of that.
"""

from math import ceil, floor

import numpy as np

from optimizer.model.decision_comparison import SAME_VALUE
from optimizer.solve.blocks.block_problem import BlockProblem

_COARSE_GAP = 1e-3
"""Relative gap from which on only decisions that close it are searched for."""

_HALF = 0.5


def is_whole(blocks: BlockProblem) -> bool:
    """Tell whether every decision has a whole value."""
    return bool((blocks.mode_values == np.floor(blocks.mode_values)).all()) and all(
        bool((row == np.floor(row)).all()) for row in blocks.values
    )


def rounded_bound(bound: float, whole: bool) -> float:
    """Return a bound, rounded down where every decision has a whole value."""
    return float(floor(bound + SAME_VALUE)) if whole else bound


def cutoff_of(value: float, bound: float, gap: float, whole: bool) -> float:
    """Return the cutoff: a decision of this value or less is not an improvement.

    With a coarse gap, neither is a decision that is not close enough to the bound.
    """
    least = bound / (1.0 + gap) if gap >= _COARSE_GAP else value
    if whole:
        return max(value + _HALF, ceil(least - SAME_VALUE) - _HALF if least > value else value)
    return max(value, least - SAME_VALUE * abs(least)) if least > value else value
