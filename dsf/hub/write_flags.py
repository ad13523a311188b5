"""The flags that bound how many writes to the hub are in flight."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dsf.cli.options import NumberRange

if TYPE_CHECKING:
    from dsf.kube.write_concurrency.concurrency_limit import ConcurrencyBounds

Command = TypeVar("Command", bound=Callable[..., Any])

_FLAGS = (
    click.option(
        "--writes-in-flight-minimum",
        default=1,
        show_default=True,
        type=click.IntRange(1, 1000),
        help="Writes to the hub that may always be in flight at once.",
    ),
    click.option(
        "--writes-in-flight-maximum",
        default=32,
        show_default=True,
        type=click.IntRange(1, 1000),
        help="Writes in flight at once, however fast the API server answers.",
    ),
    click.option(
        "--write-latency-factor",
        default=2.0,
        show_default=True,
        type=NumberRange(1.0, 100.0),
        help="More writes are in flight until their latency is this many times that of the fewest.",
    ),
)


def write_options(command: Command) -> Command:
    """Add the flags to a command; they are the keyword arguments of `concurrency_bounds`."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command


def concurrency_bounds(
    writes_in_flight_minimum: int, writes_in_flight_maximum: int, write_latency_factor: float
) -> "ConcurrencyBounds":
    """Return the bounds of the flags. Raises a usage error if the minimum is the larger one."""
    from dsf.kube.write_concurrency.concurrency_limit import (  # noqa: PLC0415
        ConcurrencyBounds,
    )

    if writes_in_flight_minimum > writes_in_flight_maximum:
        raise click.UsageError(
            "--writes-in-flight-minimum must not exceed --writes-in-flight-maximum"
        )
    return ConcurrencyBounds(
        writes_in_flight_minimum, writes_in_flight_maximum, write_latency_factor
    )
