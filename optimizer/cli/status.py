"""`dsf status`: what was decided for a namespace, and what OCM has made of it."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsf.cli.options import Namespace, cluster_options

if TYPE_CHECKING:
    from optimizer.wire.placement_status import PlacementStatus

EXIT_NOT_LANDED = 1


@click.command()
@cluster_options("the hub")
@click.option(
    "--namespace",
    "-n",
    type=Namespace(),
    required=True,
    help="Namespace of the workloads.",
)
@click.option(
    "--optimization",
    type=Namespace(),
    help="Only what this optimization generated; default: what any generated.",
)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
)
def status(
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    optimization: str | None,
    output: str,
) -> None:
    """Show how far OCM is with each workload that was placed, and what drifted.

    Exit code 0 if every workload has landed, 1 otherwise, also if nothing is placed. Writes
    nothing.
    """
    found = asyncio.run(_read(kubeconfig, context, namespace, optimization))
    click.echo(_text(found, output), nl=False)
    if not found.landed:
        raise click.exceptions.Exit(EXIT_NOT_LANDED)


async def _read(
    kubeconfig: Path | None, context: str | None, namespace: str, optimization: str | None
) -> "PlacementStatus":
    from dsf.kube.client.connect import connect
    from dsf.kube.clock import utc_now
    from optimizer.service import Optimizer

    async with connect(kubeconfig, context) as kube:
        return await Optimizer(kube, now=utc_now).placement_status(namespace, optimization)


def _text(found: "PlacementStatus", output: str) -> str:
    match output:
        case "json":
            from dsf.api.untrusted_text import escaped_json

            return escaped_json(found.model_dump_json(indent=2)) + "\n"
        case "yaml":
            import yaml

            return yaml.safe_dump(found.model_dump(mode="json"), sort_keys=False)
        case _:
            from optimizer.placement_status.text import status_tables

            return status_tables(found)
