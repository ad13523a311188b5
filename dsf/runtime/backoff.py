"""How long to wait after failures."""

import math
from dataclasses import dataclass

from dsf.kube.errors import ApiError


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `base` to `ceiling` seconds, each jittered down to half at most."""

    base: float = 0.5
    ceiling: float = 300.0

    def delay(self, failures: int, draw: float) -> float:
        """Return the seconds to wait after the n-th failure in a row; `draw` is in [0, 1)."""
        doublings = min(failures - 1, math.ceil(math.log2(self.ceiling / self.base)))
        return min(self.base * 2.0**doublings, self.ceiling) * (1 - draw / 2)


def retry_after(error: BaseException) -> float:
    """Return the seconds that an API server asks to stay away, 0 where it does not."""
    value = error.details.get("retryAfterSeconds") if isinstance(error, ApiError) else None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
