"""The command `dsf mcp`, and `dsf mcp install` below it."""

import asyncio
import signal
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from dsf.cli.options import cluster_options, http_options, log_options, option
from mcp_server.install.cli import install
from optimizer.cli.access_options import ACCESS_OPTIONS, access_options
from optimizer.cli.commands import approval_options
from optimizer.cli.http_server import (
    CONNECTION_OPTIONS,
    app_settings,
    connection_options,
    mcp_settings,
    serve_hub,
)
from optimizer.cli.model_options import history_option, model_options, settings_of

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from dsf.kube.port import Kube
    from optimizer.service.optimizer import Optimizer

_HTTP_OPTIONS = ("bind_address", "port", "allowed_host", *CONNECTION_OPTIONS, *ACCESS_OPTIONS)


@click.group(invoke_without_command=True)
@option(
    "--transport",
    type=click.Choice(["stdio", "http"]),
    default="stdio",
    help="stdio: an assistant starts this program. http: many assistants connect to it.",
)
@cluster_options("the hub")
@http_options
@connection_options
@access_options
@option(
    "--read-only/--allow-writes",
    default=True,
    help="Whether the tools that write (apply_plan, reset_placements) exist.",
)
@approval_options
@model_options
@history_option
@log_options
@click.pass_context
def mcp(
    invocation: click.Context,
    /,
    *,
    transport: Literal["stdio", "http"],
    log_level: str,
    log_format: Any,
    **rest: Any,
) -> None:
    """Serve the MCP tools alone: on standard input and output, or at http://localhost:8338/mcp.

    On standard input and output the caller acts with the rights of the kubeconfig. Over http,
    callers send a bearer token of the hub and need rights there; see --auth. Logs go to standard
    error.
    """
    if invocation.invoked_subcommand:
        _refuse_options_before(invocation, invocation.invoked_subcommand)
        return
    _refuse_http_options(invocation, transport)
    try:
        _run(transport, log_level, log_format, rest)
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"`dsf mcp` needs the module {error.name!r}; install it with"
            " pip install 'dynamic-scoring-framework[mcp]'"
        ) from error


mcp.add_command(install)


def _given(invocation: click.Context) -> dict[str, str]:
    """Return the options on the command line: how each is written, by its name."""
    return {
        one.name: one.opts[0]
        for one in invocation.command.params
        if one.name and invocation.get_parameter_source(one.name) is ParameterSource.COMMANDLINE
    }


def _refuse_options_before(invocation: click.Context, subcommand: str) -> None:
    for written in _given(invocation).values():
        raise click.UsageError(
            f"{written} before {subcommand} has no effect; see dsf mcp {subcommand} --help"
        )


def _refuse_http_options(invocation: click.Context, transport: str) -> None:
    given = [one for name, one in _given(invocation).items() if name in _HTTP_OPTIONS]
    if given and transport != "http":
        raise click.UsageError(f"{given[0]} needs --transport http")


def _run(transport: str, log_level: str, log_format: Any, rest: "Mapping[str, Any]") -> None:
    from dsf.runtime.logs import set_up

    set_up(log_level, log_format)
    if transport == "stdio":
        _run_as_filter(_serve_stdio(rest))
        return
    from mcp_server.app import PATH, create_service_app

    serve_hub(
        rest,
        lambda kube: create_service_app(
            _optimizer(kube, rest),
            alone=True,
            **app_settings(rest, kube),
            **mcp_settings(rest, kube),
        ),
        path=PATH,
    )


def _run_as_filter(main: "Coroutine[Any, Any, None]") -> None:
    """Run until standard input ends; SIGINT ends the process at once.

    A graceful stop would have to wait for the thread that reads standard input.
    """
    from dsf.kube.client.kubeconfig import BadKubeconfig

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(main)
    except BadKubeconfig as error:
        raise click.ClickException(str(error)) from error


async def _serve_stdio(rest: "Mapping[str, Any]") -> None:
    from dsf.kube.client.connect import connect
    from dsf.runtime.process import collect_what_is_new
    from mcp_server.server import create_mcp

    collect_what_is_new()
    async with connect(rest["kubeconfig"], rest["context"]) as kube:
        mcp = create_mcp(
            cache(lambda: _optimizer(kube, rest)),
            read_only=rest["read_only"],
            **mcp_settings(rest, kube),
        )
        await mcp.run_stdio_async(show_banner=False)


def _optimizer(kube: "Kube", rest: "Mapping[str, Any]") -> "Optimizer":
    """Return the optimizer; its imports take a second, which `initialize` does not wait for."""
    from dsf.kube.clock import utc_now
    from optimizer.service.optimizer import Optimizer

    return Optimizer(kube, settings_of(rest), now=utc_now)
