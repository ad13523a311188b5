# SPDX-License-Identifier: Apache-2.0
"""Serve the prediction by a combination: `python -m`, and the name of this package."""

import argparse
import sys
from collections.abc import Sequence

from ...scoring_service.program import command_line, finite_number, serve
from ..__main__ import NAME, add_forecast_options
from .app import PredictionSettings, create_app
from .score import ScoreMeaning

_LOWEST, _HIGHEST = 0.01, 0.99
"""Quantiles that a DynamicScorer may declare."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = command_line(NAME, "Scores each series by a forecast: by default, each pod's CPU use.")
    add_forecast_options(parser)
    _add_meaning_options(parser)
    args = parser.parse_args(argv)
    settings = PredictionSettings(
        args.prometheus_url,
        args.query,
        args.range,
        args.step,
        ScoreMeaning(args.horizon, args.quantile, args.threshold),
    )
    return serve(NAME, create_app(settings), args)


def _add_meaning_options(parser: argparse.ArgumentParser) -> None:
    score = parser.add_mutually_exclusive_group()
    score.add_argument(
        "--quantile",
        type=_quantile,
        help="the score is this quantile of the forecast, such as 0.9: a bound that the load"
        " exceeds one time in ten (the forecast mean)",
    )
    score.add_argument(
        "--threshold",
        type=finite_number,
        help="the score is the chance in percent that the mean load exceeds this",
    )


def _quantile(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not _LOWEST <= value <= _HIGHEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not between {_LOWEST} and {_HIGHEST}")
    return value


if __name__ == "__main__":
    sys.exit(main())
