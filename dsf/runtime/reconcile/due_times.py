"""The due times of the keys of a work queue; pure, the time is passed in."""

import heapq
from itertools import count


class DueTimes:
    """Keys with due times. Each key occurs once and is never processed twice at the same time."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._rests: dict[str, float] = {}
        self._active: set[str] = set()
        self._heap: list[tuple[float, int, str]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: str, at: float) -> None:
        """Make a key due at a time; the earlier of two times wins, but not before a `rest` ends."""
        at = max(at, self._rests.get(key, at))
        if at < self._due.get(key, float("inf")):
            self._due[key] = at
            self._push(key)

    def rest(self, key: str, until: float) -> None:
        """Do not return a key before a time, even if it is due or added earlier."""
        self._rests[key] = until
        if self._due.get(key, until) < until:
            self._due[key] = until
            self._push(key)

    def take(self, now: float) -> str | None:
        """Return the key that has been due longest, or None; `done` must follow."""
        at = self.next_at()
        if at is None or at > now:
            return None
        _, _, key = heapq.heappop(self._heap)
        del self._due[key]
        self._rests.pop(key, None)
        self._active.add(key)
        return key

    def done(self, key: str) -> None:
        """End the processing of a key; if it was added meanwhile, it becomes available again."""
        self._active.discard(key)
        if key in self._due:
            self._push(key)

    def next_at(self) -> float | None:
        """Return the time at which `take` has a key next, or None without any key."""
        while self._heap and not self._available(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _available(self, at: float, _: int, key: str) -> bool:
        return self._due.get(key) == at and key not in self._active

    def _push(self, key: str) -> None:
        heapq.heappush(self._heap, (self._due[key], next(self._order), key))
