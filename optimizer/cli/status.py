"""`dsf status`: a hub on one screen, or what OCM has made of what was decided for a namespace."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsf.cli.options import Namespace, cluster_options
from dsf.cli.output import Progress, document_of, output_option, show
from optimizer.cli.hub_request import connected, optimization_option, usable

if TYPE_CHECKING:
    from optimizer.follow.hub_health.hub_status import HubStatus
    from optimizer.wire.placement_status import PlacementStatus

EXIT_NOT_LANDED = 1
LOOK_EVERY_SECONDS = 2.0


@click.command()
@cluster_options("the hub")
@click.option(
    "--namespace",
    "-n",
    type=Namespace(),
    help="Only what was placed in this namespace; default: the whole hub.",
)
@optimization_option(
    "Only what this optimization generated in the namespace; default: what any generated.", None
)
@click.option(
    "--wait",
    type=click.IntRange(min=0, max=86400),
    default=0,
    metavar="SECONDS",
    help="With --namespace: wait at most so long until every workload has landed, without drift.",
)
@output_option()
def status(
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    optimization: str | None,
    wait: int,
    output: str,
) -> None:
    """Show what is installed, healthy, stale and waiting on a hub, and what to do.

    With --namespace: how far OCM is with each workload that was placed there, and what drifted.
    Exit code 0 if nothing is to be done (with --namespace: if every workload has landed, and
    nothing has drifted), else 1.
    Writes nothing.
    """
    if namespace is None:
        if optimization is not None:
            raise click.UsageError("--optimization needs --namespace")
        if wait:
            raise click.UsageError("--wait needs --namespace")
        _show_hub(kubeconfig, context, output)
        return
    with Progress(f"Reading namespace {namespace}"):
        found = asyncio.run(_read(kubeconfig, context, namespace, optimization, wait))
    show(_text(found, optimization, output))
    if not _is_done(found):
        raise click.exceptions.Exit(EXIT_NOT_LANDED)


def _is_done(found: "PlacementStatus") -> bool:
    return found.landed and not found.drift


async def _read(
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    optimization: str | None,
    wait: int,
) -> "PlacementStatus":
    from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
    from optimizer.operations.fleet import placement_status

    async with connected(kubeconfig, context) as (_, made):
        optimizer = AuthorizedOptimizer(made)
        found = usable(await placement_status(optimizer, namespace, optimization))
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                while not _is_done(found):
                    await asyncio.sleep(LOOK_EVERY_SECONDS)
                    found = usable(await placement_status(optimizer, namespace, optimization))
    return found


def _text(found: "PlacementStatus", optimization: str | None, output: str) -> str:
    if output != "table":
        return document_of(found, output)
    from optimizer.follow.placement_status.landing_report import status_tables

    return status_tables(found, optimization)


def _show_hub(kubeconfig: Path | None, context: str | None, output: str) -> None:
    from dsf.kube.clock import utc_now
    from optimizer.follow.hub_health.hub_status import hub_status_text

    with Progress("Reading the hub"):
        found = asyncio.run(_read_hub(kubeconfig, context))
    show(hub_status_text(found, utc_now()) if output == "table" else document_of(found, output))
    if not found.healthy:
        raise click.exceptions.Exit(EXIT_NOT_LANDED)


async def _read_hub(kubeconfig: Path | None, context: str | None) -> "HubStatus":
    from dsf.kube.client.connect import connect
    from dsf.kube.clock import utc_now
    from dsf.kube.errors import Forbidden
    from optimizer.domain.settings import OptimizerSettings
    from optimizer.follow.hub_health.checks import part_checks
    from optimizer.follow.hub_health.hub_status import hub_status
    from optimizer.service.observe_fleet import observe_fleets, observe_installation
    from optimizer.service.record_keys import RecordKeys

    async with connect(kubeconfig, context) as kube:
        installed = await observe_installation(kube, kube.server, rights=(), now=utc_now)
        try:
            keys = RecordKeys(kube, OptimizerSettings().record_key_secret)
            fleets = await observe_fleets(kube, keys=keys, now=utc_now)
        except Forbidden as error:
            raise click.ClickException(
                f"{error}; to see a namespace that you may read: dsf status --namespace NAMESPACE"
            ) from error
    return hub_status(installed.server, part_checks(installed), fleets)
