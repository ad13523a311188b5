"""Wait for something to become true: `eventually` in async tests, `until` in blocking ones.

A deadline catches a hang; it does not measure speed, so it is generous.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")

PATIENCE = 180.0
"""Seconds. The slowest step of a real hub on a loaded machine takes about a minute."""


async def eventually(
    condition: Callable[[], Awaitable[Found | None]],
    *,
    seconds: float = PATIENCE,
    every: float = 0.01,
    ignoring: type[Exception] | tuple[type[Exception], ...] = (),
) -> Found:
    """Await `condition()` every so many seconds until it is true, and return what it returned.

    Exceptions in `ignoring` count as not yet. Raises TimeoutError after `seconds`.
    """
    async with asyncio.timeout(seconds):
        while True:
            try:
                if found := await condition():
                    return found
            except ignoring:
                pass
            await asyncio.sleep(every)


def until(
    what: str,
    condition: Callable[[], Found | None],
    *,
    seconds: float = PATIENCE,
    every: float = 0.1,
    check: Callable[[], None] = lambda: None,
) -> Found:
    """Call `condition()` every so many seconds until it is true, and return what it returned.

    `check` runs in between and raises once waiting has become pointless. Raises TimeoutError with
    `what` and the last answer after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        if found := condition():
            return found
        check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s; last answer: {found!r}")
        time.sleep(every)
