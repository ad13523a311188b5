"""Options that several commands share, with the same names and help everywhere; durations."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial, wraps
from math import isnan
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from dsf.api.name_syntax import dns_label
from dsf.api.names import OPTIMIZER_PORT
from dsf.api.times import read_duration


class Duration(click.ParamType[float]):
    """A click type: seconds, from text such as `15s`, `1m30s`, `500ms`, `7d`."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds; fails unless the text is a positive duration."""
        if isinstance(value, int | float):
            return float(value)
        text = str(value)
        seconds = read_duration(text)
        if not seconds:
            self.fail(
                f"{text!r} is not a duration: use a form such as 15s, 1m30s or 7d", param, ctx
            )
        return seconds


class _Option(click.Option):
    """An option whose help shows its default, unless that is empty."""

    def __init__(self, *names: Any, **settings: Any) -> None:
        shown = settings.get("default") not in (None, "", ())
        super().__init__(*names, **{"show_default": shown, **settings})


option = partial(click.option, cls=_Option)

Command = TypeVar("Command", bound=Callable[..., Any])

SHOWN = 80
"""Characters of an invalid value that a message quotes."""
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class StrictCommand(click.Command):
    """A command that refuses an option that is given twice, unless it is repeatable."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; fails if one of two values would be ignored."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        seen = set[str | None]()
        for one in given:
            if isinstance(one, click.Option) and not one.multiple and one.name in seen:
                raise click.UsageError(f"{one.opts[0]} is given twice", ctx)
            seen.add(one.name)
        return super().parse_args(ctx, args)


class Namespace(click.ParamType[str]):
    """A click type: the name of a Kubernetes namespace, validated before the command starts."""

    name = "namespace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; fails if it is not a valid namespace name."""
        text = str(value)
        if problems := dns_label(text):
            self.fail(
                f"{text[:SHOWN]!r} is not a valid name of a namespace: {problems[0]}", param, ctx
            )
        return text


def server_url(_: click.Context, __: click.Parameter, value: str) -> str:
    """Return the URL of a server, or an empty text; the callback of an option."""
    usable = re.match(r"(https?://[^/\s?#]+(/[^\s?#]*)?)?$", value)
    with suppress(ValueError):  # of a port above 65535, or half an IPv6 address
        if usable and urlsplit(value).port != 0:
            return value
    raise click.BadParameter(f"{value!r} is not an http or https URL of a server")


def async_to_sync(work: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Return the function of a command that runs a coroutine function to its end."""

    @wraps(work)
    def done(*args: Any, **flags: Any) -> None:
        asyncio.run(work(*args, **flags))

    return done


def options(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command; its help lists them in this order."""

    def added(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return added


def option_names(decorator: Callable[[Any], Any]) -> tuple[str, ...]:
    """Return the names of the parameters that options add, in the order of the help."""
    return tuple(item.name for item in click.command()(decorator(lambda: None)).params)


identity_option = option(
    "--identity",
    default="",
    help="Name of this process in the Leases that it holds. A process that is started again with"
    " the same name takes them back at once; no two may run with one name. Default: the host's name"
    " and a random number.",
)


def cluster_options(whose: str) -> Callable[[Command], Command]:
    """Return `--kubeconfig` and `--context`; `whose` is the hub or the managed cluster."""
    return options(
        option(
            "--kubeconfig",
            type=FILE,
            help=f"Kubeconfig of {whose}; default: $KUBECONFIG, ~/.kube/config, the pod's account.",
        ),
        option("--context", help="Context of the kubeconfig."),
    )


endpoint_option = option(
    "--metrics-bind-address",
    "--bind-address",
    "metrics_bind_address",
    default="127.0.0.1:8080",
    help="Address of /metrics, /healthz and /readyz.",
)
"""`--metrics-bind-address`, also spelled `--bind-address`."""

http_options = options(
    option("--bind-address", default="127.0.0.1", help="Address to serve HTTP on."),
    option(
        "--port",
        type=click.IntRange(0, 65535),
        default=OPTIMIZER_PORT,
        help="Port; 0 takes a free one.",
    ),
    option(
        "--allowed-host",
        multiple=True,
        help="Accepted Host name besides the address itself; repeatable.",
    ),
)
"""`--bind-address`, `--port` and `--allowed-host` of an HTTP API."""

log_options = options(
    option(
        "--log-level",
        default="info",
        type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    ),
    option("--log-format", default="text", type=click.Choice(["text", "json"])),
)
"""`--log-level` and `--log-format`."""


class NumberRange(click.FloatRange):
    """A range of numbers that excludes NaN, which click accepts in every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; fails for NaN."""
        number: float = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number.", param, ctx) if isnan(number) else number


def flag_group(flags: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the flags whose names start with a prefix, as keyword arguments."""
    return {name: value for name, value in flags.items() if name.startswith(prefix)}
