"""An event loop whose clock jumps: what waits for hours passes in no time.

Only for what stays inside the process: a socket's answer doesn't move the clock. Work for a thread
is done at once instead, so that no thread's speed decides what comes first.
"""

import asyncio
import selectors
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: where nothing is ready, the time asked for is taken to have passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("every task waits, and for nothing that time could bring")
        self.now += max(timeout, 0.0)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that starts at 0 seconds and waits for nobody."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the seconds that have passed."""
        return self._jumping.now

    def run_in_executor(  # type: ignore[override]
        self, _: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Return a future that is done: of what `func` returns, or of what it raises."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future
