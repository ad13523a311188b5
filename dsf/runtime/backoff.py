"""How long to wait after failures."""

import math
from dataclasses import dataclass

from dsf.kube.errors import ApiError

LONGEST_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `base` to `ceiling` seconds, each jittered down to half at most."""

    base: float = 0.5
    ceiling: float = LONGEST_SECONDS

    def delay(self, failures: int, draw: float) -> float:
        """Return the seconds to wait after the n-th failure in a row; `draw` is in [0, 1)."""
        doublings = min(failures - 1, math.ceil(math.log2(self.ceiling / self.base)))
        return min(self.base * 2.0**doublings, self.ceiling) * (1 - draw / 2)


def retry_after(error: BaseException) -> float:
    """Return the seconds, five minutes at most, that an API server asks to stay away, else 0."""
    value = error.details.get("retryAfterSeconds") if isinstance(error, ApiError) else None
    if not isinstance(value, int | float) or not value > 0:
        return 0.0
    return float(min(value, LONGEST_SECONDS))
