"""`dsf constraints`: what workloads and clusters have every plan keep to."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dsf.cli.output import TextTable, document_of, output_option, show
from optimizer.cli.hub_request import connected, namespace_option, usable

if TYPE_CHECKING:
    from optimizer.follow.overview.constraints.constraint_fields import ConstraintList


@click.command()
@namespace_option
@output_option()
def constraints(
    *, kubeconfig: Path | None, context: str | None, namespace: str, output: str
) -> None:
    """List what every plan keeps to: drains, pins, what runs apart or together, limits.

    They are annotations: `kubectl annotate` adds and removes them.
    """
    told = asyncio.run(_listed(kubeconfig, context, namespace))
    if output != "table":
        show(document_of(told, output))
        return
    rows = [
        (item.kind, str(item.name), item.annotation, str(item.value), "" if item.in_force else "no")
        for item in told.items
    ]
    columns = ("kind", "name", "annotation", "value", "in force")
    show(f"{TextTable(columns, rows)}\n" if rows else "No constraint is remembered.\n")


async def _listed(kubeconfig: Path | None, context: str | None, namespace: str) -> "ConstraintList":
    from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
    from optimizer.operations.constraints import list_constraints

    async with connected(kubeconfig, context) as (_, optimizer):
        return usable(await list_constraints(AuthorizedOptimizer(optimizer), namespace))
