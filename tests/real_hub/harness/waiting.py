"""Wait for something to become true, with a deadline that says what did not happen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Found = TypeVar("Found")
# Generous on purpose: a deadline catches a hang, it does not measure speed.
PATIENCE = 180.0


def until(
    what: str,
    probe: Callable[[], Found | None],
    *,
    patience: float = PATIENCE,
    every: float = 0.1,
    check: Callable[[], None] = lambda: None,
) -> Found:
    """Call ``probe`` until it returns something true, and return that.

    ``patience`` and ``every`` are seconds; ``check`` runs between probes and raises when waiting
    has become pointless. Raises TimeoutError naming ``what`` and the last answer.
    """
    deadline = time.monotonic() + patience
    while True:
        answer = probe()
        if answer:
            return answer
        check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {patience:.0f} s; last answer: {answer!r}")
        time.sleep(every)
