"""The command `dsf dispatcher` and its flags."""

from pathlib import Path
from typing import Any, Literal

import click

from dsf.api import names
from dsf.cli.options import (
    Duration,
    NumberRange,
    cluster_options,
    endpoint_option,
    flag_group,
    log_options,
    option,
)
from dsf.hub.cli import candidacy, leader_options

LEASE = "dynamic-scoring-dispatcher"


def _config_map(_: click.Context, __: click.Parameter, value: str) -> tuple[str, str]:
    namespace, slash, name = value.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise click.BadParameter(f"{value!r} is not NAMESPACE/NAME of a ConfigMap")
    return namespace, name


@click.command()
@cluster_options("the hub, which is MultiKueue's manager cluster")
@option(
    "--kueue-config",
    default="kueue-system/kueue-manager-config",
    metavar="NAMESPACE/NAME",
    callback=_config_map,
    help="ConfigMap with Kueue's configuration, which has to name this dispatcher.",
)
@option(
    "--clusters-at-once",
    default=1,
    type=click.IntRange(1, 20),
    help="Worker clusters that are nominated at first, and that are added each time.",
)
@option(
    "--next-after",
    default="5m",
    type=Duration(),
    help="Time after which the next clusters are nominated if none has admitted the Workload.",
)
@option(
    "--resync-seconds",
    default=30.0,
    type=NumberRange(min=1.0),
    help="Seconds between two decisions although nothing but scores has changed.",
)
@option("--dry-run", is_flag=True, help="Log what would be nominated, and write nothing.")
@leader_options(LEASE)
@endpoint_option
@log_options
def dispatcher(
    *,
    kubeconfig: Path | None,
    context: str | None,
    kueue_config: tuple[str, str],
    clusters_at_once: int,
    next_after: float,
    resync_seconds: float,
    dry_run: bool,
    identity: str,
    metrics_bind_address: str,
    log_level: str,
    log_format: Literal["text", "json"],
    **flags: Any,
) -> None:
    """Run the dispatcher of Kueue's MultiKueue.

    It nominates worker clusters for the Workloads that wait for one, in the order of the scores
    that their LocalQueue prefers. Kueue asks it if its configuration names
    dynamic-scoring.open-cluster-management.io/dispatcher as multiKueue.dispatcherName.
    """
    from prometheus_client import REGISTRY

    from dsf.hub.dispatch.dispatcher import Dispatcher, DispatcherOptions
    from dsf.hub.dispatch.queue_pass import NominationSettings
    from dsf.kube.client.connect import BadKubeconfig, connect
    from dsf.runtime.endpoints import CannotListen, serve_endpoints
    from dsf.runtime.leader_election import LeaderElector
    from dsf.runtime.logs import set_up
    from dsf.runtime.process import run

    set_up(log_level, log_format)
    settings = NominationSettings(clusters_at_once, next_after)
    options = DispatcherOptions(settings, kueue_config, resync_seconds, dry_run)
    lease = candidacy(names.HUB_NAMESPACE, identity, **flag_group(flags, "leader_elect"))

    async def serve() -> None:
        async with connect(kubeconfig, context) as kube:
            running = Dispatcher(kube, options)
            ready = running.unready_reason
            async with serve_endpoints(metrics_bind_address, registry=REGISTRY, ready=ready):
                await running.run(LeaderElector(kube, lease).run if lease else None)

    try:
        run(serve())
    except (BadKubeconfig, CannotListen) as error:
        raise click.ClickException(str(error)) from error
