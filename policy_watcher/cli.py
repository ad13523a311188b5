"""The command `dsf policy-watcher`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dsf.api import name_syntax
from dsf.cli.options import cluster_options, endpoint_option, log_options, option

if TYPE_CHECKING:
    from policy_watcher.run import WatcherSettings

Callback = Callable[[click.Context, click.Parameter, str], Any]


class BadSetting(click.ClickException):
    """An invalid setting: one line that names the flag and the environment variable."""

    exit_code = 2


def _whole_number(least: int) -> Callback:
    def convert(_: click.Context, parameter: click.Parameter, value: str) -> int:
        text = value.strip()
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise BadSetting(
                f"{_spelled(parameter)} is {value!r}: it must be a whole number of seconds,"
                f" at least {least}"
            )
        return int(text)

    return convert


def _dns_name(_: click.Context, parameter: click.Parameter, value: str) -> str:
    if name_syntax.dns_subdomain(value):
        raise BadSetting(
            f"{_spelled(parameter)} is {value!r}: it must be the name of a Kubernetes object:"
            " lower case letters, digits and '-', in parts separated by '.'"
        )
    return value


def _spelled(parameter: click.Parameter) -> str:
    return f"{parameter.opts[0]} ({parameter.envvar})"


@click.command("policy-watcher")
@option(
    "--poll-interval-sec",
    envvar="POLL_INTERVAL_SEC",
    default="30",
    metavar="INTEGER",
    callback=_whole_number(1),
    help="Seconds between two reads of the policies.",
)
@option(
    "--stable-duration-sec",
    envvar="STABLE_DURATION_SEC",
    default="120",
    metavar="INTEGER",
    callback=_whole_number(0),
    help="Seconds that every policy must have been Compliant before the claim is compliant.",
)
@option(
    "--target-claim-name",
    envvar="TARGET_CLAIM_NAME",
    default="policy-watcher-claim",
    callback=_dns_name,
    help="Name of the ClusterClaim.",
)
@option(
    "--watch-namespace",
    envvar="WATCH_NAMESPACE",
    default="default",
    callback=_dns_name,
    help="Namespace of the replicated policies, which is the managed cluster's name.",
)
@cluster_options("the managed cluster")
@endpoint_option
@log_options
def policy_watcher(
    *,
    poll_interval_sec: int,
    stable_duration_sec: int,
    target_claim_name: str,
    watch_namespace: str,
    kubeconfig: Path | None,
    context: str | None,
    metrics_bind_address: str,
    log_level: str,
    log_format: Literal["text", "json"],
) -> None:
    """Run the policy watcher of one managed cluster.

    It reports in a ClusterClaim whether the cluster's policies are compliant or noncompliant, or
    empty if there are none. The claim becomes compliant only after all policies have been
    Compliant for the whole stable duration.
    """
    from dsf.kube.client.connect import BadKubeconfig
    from dsf.runtime.endpoints import CannotListen
    from dsf.runtime.logs import set_up
    from dsf.runtime.process import run
    from policy_watcher.run import WatcherSettings

    set_up(log_level, log_format)
    settings = WatcherSettings(
        poll_seconds=poll_interval_sec,
        stable_seconds=stable_duration_sec,
        claim_name=target_claim_name,
        namespace=watch_namespace,
    )
    try:
        run(_serve(kubeconfig, context, settings, metrics_bind_address))
    except (BadKubeconfig, CannotListen) as error:
        raise click.ClickException(str(error)) from error


async def _serve(
    kubeconfig: Path | None, context: str | None, settings: "WatcherSettings", bind: str
) -> None:
    from prometheus_client import REGISTRY

    from dsf.kube.client.connect import connect
    from dsf.runtime.endpoints import serve_endpoints
    from policy_watcher.run import PolicyWatcher

    async with connect(kubeconfig, context) as kube:
        watcher = PolicyWatcher(kube, settings)
        async with serve_endpoints(bind, registry=REGISTRY, ready=watcher.unready_reason):
            await watcher.run()
