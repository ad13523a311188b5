"""An event loop whose clock jumps to whatever is due next: a day passes in a moment."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("nothing will ever happen")
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose `time` starts at 0 and passes only while every task waits."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end, and return the result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
