# SPDX-License-Identifier: Apache-2.0
"""Serve the static scorers: `python -m` and the name of this package."""

import ssl
import sys
from collections.abc import Sequence
from pathlib import Path

from ..scoring_service.program import command_line, fail, http_url, serve
from .app import NAME, create_app
from .push import PushedAgent, watch
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
    parser.add_argument(
        "--push-url",
        type=http_url,
        action="append",
        default=[],
        metavar="URL",
        help="when the file changes, push to the agent at this URL; needs --token-file; repeatable",
    )
    parser.add_argument(
        "--push-ca-file", metavar="FILE", help="PEM certificates to trust in pushes over https"
    )
    args = parser.parse_args(argv)
    if args.push_url and not args.token_file:
        parser.error("--push-url needs --token-file: an agent knows a scorer by its token")
    if args.push_ca_file and not args.push_url:
        parser.error("--push-ca-file needs --push-url")
    try:
        tls = ssl.create_default_context(cafile=args.push_ca_file) if args.push_ca_file else None
    except OSError as error:
        return fail(NAME, f"cannot use {args.push_ca_file}: {error.strerror or error}")
    tables = read(args.scores)
    if isinstance(tables, InvalidScoresFile):
        return fail(NAME, tables.message)
    app = create_app(tables)
    agents = [PushedAgent(url, args.token_file, tls) for url in args.push_url]
    watch(args.scores, app.state.tables, agents)
    return serve(NAME, app, args)


if __name__ == "__main__":
    sys.exit(main())
