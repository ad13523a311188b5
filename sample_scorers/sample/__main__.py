# SPDX-License-Identifier: Apache-2.0
"""Serve the sample scorer: `python -m` and the name of this package."""

import sys
from collections.abc import Sequence

from ..scoring_service.application import create_app
from ..scoring_service.program import add_prometheus_option, command_line, serve
from .score import scorer

NAME = "sample-scorer"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = command_line(NAME, "Scores each pod by its mean CPU use.")
    add_prometheus_option(parser)
    args = parser.parse_args(argv)
    return serve(NAME, create_app(scorer(args.prometheus_url)), args)


if __name__ == "__main__":
    sys.exit(main())
