"""Serving HTTP: the options that limit connections and streams, and the server of both programs."""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.options import NumberRange, option, option_names, options
from optimizer.cli.access_options import access_of, certificate_of, check_auth, serving_certificate

if TYPE_CHECKING:
    from socket import socket

    from starlette.types import ASGIApp

    from dsf.kube.client.kube_client import Client
    from dsf.runtime.watched_certificate import WatchedCertificate
    from optimizer.api.caller_limits import StreamLimits
    from optimizer.api.serving import ConnectionLimits

_log = logging.getLogger(__name__)

_SECONDS = NumberRange(min=0, max=86_400, min_open=True)

connection_options = options(
    option(
        "--max-connections",
        type=click.IntRange(min=1),
        default=512,
        help="Connections open at once; each needs a file descriptor.",
    ),
    option(
        "--max-streams",
        type=click.IntRange(min=1),
        default=256,
        help="Streams open at once: events of rollouts and MCP subscriptions. Never more than"
        " half of --max-connections.",
    ),
    option(
        "--max-streams-per-caller",
        type=click.IntRange(min=1),
        default=16,
        help="Streams of one user, or of one address with --auth none, that are open at once.",
    ),
    option(
        "--head-timeout",
        type=_SECONDS,
        default=10.0,
        help="Seconds from the opening of a connection to the end of the headers.",
    ),
    option(
        "--body-timeout",
        type=_SECONDS,
        default=60.0,
        help="Seconds from the headers of a request to the end of its body.",
    ),
    option(
        "--stalled-timeout",
        type=_SECONDS,
        default=60.0,
        help="Seconds that a client may read nothing of a response.",
    ),
)
"""Limits, whose defaults are those of `ConnectionLimits` and `StreamLimits`.

These are imported only when they are used.
"""

CONNECTION_OPTIONS = option_names(connection_options)


def connection_limits(rest: Mapping[str, Any]) -> "ConnectionLimits":
    """Return the limits that the options of `connection_options` name."""
    from optimizer.api.serving import ConnectionLimits

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


def app_settings(rest: Mapping[str, Any], kube: "Client") -> dict[str, Any]:
    """Return what both programs tell their app: who may call it, and how often."""
    return {
        "allowed_hosts": rest["allowed_host"],
        "access": access_of(rest, kube),
        "read_only": rest["read_only"],
        "requests_per_second": rest["requests_per_second"],
        "streams": stream_limits(rest),
    }


def mcp_settings(rest: Mapping[str, Any], kube: "Client") -> dict[str, Any]:
    """Return which MCP tools there are, and what they ask a user with before a write."""
    return {
        "when_client_cannot_ask": rest["when_client_cannot_ask"],
        "hub_name": rest["hub_name"] or kube.server,
        "toolsets": rest["toolsets"],
    }


def serve_hub(
    rest: Mapping[str, Any], create: "Callable[[Client], ASGIApp]", *, path: str = ""
) -> None:
    """Serve the app of a hub until a signal comes. Raises ClickException if it can't.

    `path`: that of the app's only resource, for the log.
    """
    from dsf.kube.client.kubeconfig import BadKubeconfig
    from dsf.runtime.endpoints import CannotListen
    from dsf.runtime.process import run
    from optimizer.api.serving import listen

    files = certificate_of(rest)
    try:
        with listen(rest["bind_address"], rest["port"]) as listener:
            check_auth(rest, listener)
            run(_serve(rest, listener, files, create, path))
    except (CannotListen, BadKubeconfig) as error:
        raise click.ClickException(str(error)) from error


async def _serve(
    rest: Mapping[str, Any],
    listener: "socket",
    files: "WatchedCertificate | None",
    create: "Callable[[Client], ASGIApp]",
    path: str,
) -> None:
    from dsf.kube.client.connect import connect
    from optimizer.api.serving import serve, url

    async with (
        connect(rest["kubeconfig"], rest["context"]) as kube,
        serving_certificate(rest, files, kube) as certificate,
    ):
        app = create(kube)
        _log.info("serving", extra={"url": f"{url(listener, tls=bool(certificate))}{path}"})
        await serve(app, listener, certificate, limits=connection_limits(rest))
