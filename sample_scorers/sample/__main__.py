"""`python -m sample_scorers.sample`: serve the sample scorer."""

import sys
from collections.abc import Sequence

from ..program import add_prometheus_option, command_line, serve
from .app import create_app


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = command_line("sample-scorer", "Scores each pod by its mean CPU use.")
    add_prometheus_option(parser)
    args = parser.parse_args(argv)
    return serve("sample-scorer", create_app(args.prometheus_url), args)


if __name__ == "__main__":
    sys.exit(main())
