"""Options that limit HTTP connections and streams: how many, and how long a client may take."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dsf.cli.options import NumberRange

if TYPE_CHECKING:
    from optimizer.api.caller_limits import StreamLimits
    from optimizer.api.connection_limits import ConnectionLimits

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

CONNECTION_OPTIONS = (
    "max_connections",
    "max_streams",
    "max_streams_per_caller",
    "head_timeout",
    "body_timeout",
    "stalled_timeout",
)
"""The parameters that `connection_options` adds."""

_SECONDS = NumberRange(min=0, max=86_400, min_open=True)


def connection_options(command: Decorated) -> Decorated:
    """Add the options of `CONNECTION_OPTIONS`.

    Their defaults are those of `ConnectionLimits` and `StreamLimits`, which are imported only when
    they are used.
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
            "--max-streams-per-caller",
            type=click.IntRange(min=1),
            default=16,
            show_default=True,
            help="Streams of one user, or of one address with --auth none, that are open at once.",
        ),
        click.option(
            "--max-streams",
            type=click.IntRange(min=1),
            default=256,
            show_default=True,
            help="Streams open at once: events of rollouts and MCP subscriptions. Never more than"
            " half of --max-connections.",
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


def stream_limits(rest: Mapping[str, Any]) -> "StreamLimits":
    """Return the limits of streams; they leave half of the connections to other requests."""
    from optimizer.api.caller_limits import StreamLimits

    most = max(1, rest["max_connections"] // 2)
    return StreamLimits(
        total=min(rest["max_streams"], most), of_caller=rest["max_streams_per_caller"]
    )
