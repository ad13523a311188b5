"""Groups values by a key."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Member = TypeVar("Member")


def members_by_key(pairs: Iterable[tuple[Key, Member]]) -> dict[Key, list[Member]]:
    """Return the members of each key; keys and members keep their order."""
    found: dict[Key, list[Member]] = {}
    for key, member in pairs:
        found.setdefault(key, []).append(member)
    return found
