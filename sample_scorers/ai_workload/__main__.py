# SPDX-License-Identifier: Apache-2.0
"""Serve the AI workload scorers: `python -m` and the name of this package."""

import argparse
import sys
from collections.abc import Sequence

from ..scoring_service.program import add_prometheus_option, command_line, positive_number, serve
from .app import AiWorkloadSettings, create_app
from .signals import AppPattern

NAME = "ai-workload-scorer"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = command_line(NAME, "Scores each app on each GPU device by tokens, watts and money.")
    add_prometheus_option(parser)
    parser.add_argument(
        "--app",
        type=_app_pattern,
        action="append",
        default=[],
        metavar="APP=PODS",
        help="the pods of an app, with * and ?; repeatable, the first that fits counts. Without"
        " it, the app is the name of the Deployment or StatefulSet",
    )
    for option, meaning in (
        ("--max-tokens-per-second", "token rate that is published as 100"),
        ("--max-watts", "power that is published as 0"),
        ("--max-tokens-for-money", "million tokens for a unit of money that are published as 100"),
    ):
        default = getattr(AiWorkloadSettings, option[2:].replace("-", "_"))
        text = f"{meaning} (%(default)s)"
        parser.add_argument(option, type=positive_number, default=default, help=text)
    args = parser.parse_args(argv)
    settings = AiWorkloadSettings(
        args.prometheus_url,
        args.max_tokens_per_second,
        args.max_watts,
        args.max_tokens_for_money,
        args.app,
    )
    return serve(NAME, create_app(settings), args)


def _app_pattern(text: str) -> AppPattern:
    app, equals, pods = text.partition("=")
    if not (app and equals and pods):
        raise argparse.ArgumentTypeError(f"{text!r} is not like app01=vllm-app01-*")
    return AppPattern(app, pods)


if __name__ == "__main__":
    sys.exit(main())
