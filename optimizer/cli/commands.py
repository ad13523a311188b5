"""`dsf optimizer`: the service."""

import importlib
import logging
from typing import TYPE_CHECKING, Any

import click

from dsf.api.untrusted_text import listed
from dsf.cli.options import (
    cluster_options,
    http_options,
    identity_option,
    log_options,
    option,
    options,
    server_url,
)
from optimizer.cli.access_options import access_options
from optimizer.cli.http_server import app_settings, connection_options, mcp_settings, serve_hub
from optimizer.cli.model_options import history_option, model_options, settings_of

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from dsf.kube.client.kube_client import Client

SERVICE_APP = "mcp_server.app:create_service_app"

_log = logging.getLogger(__name__)

TOOLSETS = ("fleet", "plans", "rollouts", "dynamic")
"""Toolsets of the MCP server, and the one that lists no tool that reads."""


def _toolsets(_: click.Context, __: click.Parameter, said: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(filter(None, map(str.strip, said.split(",")))))
    unknown = [name for name in names if name not in TOOLSETS]
    if unknown:
        raise click.BadParameter(f"no toolset {unknown[0]!r}; there are {listed(TOOLSETS)}")
    return names


approval_options = options(
    option(
        "--when-client-cannot-ask",
        type=click.Choice(["deny", "digest"]),
        default="digest",
        help="Whether MCP tools write for a client that can't ask its user to confirm. deny: never."
        " digest: it may apply a plan, or reset a namespace, by naming the digest that was shown.",
    ),
    option(
        "--hub-name",
        default="",
        help="What questions to users of MCP tools call the hub. Default: the URL of its API"
        " server.",
    ),
    option(
        "--toolsets",
        default="",
        callback=_toolsets,
        help=f"MCP tools that there are, separated by commas: {listed(TOOLSETS)}. Default: all"
        " of them, and not dynamic: with it tools that read are found by a search, not listed.",
    ),
)


@click.command()
@cluster_options("the hub")
@http_options
@connection_options
@access_options
@model_options
@history_option
@option(
    "--read-only/--allow-writes",
    default=True,
    help="Whether callers may write, within their own rights: by the HTTP API, and by the MCP tools"
    " that write, which exist only then.",
)
@approval_options
@option(
    "--prometheus-url",
    default="",
    callback=server_url,
    help="Prometheus that scrapes the agents, like http://prometheus.monitoring:9090: its history"
    " of scores is shown at /scores/history and on the page. Default: no history.",
)
@option(
    "--rollout-namespace",
    multiple=True,
    help="Namespace whose Stepwise rollouts this server makes; repeatable. Default: all.",
)
@option(
    "--watched-score-entries",
    type=click.IntRange(0),
    default=4_000_000,
    help="Entries of scores that are kept in memory, as a watch tells them. Scores of more entries"
    " are read from the API server for each answer. 0: scores are not kept.",
)
@identity_option
@log_options
def optimizer(*, log_level: str, log_format: Any, **rest: Any) -> None:
    """Serve the optimizer: HTTP API, its documentation at /docs, MCP at /mcp.

    Callers send a bearer token of the hub and need rights there; see --auth.
    """
    from dsf.runtime.logs import set_up

    set_up(log_level, log_format)
    serve_hub(rest, lambda kube: _app(kube, rest))


def _app(kube: "Client", rest: dict[str, Any]) -> "Starlette":
    """Return the app with MCP where it is installed, else the HTTP API alone."""
    from prometheus_client import REGISTRY

    from dsf.kube.clock import utc_now
    from optimizer.api.app import create_app
    from optimizer.service.optimizer import Optimizer
    from optimizer.solve.supervised_process import start_fork_server

    start_fork_server()
    service = Optimizer(
        kube,
        settings_of(rest),
        now=utc_now,
        registry=REGISTRY,
        identity=rest["identity"],
        health=kube.on_own_connections("health"),
        watching=kube.on_own_connections("watches"),
    )
    settings = app_settings(rest, kube)
    module, _, attribute = SERVICE_APP.partition(":")
    try:
        create = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        _log.warning(
            "/mcp is not served: install dynamic-scoring-framework[mcp]",
            extra={"missing": error.name},
        )
        return create_app(service, **settings)
    app: Starlette = create(service, **settings, **mcp_settings(rest, kube))
    return app
