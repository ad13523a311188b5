"""Tables for a terminal, in aligned columns as kubectl prints them."""

from collections.abc import Sequence
from dataclasses import dataclass

from dsf.api.untrusted_text import escaped

COLUMN_SPACING = 3
"""Spaces between two columns, as in kubectl."""


@dataclass(frozen=True, slots=True)
class TextTable:
    """Column names, rows with a cell for each column, and a title (empty for none)."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    def __str__(self) -> str:
        """Return the title, the columns in capitals and the rows, each cell as wide as its column.

        Invisible characters are escaped, because a terminal would obey some of them.
        """
        header = [column.upper() for column in self.columns]
        lines = [[escaped(cell) for cell in line] for line in (header, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = [
            (" " * COLUMN_SPACING).join(map(str.ljust, line, widths)).rstrip() for line in lines
        ]
        return "\n".join([escaped(self.title), *padded] if self.title else padded)
