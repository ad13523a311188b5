# SPDX-License-Identifier: Apache-2.0
"""Serve the latency scorer: `python -m` and the name of this package."""

import sys
from collections.abc import Sequence

from ..scoring_service.application import create_app
from ..scoring_service.program import add_prometheus_option, command_line, serve
from .score import PROBES, scorer

NAME = "latency-scorer"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = command_line(NAME, "Scores each app by how long its probes take.")
    add_prometheus_option(parser)
    parser.add_argument(
        "--query",
        default=PROBES,
        metavar="PROMQL",
        help="durations in seconds with a label app or instance (%(default)s)",
    )
    args = parser.parse_args(argv)
    return serve(NAME, create_app(scorer(args.prometheus_url, args.query)), args)


if __name__ == "__main__":
    sys.exit(main())
