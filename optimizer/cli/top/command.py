"""`dsf top`: watch a fleet in the terminal."""

import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from dsf.api.host_header import LOOPBACK, host_name
from dsf.cli.options import FILE, option, server_url
from dsf.cli.root import missing_module
from dsf.scorer_kit.cli.api_options import token_in_file
from optimizer.cli.hub_request import workloads_option


@click.command()
@option("--url", default="http://127.0.0.1:8338", callback=server_url, help="URL of the optimizer.")
@option(
    "--token-file",
    type=FILE,
    callback=token_in_file,
    help="File with your bearer token of the hub; read once, sent only to --url, never shown.",
)
@option(
    "--ca-file",
    type=FILE,
    help="PEM certificates to trust for https, such as that of a self-signed optimizer.",
)
@workloads_option
def top(*, url: str, token_file: str, ca_file: Path | None, namespace: str) -> None:
    """Watch a fleet live: what is wrong, how GPUs are used, what moves, what a plan would gain.

    Keys are as in k9s: `:` goes to a view, `/` filters, Enter shows details, `?` helps, q quits.
    It reads GET /fleet of an optimizer and its events, with your own rights, and writes nothing.
    """
    split = urlsplit(url)
    if token_file and split.scheme == "http" and host_name(split.netloc) not in LOOPBACK:
        raise click.UsageError("--token-file: http would show the token on its way: use https")
    try:
        tls = ssl.create_default_context(cafile=ca_file) if ca_file else None
    except (OSError, ssl.SSLError) as error:
        raise click.UsageError(f"--ca-file: {ca_file}: no PEM certificates: {error}") from error
    try:
        from optimizer.cli.top.terminal import Top
    except ModuleNotFoundError as error:
        raise click.ClickException(missing_module("top", "top", error)) from error
    from optimizer.cli.top.fleet_reader import FleetFollower

    if not sys.stdout.isatty():
        raise click.ClickException("dsf top needs a terminal; elsewhere: dsf status")
    Top(FleetFollower(url, namespace, token_file, tls)).run()
