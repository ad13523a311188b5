"""A bounded mapping that evicts the least recently used entry."""

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Keeps the `size` entries that were put or got most recently."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None if it is unknown or evicted."""
        if key not in self._items:
            return None
        self._items.move_to_end(key)
        return self._items[key]

    def put(self, key: K, value: V) -> None:
        """Store a value; evict the least recently used entry if there are too many."""
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._size:
            self._items.popitem(last=False)

    def values(self) -> list[V]:
        """Return the values, the least recently used first."""
        return list(self._items.values())

    def forget(self, key: K) -> None:
        """Remove a key, if it is present."""
        self._items.pop(key, None)
