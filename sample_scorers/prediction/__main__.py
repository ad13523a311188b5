# SPDX-License-Identifier: Apache-2.0
"""Serve the prediction by the last season: `python -m` and the name of this package."""

import argparse
import sys
from collections.abc import Sequence

from ..scoring_service.application import create_app
from ..scoring_service.program import (
    add_prometheus_option,
    command_line,
    positive_whole_number,
    serve,
)
from ..scoring_service.wire import CPU_CORES_BY_POD
from .score import HORIZON_SECONDS, STEP_SECONDS, WINDOW_SECONDS, config, scorer

NAME = "simple-prediction-scorer"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = command_line(NAME, "Scores each series by the same time of its last season.")
    add_forecast_options(parser)
    parser.add_argument(
        "--season",
        type=positive_whole_number,
        metavar="SECONDS",
        help="86400 for a day; without it, the mean of the last horizon is forecast to stay",
    )
    args = parser.parse_args(argv)
    if args.season and max(args.season, args.horizon) > args.range:
        parser.error("--range must be at least --season, and --horizon")
    served = config(args.prometheus_url, args.query, args.range, args.step, args.horizon)
    return serve(NAME, create_app(scorer(served, args.horizon, args.season)), args)


def add_forecast_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose the series, their window and the horizon."""
    add_prometheus_option(parser)
    parser.add_argument(
        "--query", default=CPU_CORES_BY_POD, help="PromQL for the series (CPU cores of each pod)"
    )
    for option, default, meaning in (
        ("--range", WINDOW_SECONDS, "seconds of history"),
        ("--step", STEP_SECONDS, "seconds between two samples"),
        ("--horizon", HORIZON_SECONDS, "seconds whose mean is forecast"),
    ):
        parser.add_argument(
            option,
            type=positive_whole_number,
            default=default,
            metavar="SECONDS",
            help=f"{meaning} (%(default)s)",
        )


if __name__ == "__main__":
    sys.exit(main())
