"""The flags for the hosts and addresses that scorers may name, the same for hub and agents."""

from typing import TYPE_CHECKING

import click

from dsf.cli.options import option, options

if TYPE_CHECKING:
    from dsf.outbound.destinations import Destinations

destination_options = options(
    option(
        "--scorer-allowed-hosts",
        multiple=True,
        metavar="GLOBS",
        help="Hosts that a scorer may name, comma separated, like *.scorers.svc; default: all.",
    ),
    option(
        "--scorer-denied-hosts",
        multiple=True,
        metavar="GLOBS",
        help="Hosts that a scorer may not name, comma separated; wins over allowed hosts.",
    ),
    option(
        "--scorer-allowed-cidrs",
        multiple=True,
        metavar="CIDRS",
        help="Ranges of allowed addresses, comma separated; default: all except special"
        " ranges (link-local, metadata, multicast), unless a range here is inside one.",
    ),
    option(
        "--scorer-denied-cidrs",
        multiple=True,
        metavar="CIDRS",
        help="Ranges of denied addresses, comma separated; wins over allowed ranges.",
    ),
)
"""The flags; they are the keyword arguments of `allowed_destinations`."""


def allowed_destinations(**flags: tuple[str, ...]) -> "Destinations":
    """Return the rules that the flags set. Raises click.UsageError."""
    from dsf.api.untrusted_text import InvalidInput  # noqa: PLC0415 - loaded when a command is called
    from dsf.outbound.destinations import destinations  # noqa: PLC0415

    given = {name.removeprefix("scorer_"): _split(values) for name, values in flags.items()}
    rules = destinations(**given)
    if isinstance(rules, InvalidInput):
        raise click.UsageError(f"--scorer-allowed-cidrs, --scorer-denied-cidrs: {rules.message}")
    return rules


def _split(values: tuple[str, ...]) -> list[str]:
    parts = (part.strip() for value in values for part in value.split(","))
    return [part for part in parts if part]
