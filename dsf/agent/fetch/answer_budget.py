"""The bytes of answers that all rounds hold at the same time, bounded.

A round takes what it needs step by step, and lets go of all of it when it ends. Whoever would take
more than there is waits. Lest two rounds wait for each other for ever, nobody gets a step after
which not every round could still end, one after the other, each with the most that it may need:
the banker's algorithm. Source: E. W. Dijkstra, EWD 108 (1964).
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

STEP = 1 << 20
FREE_BYTES = 1 << 16
"""Of each round, which count for nothing: most answers are small, and never wait."""


def safe(total: int, holds: Iterable[tuple[int, int]]) -> bool:
    """Tell whether all can still end, given for each what it holds and what else it may need."""
    holds = list(holds)
    free = total - sum(held for held, _ in holds)
    for held, need in sorted(holds, key=lambda hold: hold[1]):
        if need > free:
            return False
        free += held
    return True


class AnswerBudget:
    """At most `total` bytes for all rounds together."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._holds = dict[AnswerReservation, None]()
        self._waiting = set[asyncio.Future[None]]()

    @property
    def held(self) -> int:
        """The bytes that are held now."""
        return sum(hold.held for hold in self._holds)

    @contextmanager
    def round(self, most: int) -> "Iterator[AnswerReservation]":
        """Yield what a round holds, which may become `most` bytes, at most `total`."""
        hold = AnswerReservation(self, min(most, self.total))
        self._holds[hold] = None
        try:
            yield hold
        finally:
            del self._holds[hold]
            self.freed()

    async def grant(self, hold: "AnswerReservation", size: int) -> None:
        """Wait until a round may hold `size` bytes, and let it."""
        while not self._is_safe(hold, size):
            free = asyncio.get_running_loop().create_future()
            self._waiting.add(free)
            try:
                await free
            finally:
                self._waiting.discard(free)
        hold.held = size

    def freed(self) -> None:
        """Have those that wait look again."""
        for free in self._waiting:
            if not free.done():
                free.set_result(None)

    def _is_safe(self, asking: "AnswerReservation", size: int) -> bool:
        others = [(hold.held, hold.most - hold.held) for hold in self._holds if hold is not asking]
        return safe(self.total, [*others, (size, asking.most - size)])


class AnswerReservation:
    """The bytes of answers that one round holds; `waits` tells whether it waits for others."""

    def __init__(self, shared: AnswerBudget, most: int) -> None:
        self.most = most
        self.held = 0
        self.waits = False
        self._shared = shared
        self._kept = 0

    @property
    def total(self) -> int:
        """What all rounds together may hold."""
        return self._shared.total

    async def read(self, size: int) -> None:
        """Wait until the answer that is being read may have `size` bytes."""
        wanted = self._kept + size - FREE_BYTES
        if wanted <= self.held:
            return
        self.waits = True
        await self._shared.grant(self, min(-(-wanted // STEP) * STEP, self.most))
        self.waits = False

    def keep(self, size: int) -> None:
        """Say that the answer is complete, or 0 bytes of it are kept."""
        self._kept += size
        self.held = min(self.held, self._kept)
        self._shared.freed()

    def expect(self, size: int) -> None:
        """Say that no more than `size` bytes will follow."""
        self.most = min(self.most, self._kept + size)
        self.held = min(self.held, self.most)
        self._shared.freed()
