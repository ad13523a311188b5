"""The options that several commands share, so that they are named and explained alike."""

from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any, TypeVar

import click

from dsf.kube.name_syntax import dns_label

Command = TypeVar("Command", bound=Callable[..., Any])

SHOWN = 80
KUBECONFIG = click.Path(exists=True, dir_okay=False, path_type=Path)


class Namespace(click.ParamType[str]):
    """The name of a Kubernetes namespace: what is none is refused before anything starts."""

    name = "namespace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; fails where no namespace can have it."""
        text = str(value)
        if problems := dns_label(text):
            self.fail(f"{text[:SHOWN]!r} is no name of a namespace: {problems[0]}", param, ctx)
        return text


def cluster_options(whose: str) -> Callable[[Command], Command]:
    """Add `--kubeconfig` and `--context`; `whose` is the hub or the managed cluster."""

    def added(command: Command) -> Command:
        command = click.option("--context", help="Context of the kubeconfig.")(command)
        return click.option(
            "--kubeconfig",
            type=KUBECONFIG,
            help=f"Kubeconfig of {whose}; else KUBECONFIG, ~/.kube/config, or the pod's account.",
        )(command)

    return added


def endpoint_option(command: Command) -> Command:
    """Add `--metrics-bind-address`, also spelled `--bind-address`."""
    return click.option(
        "--metrics-bind-address",
        "--bind-address",
        "metrics_bind_address",
        default="127.0.0.1:8080",
        show_default=True,
        help="Where /metrics, /healthz and /readyz are served.",
    )(command)


def http_options(command: Command) -> Command:
    """Add `--bind-address`, `--port` and `--allowed-host` of an HTTP API."""
    command = click.option(
        "--allowed-host",
        multiple=True,
        help="Host name under which it may be called besides its address; repeatable.",
    )(command)
    command = click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8338,
        show_default=True,
        help="0: a free one.",
    )(command)
    return click.option(
        "--bind-address", default="127.0.0.1", show_default=True, help="Address to serve HTTP on."
    )(command)


def log_options(command: Command) -> Command:
    """Add `--log-level` and `--log-format`."""
    command = click.option(
        "--log-format", default="text", show_default=True, type=click.Choice(["text", "json"])
    )(command)
    return click.option(
        "--log-level",
        default="info",
        show_default=True,
        type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    )(command)


class NumberRange(click.FloatRange):
    """A range of numbers without NaN, which click takes to lie in every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number; refuse what is none."""
        number: float = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number.", param, ctx) if isnan(number) else number
