# SPDX-License-Identifier: Apache-2.0
"""Serve the static scorers: `python -m` and the name of this package."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ..scoring_service.program import command_line, fail, serve
from .app import NAME, create_app
from .score import SHIPPED, InvalidScoresFile, read


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = command_line(NAME, "Serves scores from a table.")
    parser.add_argument(
        "--scores",
        type=Path,
        default=SHIPPED,
        metavar="FILE",
        help="YAML or JSON file with the tables of scores (%(default)s)",
    )
    args = parser.parse_args(argv)
    tables = read(args.scores)
    if isinstance(tables, InvalidScoresFile):
        return fail(NAME, tables.message)
    return serve(NAME, create_app(tables), args)


if __name__ == "__main__":
    sys.exit(main())
