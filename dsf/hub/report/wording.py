"""Lists, counts and cut texts for messages in statuses."""

from collections.abc import Sequence

from dsf.api.plural import counted, joined

SHOWN_ITEMS = 5
"""Items of a list that a message names; it counts the others."""
SHOWN_CHARACTERS = 120
"""Characters that a message quotes of a value."""


def first_items(items: Sequence[str], *, of: int | None = None) -> str:
    """Return the first items separated by semicolons, and how many more there are.

    `of` is the number of all items, where `items` are only the first of them.
    """
    return joined(items, SHOWN_ITEMS, separator="; ", of=of or 0)


def shortened(value: object, limit: int = SHOWN_CHARACTERS) -> str:
    """Return a value as text of at most `limit` characters, with an ellipsis where it was cut."""
    text = str(value)
    return text if len(text) <= limit else f"{text[:limit]}…"


def works_of(clusters: int) -> str:
    """Return what carries summaries to that many managed clusters."""
    return f"ManifestWork{'' if clusters == 1 else 's'} of {counted(clusters, 'managed cluster')}"
