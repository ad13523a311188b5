"""The flags of leader election, with kube-controller-manager's names and defaults."""

import socket
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from dsf.cli.durations import Duration
from dsf.cli.options import Command, identity_option, options

if TYPE_CHECKING:
    from dsf.runtime.leader_election.lease import LeaderElectionConfig


def leader_options(lease_name: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the flags to a command, as arguments of `candidacy`."""
    return options(
        click.option(
            "--leader-elect",
            type=bool,
            is_flag=False,
            flag_value=True,
            default=False,
            show_default=True,
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
        click.option(
            "--leader-elect-resource-name",
            default=lease_name,
            show_default=True,
            help="Name of the Lease.",
        ),
        click.option(
            "--leader-elect-resource-namespace",
            help="Namespace of the Lease; default: --namespace.",
        ),
        identity_option,
    )


def _duration(name: str, default: str, text: str) -> Callable[[Command], Command]:
    return click.option(name, type=Duration(), default=default, show_default=True, help=text)


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
    from dsf.runtime.leader_election.lease import LeaderElectionConfig  # noqa: PLC0415 - loaded when a command is called

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
