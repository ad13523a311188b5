"""The command `dsf controller`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dsf.api import names
from dsf.cli.options import (
    Namespace,
    NumberRange,
    cluster_options,
    endpoint_option,
    flag_group,
    log_options,
)
from dsf.hub.leader_flags import candidacy, leader_options
from dsf.hub.scorer_flags import prober, scorer_options
from dsf.hub.write_flags import concurrency_bounds, write_options

if TYPE_CHECKING:
    from dsf.hub.observe.prober import Prober
    from dsf.hub.run import HubOptions
    from dsf.runtime.leader_election.lease import LeaderElectionConfig


@click.command()
@cluster_options("the hub")
@click.option(
    "--namespace",
    default=names.HUB_NAMESPACE,
    show_default=True,
    type=Namespace(),
    help="Namespace of DynamicScorers and the DynamicScoringConfig.",
)
@click.option(
    "--agent-namespace",
    default=names.AGENT_NAMESPACE,
    show_default=True,
    type=Namespace(),
    help="Namespace of the agents on the managed clusters.",
)
@click.option(
    "--resync-seconds",
    default=30.0,
    show_default=True,
    type=NumberRange(min=1.0),
    help="Seconds between two full reconciles, and between two fetches of one API's config.",
)
@click.option(
    "--probe-period-seconds",
    default=10.0,
    show_default=True,
    type=NumberRange(min=1.0),
    help="Seconds between two probes of one scoring API's health.",
)
@click.option(
    "--unhealthy-threshold",
    default=3,
    show_default=True,
    type=click.IntRange(1, 100),
    help="Failed probes in a row that make an Active scorer Inactive.",
)
@click.option(
    "--healthy-threshold",
    default=2,
    show_default=True,
    type=click.IntRange(1, 100),
    help="Successful probes in a row that make an Inactive scorer Active.",
)
@click.option(
    "--distribute-secrets",
    is_flag=True,
    help="Distribute labelled Secrets of --namespace to the managed clusters that need them.",
)
@click.option(
    "--manifest-namespace",
    "manifest_namespaces",
    multiple=True,
    type=Namespace(),
    help="Namespace whose workloads and policies scorers that ask for them get; repeatable.",
)
@write_options
@scorer_options
@leader_options("dynamic-scoring-controller")
@endpoint_option
@log_options
def controller(
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    agent_namespace: str,
    resync_seconds: float,
    probe_period_seconds: float,
    unhealthy_threshold: int,
    healthy_threshold: int,
    distribute_secrets: bool,
    manifest_namespaces: tuple[str, ...],
    identity: str,
    metrics_bind_address: str,
    log_level: str,
    log_format: Literal["text", "json"],
    **flags: Any,
) -> None:
    """Run the hub controller.

    It probes the scoring APIs that DynamicScorers register, and distributes their summaries by one
    ManifestWork per managed cluster, as the DynamicScoringConfig says.
    """
    from dsf.hub.assess.health_thresholds import Thresholds
    from dsf.hub.run import HubOptions
    from dsf.kube.client.connect import BadKubeconfig
    from dsf.runtime.endpoints import CannotListen
    from dsf.runtime.logs import set_up
    from dsf.runtime.process import run

    set_up(log_level, log_format)
    thresholds = Thresholds(unhealthy_threshold, healthy_threshold)
    options = HubOptions(
        namespace,
        agent_namespace,
        resync_seconds,
        probe_period_seconds,
        thresholds=thresholds,
        distribute_secrets=distribute_secrets,
        manifest_namespaces=tuple(dict.fromkeys(manifest_namespaces)),
        writes=concurrency_bounds(**flag_group(flags, "write")),
    )
    asking = prober(**flag_group(flags, "scorer_"))
    wants_to_lead = candidacy(namespace, identity, **flag_group(flags, "leader_elect"))
    try:
        run(_serve(kubeconfig, context, options, asking, wants_to_lead, metrics_bind_address))
    except (BadKubeconfig, CannotListen) as error:
        raise click.ClickException(str(error)) from error


async def _serve(
    kubeconfig: Path | None,
    context: str | None,
    options: "HubOptions",
    asking: "Prober",
    wants_to_lead: "LeaderElectionConfig | None",
    bind: str,
) -> None:
    from prometheus_client import REGISTRY

    from dsf.hub.run import HubController
    from dsf.kube.client.connect import connect
    from dsf.runtime.endpoints import serve_endpoints
    from dsf.runtime.leader_election.leader_elector import LeaderElector

    async with connect(kubeconfig, context) as kube:
        health = kube.on_own_connections("health")
        hub = HubController(kube, options, prober=asking, health=health)
        async with serve_endpoints(bind, registry=REGISTRY, ready=hub.unready_reason):
            await hub.run(LeaderElector(kube, wants_to_lead).run if wants_to_lead else None)
