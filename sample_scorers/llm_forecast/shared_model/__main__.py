# SPDX-License-Identifier: Apache-2.0
"""Serve the forecasts of a model that many clusters share: `python -m`, and the package."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields

from ...scoring_service.program import (
    add_prometheus_option,
    command_line,
    positive_number,
    positive_whole_number,
    serve,
)
from ..__main__ import NAME, add_model_options
from .app import create_app
from .completion_api import PATHS
from .model_client import ForecastSettings


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = command_line(NAME, "Scores each pod by the CPU use that a language model forecasts.")
    add_prometheus_option(parser)
    add_model_options(parser)
    _add_serving_options(parser)
    _add_limits(parser)
    args = parser.parse_args(argv)
    if not args.endpoint or not args.model:
        parser.error("set VLLM_ENDPOINT and MODEL_NAME, or use --endpoint and --model")
    settings = ForecastSettings(
        **{each.name: getattr(args, each.name) for each in fields(ForecastSettings)}
    )
    return serve(NAME, create_app(settings), args)


def _add_serving_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--api",
        choices=list(PATHS),
        default=ForecastSettings.api,
        help="chat completions, or plain ones for models without a chat template (%(default)s)",
    )
    parser.add_argument(
        "--fallback",
        action="store_true",
        help="score series that the model has not forecast by their last ten minutes, with the"
        " label meta=statistical-fallback",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    number, whole = positive_number, positive_whole_number
    for option, kind, unit, meaning in (
        ("--deadline", number, "SECONDS", "seconds that one scoring request may take"),
        ("--concurrency", whole, None, "requests to the model at a time"),
        ("--max-series", whole, None, "series of one scoring request"),
        ("--max-value", number, "CORES", "cores that no forecast may exceed, unless a sample does"),
        ("--max-reply-tokens", whole, None, "tokens of one reply, reasoning included"),
    ):
        default = getattr(ForecastSettings, option[2:].replace("-", "_"))
        parser.add_argument(
            option, type=kind, default=default, metavar=unit, help=f"{meaning} (%(default)s)"
        )
    parser.add_argument(
        "--tokens-per-hour",
        type=whole,
        help="tokens of all prompts and replies in an hour; by default there is no limit",
    )


if __name__ == "__main__":
    sys.exit(main())
