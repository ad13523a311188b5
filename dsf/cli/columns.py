"""Text in aligned columns, as kubectl prints it."""

from collections.abc import Sequence

from dsf.api.untrusted_text import escaped

COLUMN_SPACING = 3
"""Spaces between two columns, as in kubectl."""


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the header in capitals and the rows, every column as wide as its widest cell.

    Invisible characters of a cell are escaped, as a terminal would obey some of them.
    """
    lines = [[escaped(cell) for cell in line] for line in (map(str.upper, header), *rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(header))]
    return "\n".join(
        (" " * COLUMN_SPACING)
        .join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        .rstrip()
        for line in lines
    )
