"""`dsf agent`."""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.options import (
    FILE,
    Duration,
    Namespace,
    endpoint_option,
    flag_group,
    log_options,
    option,
    server_url,
)
from dsf.outbound.destination_flags import allowed_destinations, destination_options

if TYPE_CHECKING:
    from dsf.agent.push_receiver import PushSettings
    from dsf.agent.round import Round
    from dsf.agent.run import AgentSettings
    from dsf.api.untrusted_text import InvalidInput
    from dsf.kube.port import Kube

EXIT_FAILED = 1


def label_keys(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    """Return the keys of labels in `a,b`; a text that is no key is bad usage."""
    from dsf.api.name_syntax import qualified_name

    keys = tuple(key for key in (part.strip() for part in text.split(",")) if key)
    for key in keys:
        if problems := qualified_name(key):
            raise click.BadParameter(f"{key!r} is no label: {problems[0]}")
    return keys


@click.command()
@option(
    "--cluster-name",
    required=True,
    type=Namespace(),
    help="Name of the managed cluster on the hub, and of its namespace there.",
)
@option("--hub-kubeconfig", type=FILE, help="Kubeconfig of the hub; not for --once.")
@option("--kubeconfig", type=FILE, help="Kubeconfig of the managed cluster.")
@option(
    "--namespace",
    default="dynamic-scoring",
    type=Namespace(),
    help="The agent's own namespace, with the ConfigMap of summaries and the Secrets.",
)
@endpoint_option
@option(
    "--prometheus-url",
    default="",
    callback=server_url,
    help="URL of this cluster's Prometheus; replaces the host that scorers name.",
)
@option(
    "--service-account-token-hosts",
    default="*.svc,*.svc.cluster.local",
    help="Hosts that may receive the agent's own token, over https; empty for none.",
)
@option("--otlp/--no-otlp", help="Receive OTLP metrics over HTTP, for source type OpenTelemetry.")
@option(
    "--otlp-bind-address",
    default="127.0.0.1:4318",
    help="Address to receive OTLP on; senders are not authenticated.",
)
@option(
    "--summaries-file", type=FILE, help="File of scorer summaries (JSON); replaces the ConfigMap."
)
@option(
    "--max-series",
    type=click.IntRange(1, 100_000),
    default=10_000,
    help="Maximum number of label sets of one score, in its object and in the metrics.",
)
@option(
    "--watch-secrets",
    default="",
    help="Secrets (a,b) that the agent lists and watches; others are read at each call.",
)
@option(
    "--answers-in-flight",
    type=click.IntRange(1, 1 << 20),
    default=80,
    help="MiB of answers that all rounds hold at the same time; at least what one may need.",
)
@option(
    "--push-bind-address",
    default="",
    help="Address on which scorers that have a token may ask for their next round at once: POST"
    " /score/SCORER. Default: none.",
)
@option(
    "--push-min-interval",
    type=Duration(),
    help="Least time between two pushes of a scorer. Default: 10s.",
)
@option(
    "--push-tls-cert-file",
    type=FILE,
    help="Receive pushes over https with the certificate in this file, then intermediate ones. The"
    " file is read again when it changes. Default: plain HTTP.",
)
@option(
    "--push-tls-private-key-file",
    type=FILE,
    help="Key of the certificate; read again when it changes.",
)
@option(
    "--inventory/--no-inventory",
    help="Report to the hub what the cluster's nodes have and what its Pods request.",
)
@option(
    "--inventory-node-labels",
    default="",
    callback=label_keys,
    help="Further labels of nodes (a,b) that the inventory has, by which Pods choose nodes.",
)
@destination_options
@option("--once", is_flag=True, help="Run one round, print its scores and publish nothing.")
@option("--explain", is_flag=True, help="Like --once, but print where each value came from.")
@log_options
def agent(
    *, hub_kubeconfig: Path | None, kubeconfig: Path | None, once: bool, explain: bool, **rest: Any
) -> None:
    """Run the scoring agent of one managed cluster.

    The agent reads the scorers from the ConfigMap dynamic-scoring-config. In each round it fetches
    a scorer's time series from their source, sends them to the scoring API, and publishes the
    scores as an AddOnPlacementScore on the hub.
    """
    from dsf.agent.run import AgentSettings
    from dsf.agent.wire.secret_data import parse_hosts
    from dsf.runtime.logs import set_up

    set_up(rest["log_level"], rest["log_format"])
    if rest["otlp"] and not (once or explain):
        _require_otlp()
    settings = AgentSettings(
        cluster=rest["cluster_name"],
        namespace=rest["namespace"],
        metrics_bind_address=rest["metrics_bind_address"],
        summaries_file=rest["summaries_file"],
        prometheus_url=rest["prometheus_url"],
        service_account_token_hosts=parse_hosts(rest["service_account_token_hosts"]),
        otlp_bind_address=rest["otlp_bind_address"] if rest["otlp"] else "",
        max_series=rest["max_series"],
        answers_in_flight=rest["answers_in_flight"] << 20,
        watched_secrets=parse_hosts(rest["watch_secrets"]),
        destinations=allowed_destinations(**flag_group(rest, "scorer_")),
        push=_push(**flag_group(rest, "push_")),
        inventory=rest["inventory"],
        inventory_node_labels=rest["inventory_node_labels"],
    )
    if settings.inventory_node_labels and not settings.inventory:
        raise click.UsageError("--inventory-node-labels needs --inventory")
    if once or explain:
        rounds, inventory = asyncio.run(_once(settings, kubeconfig, explaining=explain))
        _print(settings.cluster, rounds, inventory, explaining=explain)
    elif hub_kubeconfig is None:
        raise click.UsageError("name the hub with --hub-kubeconfig, or use --once without a hub")
    else:
        _run(settings, hub_kubeconfig, kubeconfig)


def _require_otlp() -> None:
    missing = [name for name in ("google.protobuf", "opentelemetry.proto", "re2") if _lacks(name)]
    if missing:
        hint = "install dynamic-scoring-framework[otlp]"
        raise click.UsageError(f"--otlp needs {', '.join(missing)}: {hint}")


def _push(
    *,
    push_bind_address: str,
    push_min_interval: float | None,
    push_tls_cert_file: Path | None,
    push_tls_private_key_file: Path | None,
) -> "PushSettings | None":
    from dsf.agent.push_receiver import MIN_INTERVAL, PushSettings
    from dsf.runtime.watched_certificate import BadCertificate, WatchedCertificate

    certificate = None
    if not push_bind_address and (
        push_min_interval or push_tls_cert_file or push_tls_private_key_file
    ):
        raise click.UsageError("options of pushes need --push-bind-address")
    if bool(push_tls_cert_file) != bool(push_tls_private_key_file):
        needed = "--push-tls-cert-file and --push-tls-private-key-file need each other"
        raise click.UsageError(needed)
    if push_tls_cert_file and push_tls_private_key_file:
        try:
            certificate = WatchedCertificate(push_tls_cert_file, push_tls_private_key_file)
        except BadCertificate as error:
            raise click.ClickException(str(error)) from error
    settings = PushSettings(push_bind_address, push_min_interval or MIN_INTERVAL, certificate)
    return settings if push_bind_address else None


def _lacks(module: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(module) is None
    except ModuleNotFoundError:
        return True


def _run(settings: "AgentSettings", hub_kubeconfig: Path, kubeconfig: Path | None) -> None:
    from dsf.runtime.endpoints import CannotListen
    from dsf.runtime.process import run

    try:
        run(_serve(settings, hub_kubeconfig, kubeconfig))
    except CannotListen as error:
        raise click.ClickException(str(error)) from error


async def _serve(settings: "AgentSettings", hub_kubeconfig: Path, kubeconfig: Path | None) -> None:
    from dsf.agent.run import run
    from dsf.kube.client.connect import connect

    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(connect(hub_kubeconfig))
        managed = await _managed(stack, settings, kubeconfig)
        await run(settings, hub=hub, managed=managed)


async def _once(
    settings: "AgentSettings", kubeconfig: Path | None, *, explaining: bool
) -> "tuple[tuple[Round, ...] | InvalidInput, str | InvalidInput]":
    from dsf.agent.dry_run import inventory_once, perform_once

    async with AsyncExitStack() as stack:
        managed = await _managed(stack, settings, kubeconfig)
        rounds = await perform_once(settings, managed, explaining=explaining)
        return rounds, await inventory_once(settings, managed)


async def _managed(
    stack: AsyncExitStack, settings: "AgentSettings", kubeconfig: Path | None
) -> "Kube | None":
    """Connect to the managed cluster; with a summaries file only if a kubeconfig is given."""
    in_cluster = "KUBERNETES_SERVICE_HOST" in os.environ
    if settings.summaries_file is not None and kubeconfig is None and not in_cluster:
        if settings.inventory:
            raise click.UsageError("--inventory needs the managed cluster's --kubeconfig")
        return None
    from dsf.agent.fetch.kubernetes_source import PAGE_BYTES
    from dsf.kube.client.connect import connect

    return await stack.enter_async_context(connect(kubeconfig, answer_bytes=PAGE_BYTES))


def _print(
    cluster: str,
    rounds: "tuple[Round, ...] | InvalidInput",
    inventory: "str | InvalidInput",
    *,
    explaining: bool = False,
) -> None:
    from dsf.agent.dry_run import explained, render
    from dsf.api.untrusted_text import InvalidInput, escaped
    from dsf.kube.clock import utc_now

    if isinstance(rounds, InvalidInput):
        raise click.ClickException(f"{rounds.reason}: {rounds.message}")
    if isinstance(inventory, InvalidInput):
        raise click.ClickException(f"inventory: {inventory.reason}: {inventory.message}")
    click.echo(explained(rounds) if explaining else render(cluster, rounds, utc_now()), nl=False)
    click.echo(inventory, nl=False)
    failures = [(done.summary.name, done.failure) for done in rounds if done.failure]
    for name, failure in failures:
        message = f"{name}: {failure.stage}: {failure.reason}: {failure.message}"
        click.echo(f"Error: {escaped(message)}", err=True)
    if failures:
        raise click.exceptions.Exit(EXIT_FAILED)
