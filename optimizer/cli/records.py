"""`dsf plans` and `dsf rollback`: what was applied before, and restore it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.options import async_to_sync, option
from dsf.cli.output import document_of, output_option, show
from optimizer.cli.hub_request import (
    connected,
    namespace_option,
    optimization_option,
    own_name,
    usable,
)
from optimizer.cli.model_options import (
    formulation_options,
    history_option,
    object_options,
    settings_of,
)

if TYPE_CHECKING:
    from optimizer.follow.record.recorded_plan import RecordedPlan
    from optimizer.plan.plan import Plan
    from optimizer.wire.result import Applied
    from optimizer.wire.rollout import RolloutStrategy


@click.command()
@namespace_option
@optimization_option("Only the plans of this optimization; default: those of all.", None)
@output_option(help="json and yaml show request, decision, objects and changes too.")
@async_to_sync
async def plans(
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    optimization: str | None,
    output: str,
) -> None:
    """List the recorded plans of a namespace, the newest first. Writes nothing."""
    from optimizer.domain.issue import Issue
    from optimizer.operations.recorded_plans import recorded_plans

    async with connected(kubeconfig, context) as (_, optimizer):
        found = await recorded_plans(optimizer, namespace)
    if isinstance(found, Issue):
        raise click.ClickException(found.message)
    kept = [item for item in usable(found) if optimization in (None, item.spec.optimization)]
    show(_text(namespace, kept, output))


@click.command()
@namespace_option
@optimization_option("The optimization whose plan is restored; default: the only one.", None)
@option("--to-revision", type=click.IntRange(min=1), help="Revision to restore.")
@option("--digest", help="Digest of the plan to restore; default: the plan before the current one.")
@option(
    "--rollout",
    "strategy",
    type=click.Choice(["AllAtOnce", "Stepwise"]),
    help="How the changes are made; default: as the restored request says.",
)
@option("--workload", "-w", help="Undo the move of this workload only; all others stay.")
@option("--dry-run", is_flag=True, help="Show the plan and write nothing.")
@history_option
@object_options
@formulation_options
@async_to_sync
async def rollback(
    *,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    optimization: str | None,
    to_revision: int | None,
    digest: str | None,
    strategy: "RolloutStrategy | None",
    workload: str | None,
    dry_run: bool,
    **rest: Any,
) -> None:
    """Restore a recorded plan: show what changes, apply it, record it as a new revision.

    Refused, with the differences, if the hub no longer allows it. Start it with the options of the
    optimizer, because they shape the generated objects.
    """
    from pydantic import ValidationError

    from optimizer.operations.recorded_plans import make_rollback
    from optimizer.plan.text.tables import render
    from optimizer.service.plan_writer import Writer
    from optimizer.wire.request import RollbackRequest

    try:
        asked = RollbackRequest(
            namespace=namespace,
            optimization=optimization,
            to_revision=to_revision,
            digest=digest,
            rollout=strategy,
            workload=workload,
            dry_run=dry_run,
        )
    except ValidationError as error:
        raise click.UsageError(str(error.errors()[0]["msg"])) from error
    async with connected(kubeconfig, context, settings_of(rest)) as (kube, optimizer):
        made = usable(await make_rollback(optimizer, asked))
        click.echo(render(made))
        applied = None
        if not dry_run:
            applied = usable(await optimizer.service.apply(made, Writer(user=await own_name(kube))))
    click.echo(_outcome_sentence(made, applied))


def _outcome_sentence(made: "Plan", applied: "Applied | None") -> str:
    """Return what was done, in a sentence; raises ClickException if the hub refused writes."""
    from optimizer.follow.record.recorded_plan import restored_part
    from optimizer.plan.plan import refused_writes

    what = restored_part(made.rollback) if made.rollback else ""
    what += f" of optimization {made.optimization}"
    if applied is None:
        return f"Dry run: {what} would be restored, and nothing was written."
    failed = refused_writes(applied.failed)
    if failed:
        raise click.ClickException(f"{failed.title}: {failed.detail}")
    what = what[:1].upper() + what[1:]
    said = f"{what} was restored and recorded as PlacementPlan {applied.record}."
    if made.rollout:
        said = (
            f"{what} is restored step by step, recorded as PlacementPlan"
            f" {applied.record}; `dsf rollout status` shows how far it is."
        )
    return "\n".join([said, *(issue.message for issue in applied.issues)])


def _text(namespace: str, found: "list[RecordedPlan]", output: str) -> str:
    from optimizer.follow.record.plan_views import plan_record, plan_summary, plans_table

    if output == "table":
        return plans_table(namespace, map(plan_summary, found))
    return document_of([plan_record(item) for item in found], output)
