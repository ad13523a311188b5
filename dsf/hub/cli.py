"""The command `dsf controller` and its flags."""

import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dsf.api import names
from dsf.cli.options import (
    FILE,
    Command,
    Duration,
    Namespace,
    NumberRange,
    cluster_options,
    endpoint_option,
    flag_group,
    identity_option,
    log_options,
    option,
    options,
)
from dsf.outbound.destination_flags import allowed_destinations, destination_options

if TYPE_CHECKING:
    from dsf.hub.observe.prober import Prober
    from dsf.kube.concurrency_limit import ConcurrencyBounds
    from dsf.runtime.lease import LeaderElectionConfig


def _duration(name: str, default: str, text: str) -> Callable[[Command], Command]:
    return option(name, type=Duration(), default=default, help=text)


write_options = options(
    option(
        "--writes-in-flight-minimum",
        default=1,
        type=click.IntRange(1, 1000),
        help="Writes to the hub that may always be in flight at once.",
    ),
    option(
        "--writes-in-flight-maximum",
        default=32,
        type=click.IntRange(1, 1000),
        help="Writes in flight at once, however fast the API server answers.",
    ),
    option(
        "--write-latency-factor",
        default=1.5,
        type=NumberRange(1.0, 100.0),
        help="More writes are in flight until their latency is this many times that of the fewest.",
    ),
)
"""Bounds of the writes in flight; the keyword arguments of `concurrency_bounds`."""

scorer_options = options(
    option(
        "--scorer-certificate-authority",
        type=FILE,
        help="PEM file of certificate authorities for scoring APIs, added to the public ones.",
    ),
    option(
        "--scorer-timeout-seconds",
        default=5.0,
        type=NumberRange(0.1, 60.0),
        help="Seconds in which a scoring API has to answer completely.",
    ),
    destination_options,
)
"""Limits of probes; the keyword arguments of `prober`."""


def leader_options(lease: str) -> Callable[[Command], Command]:
    """Return the flags of leader election, with kube-controller-manager's names and defaults.

    They are the arguments of `candidacy`; `lease` is the default name of the Lease.
    """
    return options(
        option(
            "--leader-elect",
            type=bool,
            is_flag=False,
            flag_value=True,
            default=False,
            help="Write only while holding a Lease; needed if more than one process runs.",
        ),
        _duration(
            "--leader-elect-lease-duration",
            "15s",
            "Time after which a leader that does not renew loses the Lease.",
        ),
        _duration(
            "--leader-elect-renew-deadline",
            "10s",
            "Time after which a leader that cannot renew stops its work.",
        ),
        _duration(
            "--leader-elect-retry-period",
            "2s",
            "Time between two attempts to get or renew the Lease.",
        ),
        option("--leader-elect-resource-name", default=lease, help="Name of the Lease."),
        option(
            "--leader-elect-resource-namespace",
            help="Namespace of the Lease; default: the hub namespace.",
        ),
        identity_option,
    )


