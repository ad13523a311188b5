"""`dsf why`: why a workload is where it is, and why it is not elsewhere."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.output import document_of, output_option, show
from dsf.cli.progress import Progress
from optimizer.cli.hub_request import namespace_option, usable
from optimizer.cli.model_options import model_options, settings_of

if TYPE_CHECKING:
    from optimizer.overview.placement_answer import PlacementAnswer
    from optimizer.service import Optimizer
    from optimizer.wire.request import OptimizeRequest


@click.command()
@click.argument("workload")
@click.argument("cluster", required=False, default="")
@namespace_option
@click.option(
    "--objective",
    default="",
    help="Explain a plan for these scores, such as `performance:2,power:1`; default: the plan in"
    " force.",
)
@model_options
@output_option("text", "json", "yaml", default="text")
def why(
    *,
    workload: str,
    cluster: str,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    objective: str,
    output: str,
    **rest: Any,
) -> None:
    """Say why WORKLOAD is where it is, or why it is not on CLUSTER.

    Parts of names are enough. It solves the plan again with changes, and writes nothing.
    """
    with Progress(f"Explaining {workload[:80]}"):
        found = asyncio.run(
            _explained(kubeconfig, context, (namespace, workload, cluster, objective), rest)
        )
    show("\n".join(_lines(found)) + "\n" if output == "text" else document_of(found, output))


async def _explained(
    kubeconfig: Path | None,
    context: str | None,
    question: tuple[str, str, str, str],
    rest: dict[str, Any],
) -> "PlacementAnswer":
    from dsf.kube.client.connect import connect
    from dsf.kube.clock import utc_now
    from optimizer.service import Optimizer

    async with connect(kubeconfig, context) as kube:
        return await _answer(Optimizer(kube, settings_of(rest), now=utc_now), *question)


async def _answer(
    optimizer: "Optimizer", namespace: str, workload: str, cluster: str, objective: str
) -> "PlacementAnswer":
    from optimizer.overview.name_search import find_name
    from optimizer.overview.placement_answer import explained_request, placement_answer

    facts = await optimizer.fleet(namespace)
    base = await _request(optimizer, facts, workload, objective)
    names = [item.name for item in base.target_workloads]
    name = usable(find_name(workload, names, field="workload", what="workload"))
    where = cluster and usable(
        find_name(cluster, facts.hub.clusters, field="cluster", what="managed cluster")
    )
    plan = usable(await optimizer.plan(explained_request(base, name, where)))
    return placement_answer(plan, name, where)


async def _request(
    optimizer: "Optimizer", facts: Any, workload: str, objective: str
) -> "OptimizeRequest":
    """Return the request for the objective, else that of the plan in force."""
    from optimizer.domain.issue import Issue
    from optimizer.overview.placement_answer import request_in_force
    from optimizer.overview.planning_request import (
        PlanningWish,
        complete_question,
        read_objective,
    )

    if not objective:
        records = await optimizer.plans(facts.namespace)
        known = () if isinstance(records, Issue) else records
        found = request_in_force(known, workload)
        if found is not None:
            return usable(found)
    wish = PlanningWish(usable(read_objective(objective)))
    return usable(complete_question(facts, wish)).request


def _lines(found: "PlacementAnswer") -> Iterator[str]:
    yield found.answer
    if found.unplaced is None:
        return
    yield from (f"Limit: {item.message}" for item in found.unplaced.limits)
    remedy = found.unplaced.remedy
    for change in remedy.changes if remedy else ():
        yield f"It would have a place after this: {change.message}"
