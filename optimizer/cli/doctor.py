"""`dsf doctor`: check a hub from this machine, each problem with its fix."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsf.cli.options import Namespace, cluster_options, server_url
from dsf.cli.output import Progress, document_of, output_option, show

if TYPE_CHECKING:
    from optimizer.follow.hub_health.checks import HubCheck

EXIT_UNHEALTHY = 1


@click.command()
@cluster_options("the hub")
@click.option(
    "--namespace",
    "-n",
    type=Namespace(),
    default="default",
    show_default=True,
    help="Namespace of workloads in which you want to plan and apply.",
)
@click.option(
    "--prometheus-url",
    default="",
    callback=server_url,
    help="Ask this Prometheus too; default: only what agents say of theirs.",
)
@output_option()
def doctor(
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    prometheus_url: str,
    output: str,
) -> None:
    """Check a hub: access, CRDs, OCM, add-on, scorers, Prometheus, clocks, rights.

    Each problem comes with its fix. Exit code 0 if no check failed, else 1. Writes nothing.
    """
    from optimizer.follow.hub_health.checks import is_healthy
    from optimizer.follow.hub_health.hub_status import checks_text

    with Progress("Checking the hub"):
        found = asyncio.run(_checks(kubeconfig, context, namespace, prometheus_url))
    show(checks_text(found) if output == "table" else document_of(found, output))
    if not is_healthy(found):
        raise click.exceptions.Exit(EXIT_UNHEALTHY)


async def _checks(
    kubeconfig: Path | None, context: str | None, namespace: str, prometheus_url: str
) -> "tuple[HubCheck, ...]":
    from dsf.cli.prometheus import reachable
    from dsf.kube.access_reviews import ResourceAttributes
    from dsf.kube.client.connect import connect
    from dsf.kube.clock import utc_now
    from dsf.kube.errors import KubeError
    from optimizer.follow.hub_health.checks import hub_checks, missing_namespace, refused_access
    from optimizer.operations.access.rights import planning_rights, status_rights, writing_rights
    from optimizer.service.observe_fleet import observe_installation
    from optimizer.service.optimizer import Optimizer

    rights = (
        *planning_rights(namespace),
        *status_rights(namespace),
        *writing_rights(namespace),
    )
    try:
        async with connect(kubeconfig, context) as kube:
            installed = await observe_installation(
                kube,
                kube.server,
                rights=(item for item in rights if isinstance(item, ResourceAttributes)),
                now=utc_now,
                prometheus=await reachable(prometheus_url) if prometheus_url else None,
            )
            missing = await Optimizer(kube, now=utc_now).missing_namespace(namespace)
    except KubeError as error:
        return (refused_access(error),)
    return (*hub_checks(installed), *([missing_namespace(namespace)] if missing else []))
