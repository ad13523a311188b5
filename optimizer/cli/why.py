"""`dsf why`: why a workload is where it is, and why it is not elsewhere."""

from pathlib import Path
from typing import Any

import click

from dsf.cli.options import SHOWN, async_to_sync, option
from dsf.cli.output import Progress, document_of, output_option, show
from optimizer.cli.hub_request import AskedPlan, connected, namespace_option, question_for, usable
from optimizer.cli.model_options import choice_options, formulation_options, settings_of


@click.command()
@click.argument("workload")
@click.argument("cluster", required=False, default="")
@namespace_option
@option(
    "--objective",
    default="",
    help="Explain a plan for these scores, such as `performance:2,power:1`; default: the plan in"
    " force.",
)
@formulation_options
@choice_options
@output_option("text", "json", "yaml", default="text")
@async_to_sync
async def why(
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
    from optimizer.follow.overview.name_search import find_name
    from optimizer.follow.overview.placement_answer import (
        answer_lines,
        explained_request,
        outside_answer,
        placement_answer,
    )

    asked = AskedPlan(kubeconfig, context, namespace, objective)
    with Progress(f"Explaining {workload[:SHOWN]}"):
        async with connected(kubeconfig, context, settings_of(rest)) as (_, optimizer):
            base = (await question_for(optimizer, asked, workload)).request
            names = [item.name for item in base.target_workloads]
            name = usable(find_name(workload, names, field="workload", what="workload"))
            service = optimizer.service
            found, where = None, ""
            if cluster:
                facts = await service.fleet(namespace)
                there = facts.hub.clusters
                where = usable(find_name(cluster, there, field="cluster", what="managed cluster"))
                found = outside_answer(
                    facts, base, name, where, f"optimization {base.optimization}"
                )
            if found is None:
                plan = usable(await service.plan(explained_request(base, name, where)))
                found = placement_answer(plan, name, where)
    text = output == "text"
    show("\n".join(answer_lines(found)) + "\n" if text else document_of(found, output))
