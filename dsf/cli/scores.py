"""`dsf scores`: what the agents published, managed clusters by dimension."""

import asyncio
import json
from pathlib import Path

import click
import yaml

from dsf.api.placement_scores import ByDimension, by_score
from dsf.cli.columns import aligned
from dsf.cli.options import cluster_options
from dsf.kube.port import Object


@click.command()
@cluster_options("the hub")
@click.option("--cluster", "-c", "clusters", multiple=True, help="Only this managed cluster.")
@click.option("--score", "-s", "scores_", multiple=True, help="Only this AddOnPlacementScore.")
@click.option("--output", "-o", type=click.Choice(["table", "json", "yaml"]), default="table")
def scores(
    kubeconfig: Path | None,
    context: str | None,
    clusters: tuple[str, ...],
    scores_: tuple[str, ...],
    output: str,
) -> None:
    """Show scores: one table per AddOnPlacementScore, managed clusters by dimension."""
    objects = [
        obj
        for obj in asyncio.run(_read(kubeconfig, context))
        if (not clusters or obj["metadata"]["namespace"] in clusters)
        and (not scores_ or obj["metadata"]["name"] in scores_)
    ]
    found = by_score(objects)
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    elif output == "yaml":
        click.echo(yaml.safe_dump(found, sort_keys=False), nl=False)
    elif found:
        click.echo("\n\n".join(_table(name, entries) for name, entries in found.items()))
    else:
        click.echo("No scores found.", err=True)


async def _read(kubeconfig: Path | None, context: str | None) -> list[Object]:
    from dsf.kube.connect import connect  # noqa: PLC0415 - keeps `dsf --help` light
    from dsf.kube.kinds import ADD_ON_PLACEMENT_SCORE  # noqa: PLC0415

    async with connect(kubeconfig, context) as kube:
        return list((await kube.list(ADD_ON_PLACEMENT_SCORE)).items)


def _table(name: str, entries: ByDimension) -> str:
    clusters = sorted({cluster for values in entries.values() for cluster in values})
    rows = [
        [entry, *(str(values.get(cluster, "-")) for cluster in clusters)]
        for entry, values in entries.items()
    ]
    return f"{name}\n{aligned(['dimension', *clusters], rows)}"
