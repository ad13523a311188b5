"""Exponential back-off: how long to wait after failures."""

import math
from dataclasses import dataclass

from dsf.kube.errors import Unreachable

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


AWAY = Backoff(0.5, 2.0)
"""After calls without an answer: another one costs little, and soon finds a server that is back."""


@dataclass(slots=True)
class Failures:
    """The failures of one thing in a row; those without an answer are counted for themselves.

    A server that was away for long and then refuses its first calls is asked again soon.
    """

    backoff: Backoff
    _count: int = 0
    _unanswered: bool = False

    def delay(self, error: Exception, draw: float) -> float:
        """Count a failure, and return the seconds to wait after it; `draw` is in [0, 1)."""
        unanswered = isinstance(error, Unreachable)
        self._count = self._count + 1 if unanswered == self._unanswered else 1
        self._unanswered = unanswered
        return (AWAY if unanswered else self.backoff).delay(self._count, draw)

    def reset(self) -> None:
        """Forget all failures."""
        self._count = 0
