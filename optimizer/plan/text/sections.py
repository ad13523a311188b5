"""The parts of a description: rows for a table, and sentences that say the same."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dsf.api.plural import joined
from optimizer.wire.explanation import AssignmentRef

SHOWN = 20
"""Rows of a long table, sentences of a long list, names in a cell: what a screen holds at once."""

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a description.

    `name` is the plural noun for what the section lists. `title` stands above the table; the
    sentences include what it says.
    """

    name: str
    columns: Row
    rows: tuple[Row, ...]
    sentences: tuple[str, ...]
    title: str = ""


def first_rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the first rows, then one that counts the rest."""
    listed = tuple(rows)
    left = len(listed) - SHOWN
    if left <= 0:
        return listed
    width = len(listed[0])
    return (*listed[:SHOWN], ("...", f"{left} more", *[""] * width)[:width])


def first_sentences(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return the first sentences, then one that counts the rest."""
    listed = tuple(sentences)
    left = len(listed) - SHOWN
    return (*listed[:SHOWN], *([f"And {left} more of these."] if left > 0 else []))


def first_names(names: Sequence[str]) -> str:
    """Return the first names separated by commas, and the count of the rest."""
    return joined(names, SHOWN)


def assignments(places: Sequence[AssignmentRef]) -> str:
    """Return where workloads run: `chat on 3g.48gb of east, search on 2g.24gb of west`."""
    return first_names([f"{item.workload} on {item.device} of {item.cluster}" for item in places])
