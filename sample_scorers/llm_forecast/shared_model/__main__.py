# SPDX-License-Identifier: Apache-2.0
"""Serve the forecasts of a model that many clusters share: `python -m`, and the package."""

import argparse
import sys
from collections.abc import Sequence

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
        endpoint=args.endpoint,
        model=args.model,
        prometheus_url=args.prometheus_url,
        api=args.api,
        deadline=args.deadline,
        concurrency=args.concurrency,
        max_series=args.max_series,
        max_value=args.max_value,
        max_reply_tokens=args.max_reply_tokens,
        tokens_per_hour=args.tokens_per_hour,
        fallback=args.fallback,
        model_token_file=args.model_token_file,
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
    parser.add_argument(
        "--deadline",
        type=positive_number,
        default=ForecastSettings.deadline,
        metavar="SECONDS",
        help="seconds that one scoring request may take (%(default)s)",
    )
    parser.add_argument(
        "--concurrency",
        type=positive_whole_number,
        default=ForecastSettings.concurrency,
        help="requests to the model at a time (%(default)s)",
    )
    parser.add_argument(
        "--max-series",
        type=positive_whole_number,
        default=ForecastSettings.max_series,
        help="series of one scoring request (%(default)s)",
    )
    parser.add_argument(
        "--max-value",
        type=positive_number,
        default=ForecastSettings.max_value,
        metavar="CORES",
        help="cores that no forecast may exceed, unless a sample does (%(default)s)",
    )
    parser.add_argument(
        "--max-reply-tokens",
        type=positive_whole_number,
        default=ForecastSettings.max_reply_tokens,
        help="tokens of one reply, reasoning included (%(default)s)",
    )
    parser.add_argument(
        "--tokens-per-hour",
        type=positive_whole_number,
        help="tokens of all prompts and replies in an hour; by default there is no limit",
    )


if __name__ == "__main__":
    sys.exit(main())
