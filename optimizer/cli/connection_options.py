"""Options that limit HTTP connections: how many, and how long a client may take."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dsf.cli.options import NumberRange

if TYPE_CHECKING:
    from optimizer.api.connection_limits import ConnectionLimits

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

CONNECTION_OPTIONS = ("max_connections", "head_timeout", "body_timeout", "stalled_timeout")
"""The parameters that `connection_options` adds."""

_SECONDS = NumberRange(min=0, max=86_400, min_open=True)


def connection_options(command: Decorated) -> Decorated:
    """Add --max-connections, --head-timeout, --body-timeout and --stalled-timeout.

    Their defaults are those of `ConnectionLimits`, which is imported only when they are used.
    """
    for option in (
        click.option(
            "--stalled-timeout",
            type=_SECONDS,
            default=60.0,
            show_default=True,
            help="Seconds that a client may read nothing of a response.",
        ),
        click.option(
            "--body-timeout",
            type=_SECONDS,
            default=60.0,
            show_default=True,
            help="Seconds from the headers of a request to the end of its body.",
        ),
        click.option(
            "--head-timeout",
            type=_SECONDS,
            default=10.0,
            show_default=True,
            help="Seconds from the opening of a connection to the end of the headers.",
        ),
        click.option(
            "--max-connections",
            type=click.IntRange(min=1),
            default=512,
            show_default=True,
            help="Connections open at once; each needs a file descriptor.",
        ),
    ):
        command = option(command)
    return command


def connection_limits(rest: Mapping[str, Any]) -> "ConnectionLimits":
    """Return the limits that the options of `connection_options` name."""
    from optimizer.api.connection_limits import ConnectionLimits

    return ConnectionLimits(
        connections=rest["max_connections"],
        head_seconds=rest["head_timeout"],
        body_seconds=rest["body_timeout"],
        stalled_seconds=rest["stalled_timeout"],
    )
