"""The icons that a client shows to people: of the server, and of tools by what a call does."""

from mcp_types import Icon

_SVG = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath"
    " fill='%23{color}' d='{path}'/%3E%3C/svg%3E"
)

READS, PLANS, WRITES = (
    Icon(src=_SVG.format(color=color, path=path))
    for color, path in (
        ("326ce5", "M0 8q8-9 16 0-8 9-16 0zm8-3a3 3 0 1 0 .1 0z"),
        ("326ce5", "M1 9h4v6H1zM6 5h4v10H6zM11 1h4v14h-4z"),
        ("d60", "M1 15l1-5 9-9 4 4-9 9z"),
    )
)
"""An eye, bars, and an orange pencil. PLANS is the server's, too."""