@click.command()
@cluster_options("the hub")
@option(
    "--namespace",
    default=names.HUB_NAMESPACE,
    type=Namespace(),
    help="Namespace of DynamicScorers and the DynamicScoringConfig.",
)
@option(
    "--agent-namespace",
    default=names.AGENT_NAMESPACE,
    type=Namespace(),
    help="Namespace of the agents on the managed clusters.",
)
@option(
    "--resync-seconds",
    default=30.0,
    type=NumberRange(min=1.0),
    help="Seconds between two full reconciles, and at most between two fetches of a config.",
)
@option(
    "--probe-period-seconds",
    default=10.0,
    type=NumberRange(min=1.0),
    help="Seconds between two probes of one scoring API's health.",
)
@option(
    "--unhealthy-threshold",
    default=3,
    type=click.IntRange(1, 100),
    help="Failed probes in a row that make an Active scorer Inactive.",
)
@option(
    "--healthy-threshold",
    default=2,
    type=click.IntRange(1, 100),
    help="Successful probes in a row that make an Inactive scorer Active.",
)
@option(
    "--distribute-secrets",
    is_flag=True,
    help="Distribute labelled Secrets of --namespace to the managed clusters that need them.",
)
@option(
    "--manifest-namespace",
    "manifest_namespaces",
    multiple=True,
    type=Namespace(),
    help="Namespace whose workloads and policies scorers that ask for them get; repeatable.",
)
@write_options
@scorer_options
@leader_options(names.CONTROLLER_LEASE)
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
    from prometheus_client import REGISTRY

    from dsf.hub.assess.health_thresholds import Thresholds
    from dsf.hub.run import HubController, HubOptions
    from dsf.kube.client.connect import BadKubeconfig, connect
    from dsf.runtime.endpoints import CannotListen, serve_endpoints
    from dsf.runtime.leader_election import LeaderElector
    from dsf.runtime.logs import set_up
    from dsf.runtime.process import run

    set_up(log_level, log_format)
    options = HubOptions(
        namespace,
        agent_namespace,
        resync_seconds,
        probe_period_seconds,
        thresholds=Thresholds(unhealthy_threshold, healthy_threshold),
        distribute_secrets=distribute_secrets,
        manifest_namespaces=tuple(dict.fromkeys(manifest_namespaces)),
        writes=concurrency_bounds(**flag_group(flags, "write")),
    )
    asking = prober(**flag_group(flags, "scorer_"))
    lease = candidacy(namespace, identity, **flag_group(flags, "leader_elect"))

    async def serve() -> None:
        async with connect(kubeconfig, context) as kube:
            health = kube.on_own_connections("health")
            hub = HubController(kube, options, prober=asking, health=health)
            ready = hub.unready_reason
            async with serve_endpoints(metrics_bind_address, registry=REGISTRY, ready=ready):
                await hub.run(LeaderElector(kube, lease).run if lease else None)

    try:
        run(serve())
    except (BadKubeconfig, CannotListen) as error:
        raise click.ClickException(str(error)) from error


def candidacy(
    namespace: str,
    identity: str,
    *,
    leader_elect: bool,
    leader_elect_lease_duration: float,
    leader_elect_renew_deadline: float,
    leader_elect_retry_period: float,
    leader_elect_resource_name: str,
    leader_elect_resource_namespace: str | None,
) -> "LeaderElectionConfig | None":
    """Return the configuration of leader election; None without `--leader-elect`.

    Raises click.UsageError for times that would let two lead at once.
    """
    from dsf.runtime.lease import LeaderElectionConfig

    lease, renew = leader_elect_lease_duration, leader_elect_renew_deadline
    retry = leader_elect_retry_period
    if not lease > renew > retry * 1.2 or lease < 1:
        raise click.UsageError(
            "--leader-elect-lease-duration has to be longer than --leader-elect-renew-deadline,"
            " and that longer than 1.2 times --leader-elect-retry-period"
        )
    if not leader_elect:
        return None
    return LeaderElectionConfig(
        leader_elect_resource_name,
        leader_elect_resource_namespace or namespace,
        identity or f"{socket.gethostname()}_{uuid.uuid4()}",
        lease,
        renew,
        retry,
    )


def prober(
    *,
    scorer_certificate_authority: Path | None,
    scorer_timeout_seconds: float,
    **destination_flags: tuple[str, ...],
) -> "Prober":
    """Return a prober with the limits that the flags set. Raises click.UsageError."""
    from dsf.hub.observe.prober import (
        ProbeLimits,
        Prober,
        TrustedAuthorities,
        UnusableAuthorityFile,
    )

    rules = allowed_destinations(**destination_flags)
    try:
        trust = TrustedAuthorities(scorer_certificate_authority)
    except UnusableAuthorityFile as error:
        raise click.UsageError(f"--scorer-certificate-authority: {error}") from error
    return Prober(ProbeLimits(seconds=scorer_timeout_seconds), destinations=rules, trust=trust)


def concurrency_bounds(
    writes_in_flight_minimum: int, writes_in_flight_maximum: int, write_latency_factor: float
) -> "ConcurrencyBounds":
    """Return the bounds of the flags. Raises a usage error if the minimum is the larger one."""
    from dsf.kube.concurrency_limit import ConcurrencyBounds

    if writes_in_flight_minimum > writes_in_flight_maximum:
        raise click.UsageError(
            "--writes-in-flight-minimum must not exceed --writes-in-flight-maximum"
        )
    return ConcurrencyBounds(
        writes_in_flight_minimum, writes_in_flight_maximum, write_latency_factor
    )
