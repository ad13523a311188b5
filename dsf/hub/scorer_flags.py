"""The flags that limit how scoring APIs are probed."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dsf.cli.options import NumberRange

if TYPE_CHECKING:
    from dsf.hub.observe.prober import Prober

Command = TypeVar("Command", bound=Callable[..., Any])

_FLAGS = (
    click.option(
        "--scorer-allowed-hosts",
        multiple=True,
        metavar="GLOBS",
        help="Hosts that a configURL may name, comma separated, like *.scorers.svc; default: all.",
    ),
    click.option(
        "--scorer-denied-hosts",
        multiple=True,
        metavar="GLOBS",
        help="Hosts that a configURL may not name, comma separated; wins over allowed hosts.",
    ),
    click.option(
        "--scorer-allowed-cidrs",
        multiple=True,
        metavar="CIDRS",
        help="Ranges that must have their addresses, comma separated; default: all except special"
        " ranges (link-local, metadata, multicast), which a range inside them allows.",
    ),
    click.option(
        "--scorer-denied-cidrs",
        multiple=True,
        metavar="CIDRS",
        help="Ranges that must not have their addresses, comma separated; win over allowed ranges.",
    ),
    click.option(
        "--scorer-certificate-authority",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="PEM file of certificate authorities for scoring APIs, added to the public ones.",
    ),
    click.option(
        "--scorer-timeout-seconds",
        default=5.0,
        show_default=True,
        type=NumberRange(0.1, 60.0),
        help="Seconds in which a scoring API has to answer completely.",
    ),
)


def scorer_options(command: Command) -> Command:
    """Add the flags to a command; they are the keyword arguments of `prober`."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command


def prober(
    *,
    scorer_allowed_hosts: tuple[str, ...],
    scorer_denied_hosts: tuple[str, ...],
    scorer_allowed_cidrs: tuple[str, ...],
    scorer_denied_cidrs: tuple[str, ...],
    scorer_certificate_authority: Path | None,
    scorer_timeout_seconds: float,
) -> "Prober":
    """Return a prober with the limits that the flags set. Raises click.UsageError."""
    from dsf.api.invalid_input import InvalidInput  # noqa: PLC0415 - loaded when a command is called
    from dsf.hub.observe.certificate_authorities import TrustedAuthorities, UnusableAuthorityFile  # noqa: PLC0415
    from dsf.hub.observe.destinations import destinations  # noqa: PLC0415
    from dsf.hub.observe.prober import ProbeLimits, Prober  # noqa: PLC0415

    rules = destinations(
        allowed_hosts=_split(scorer_allowed_hosts),
        denied_hosts=_split(scorer_denied_hosts),
        allowed_cidrs=_split(scorer_allowed_cidrs),
        denied_cidrs=_split(scorer_denied_cidrs),
    )
    if isinstance(rules, InvalidInput):
        raise click.UsageError(f"--scorer-allowed-cidrs, --scorer-denied-cidrs: {rules.message}")
    try:
        trust = TrustedAuthorities(scorer_certificate_authority)
    except UnusableAuthorityFile as error:
        raise click.UsageError(f"--scorer-certificate-authority: {error}") from error
    return Prober(ProbeLimits(seconds=scorer_timeout_seconds), destinations=rules, trust=trust)


def _split(values: tuple[str, ...]) -> list[str]:
    parts = (part.strip() for value in values for part in value.split(","))
    return [part for part in parts if part]
