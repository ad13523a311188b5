"""The flags that limit how scoring APIs are probed."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsf.cli.options import FILE, NumberRange, options
from dsf.outbound.destination_flags import allowed_destinations, destination_options

if TYPE_CHECKING:
    from dsf.hub.observe.prober import Prober

scorer_options = options(
    click.option(
        "--scorer-certificate-authority",
        type=FILE,
        help="PEM file of certificate authorities for scoring APIs, added to the public ones.",
    ),
    click.option(
        "--scorer-timeout-seconds",
        default=5.0,
        show_default=True,
        type=NumberRange(0.1, 60.0),
        help="Seconds in which a scoring API has to answer completely.",
    ),
    destination_options,
)
"""The flags; they are the keyword arguments of `prober`."""


def prober(
    *,
    scorer_certificate_authority: Path | None,
    scorer_timeout_seconds: float,
    **destination_flags: tuple[str, ...],
) -> "Prober":
    """Return a prober with the limits that the flags set. Raises click.UsageError."""
    from dsf.hub.observe.certificate_authorities import TrustedAuthorities, UnusableAuthorityFile  # noqa: PLC0415
    from dsf.hub.observe.prober import ProbeLimits, Prober  # noqa: PLC0415

    rules = allowed_destinations(**destination_flags)
    try:
        trust = TrustedAuthorities(scorer_certificate_authority)
    except UnusableAuthorityFile as error:
        raise click.UsageError(f"--scorer-certificate-authority: {error}") from error
    return Prober(ProbeLimits(seconds=scorer_timeout_seconds), destinations=rules, trust=trust)
