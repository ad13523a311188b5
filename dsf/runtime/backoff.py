"""Exponential back-off: how long to wait after failures."""

import math
from dataclasses import dataclass

LONGEST_SECONDS = 300.0
"""The longest delay: a recovered dependency is noticed within five minutes."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `base` to `ceiling` seconds, with jitter."""

    base: float = 0.5
    ceiling: float = LONGEST_SECONDS

    def delay(self, failures: int, draw: float) -> float:
        """Return min(base 2^(failures-1), ceiling) (1 - draw/2) seconds; `draw` is in [0, 1)."""
        doublings = min(failures - 1, math.ceil(math.log2(self.ceiling / self.base)))
        return min(self.base * 2.0**doublings, self.ceiling) * (1 - draw / 2)
