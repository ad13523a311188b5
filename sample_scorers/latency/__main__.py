"""`python -m sample_scorers.latency`: serve the latency scorer."""

import sys
from collections.abc import Sequence

from ..program import add_prometheus_option, command_line, serve
from .app import PROBES, create_app

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
    return serve(NAME, create_app(args.prometheus_url, args.query), args)


if __name__ == "__main__":
    sys.exit(main())
