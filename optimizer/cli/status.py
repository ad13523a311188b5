"""`dsf status`, `dsf doctor`, `dsf constraints`: how a hub is, and what every plan keeps to."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsf.cli.options import Namespace, async_to_sync, cluster_options, option, server_url
from dsf.cli.output import Progress, TextTable, document_of, output_option, show
from optimizer.cli.hub_request import connected, namespace_option, optimization_option, usable

if TYPE_CHECKING:
    from optimizer.follow.hub_health.judgement import HubCheck
    from optimizer.wire.placement_status import PlacementStatus

EXIT_NOT_LANDED = 1
EXIT_UNHEALTHY = 1
LOOK_EVERY_SECONDS = 2.0


@click.command()
@cluster_options("the hub")
@option(
    "--namespace",
    "-n",
    type=Namespace(),
    help="Only what was placed in this namespace; default: the whole hub.",
)
@optimization_option(
    "Only what this optimization generated in the namespace; default: what any generated.", None
)
@option(
    "--wait",
    type=click.IntRange(min=0, max=86400),
    default=0,
    metavar="SECONDS",
    help="With --namespace: wait at most so long until every workload has landed, without drift.",
)
@output_option()
@async_to_sync
async def status(
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
        await _show_hub(kubeconfig, context, output)
        return
    from optimizer.follow.placement_status.landing_report import status_tables
    from optimizer.operations.fleet import placement_status

    with Progress(f"Reading namespace {namespace}"):
        async with connected(kubeconfig, context) as (_, optimizer):
            found = usable(await placement_status(optimizer, namespace, optimization))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    while not _is_done(found):
                        await asyncio.sleep(LOOK_EVERY_SECONDS)
                        found = usable(await placement_status(optimizer, namespace, optimization))
    show(status_tables(found, optimization) if output == "table" else document_of(found, output))
    if not _is_done(found):
        raise click.exceptions.Exit(EXIT_NOT_LANDED)


def _is_done(found: "PlacementStatus") -> bool:
    return found.landed and not found.drift


async def _show_hub(kubeconfig: Path | None, context: str | None, output: str) -> None:
    from dsf.kube.client.connect import connect
    from dsf.kube.clock import utc_now
    from dsf.kube.errors import Forbidden
    from optimizer.domain.settings import OptimizerSettings
    from optimizer.follow.hub_health.hub_status import hub_status, hub_status_text
    from optimizer.follow.hub_health.installed_parts import part_checks
    from optimizer.service.observe_fleet import observe_fleets, observe_installation
    from optimizer.service.record_keys import RecordKeys

    with Progress("Reading the hub"):
        async with connect(kubeconfig, context) as kube:
            installed = await observe_installation(kube, kube.server, rights=(), now=utc_now)
            try:
                keys = RecordKeys(kube, OptimizerSettings().record_key_secret)
                fleets = await observe_fleets(kube, keys=keys, now=utc_now)
            except Forbidden as error:
                raise click.ClickException(
                    f"{error}; to see a namespace that you may read:"
                    " dsf status --namespace NAMESPACE"
                ) from error
    found = hub_status(installed, part_checks(installed), fleets)
    show(hub_status_text(found, utc_now()) if output == "table" else document_of(found, output))
    if not found.healthy:
        raise click.exceptions.Exit(EXIT_NOT_LANDED)


@click.command()
@cluster_options("the hub")
@option(
    "--namespace",
    "-n",
    type=Namespace(),
    default="default",
    help="Namespace of workloads in which you want to plan and apply.",
)
@option(
    "--prometheus-url",
    default="",
    callback=server_url,
    help="Ask this Prometheus too; default: only what agents say of theirs.",
)
@output_option()
@async_to_sync
async def doctor(
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
        found = await _checks(kubeconfig, context, namespace, prometheus_url)
    show(checks_text(found) if output == "table" else document_of(found, output))
    if not is_healthy(found):
        raise click.exceptions.Exit(EXIT_UNHEALTHY)


async def _checks(
    kubeconfig: Path | None, context: str | None, namespace: str, prometheus_url: str
) -> "tuple[HubCheck, ...]":
    from dsf.cli.prometheus import reachable
    from dsf.kube.access_reviews import ResourceAttributes
    from dsf.kube.clock import utc_now
    from dsf.kube.errors import KubeError
    from optimizer.follow.hub_health.checks import hub_checks, missing_namespace, refused_access
    from optimizer.operations.access.rights import planning_rights, status_rights, writing_rights
    from optimizer.service.observe_fleet import observe_installation

    rights = (*planning_rights(namespace), *status_rights(namespace), *writing_rights(namespace))
    try:
        async with connected(kubeconfig, context) as (kube, optimizer):
            installed = await observe_installation(
                kube,
                kube.server,
                rights=(item for item in rights if isinstance(item, ResourceAttributes)),
                now=utc_now,
                prometheus=await reachable(prometheus_url) if prometheus_url else None,
            )
            missing = await optimizer.service.missing_namespace(namespace)
    except KubeError as error:
        return (refused_access(error),)
    return (*hub_checks(installed), *([missing_namespace(namespace)] if missing else []))


@click.command()
@namespace_option
@output_option()
@async_to_sync
async def constraints(
    *, kubeconfig: Path | None, context: str | None, namespace: str, output: str
) -> None:
    """List what every plan keeps to: drains, pins, what runs apart or together, limits.

    They are annotations: `kubectl annotate` adds and removes them.
    """
    from optimizer.operations.constraints import list_constraints

    async with connected(kubeconfig, context) as (_, optimizer):
        told = usable(await list_constraints(optimizer, namespace))
    if output != "table":
        show(document_of(told, output))
        return
    rows = [
        (item.kind, str(item.name), item.annotation, str(item.value), "" if item.in_force else "no")
        for item in told.items
    ]
    columns = ("kind", "name", "annotation", "value", "in force")
    show(f"{TextTable(columns, rows)}\n" if rows else "No constraint is remembered.\n")
