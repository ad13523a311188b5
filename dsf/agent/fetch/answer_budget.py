"""Limits the bytes of answers that all rounds together hold in memory.

A round reserves bytes in steps while an answer arrives, and frees all of them when it ends. If a
step does not fit, the round waits. Admission follows the banker's algorithm: a step is granted only
if every round could still finish, one after the other, with the most that it may need. That
prevents deadlock. Source: E. W. Dijkstra, EWD 108 (1964).
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

STEP = 1 << 20
"""Bytes reserved at a time: fewer steps mean fewer decisions, smaller ones less waste."""

FREE_BYTES = 1 << 16
"""The first bytes of each round are not counted: most answers are small, and never wait."""


def safe(total: int, holds: Iterable[tuple[int, int]]) -> bool:
    """Tell whether all rounds can finish, given the bytes each holds and may still need."""
    holds = list(holds)
    free = total - sum(held for held, _ in holds)
    for held, need in sorted(holds, key=lambda reservation: reservation[1]):
        if need > free:
            return False
        free += held
    return True


class AnswerBudget:
    """`total` bytes for the answers of all rounds together."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._holds = dict[AnswerReservation, None]()
        self._waiting = set[asyncio.Future[None]]()

    @property
    def held(self) -> int:
        """The bytes that all rounds hold now."""
        return sum(reservation.held for reservation in self._holds)

    @contextmanager
    def reserve(self, most: int) -> "Iterator[AnswerReservation]":
        """Yield the reservation of a round that may need `most` bytes; it is limited to `total`."""
        reservation = AnswerReservation(self, min(most, self.total))
        self._holds[reservation] = None
        try:
            yield reservation
        finally:
            del self._holds[reservation]
            self.freed()

    async def grant(self, reservation: "AnswerReservation", size: int) -> None:
        """Wait until a round may hold `size` bytes, then reserve them."""
        while not self._is_safe(reservation, size):
            free = asyncio.get_running_loop().create_future()
            self._waiting.add(free)
            try:
                await free
            finally:
                self._waiting.discard(free)
        reservation.held = size

    def freed(self) -> None:
        """Wake all waiting rounds, because bytes were freed."""
        for free in self._waiting:
            if not free.done():
                free.set_result(None)

    def _is_safe(self, asking: "AnswerReservation", size: int) -> bool:
        others = [
            (reservation.held, reservation.most - reservation.held)
            for reservation in self._holds
            if reservation is not asking
        ]
        return safe(self.total, [*others, (size, asking.most - size)])


class AnswerReservation:
    """The bytes that one round holds, at most `most`; `waits` while it waits for other rounds.

    `kept` are the bytes of complete answers, `total` those that all rounds together may hold.
    """

    def __init__(self, shared: AnswerBudget, most: int) -> None:
        self.most = most
        self.held = 0
        self.waits = False
        self.total = shared.total
        self._shared = shared
        self.kept = 0

    async def read(self, size: int) -> None:
        """Wait until the answer being read may have `size` bytes."""
        needed = self.kept + size - FREE_BYTES
        if needed <= self.held:
            return
        self.waits = True
        await self._shared.grant(self, min(-(-needed // STEP) * STEP, self.most))
        self.waits = False

    def keep(self, size: int) -> None:
        """Keep `size` bytes of the answer that was read, and free the rest of its reservation."""
        self.kept += size
        self.held = min(self.held, self.kept)
        self._shared.freed()

    def drop(self, size: int) -> None:
        """Free `size` kept bytes."""
        self.keep(-size)

    def expect(self, most: int) -> None:
        """Limit what the round may still hold to `most` bytes."""
        self.most = min(self.most, most)
        self.held = min(self.held, self.most)
        self._shared.freed()
