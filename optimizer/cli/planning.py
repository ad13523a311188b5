"""`dsf plan`, `dsf diff` and `dsf optimize`: make a plan, compare it with the hub, apply it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dsf.cli.options import async_to_sync, option
from dsf.cli.output import (
    Progress,
    coloured_diff,
    document,
    document_of,
    draw,
    output_option,
    picture_option,
    show,
)
from optimizer.cli.hub_request import (
    AskedPlan,
    asked_files,
    asked_plan,
    connected,
    files_option,
    named_request,
    own_name,
    question_for,
    question_of_files,
    request_options,
    usable,
)
from optimizer.cli.model_options import answer_options, history_option, settings_of

if TYPE_CHECKING:
    from dsf.kube.client.kube_client import Client
    from dsf.kube.port import Lister
    from optimizer.domain.solution import Solution
    from optimizer.follow.overview.question_completion import PlanningQuestion
    from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
    from optimizer.plan.plan import Plan
    from optimizer.wire.request import OptimizeRequest
    from optimizer.wire.result import Applied
    from optimizer.wire.rollout import RolloutStrategy

EXIT_NOTHING_PLACED = 1
EXIT_NOT_APPLIED = 1
EXIT_DIFFERENT, EXIT_NO_DIFF = 1, 2
"""Exit codes of `dsf diff`, those of kubectl diff: there is a difference; it failed."""


@click.command()
@files_option
@request_options
@answer_options
@output_option(
    "table",
    "json",
    "yaml",
    "manifests",
    help="manifests: only the generated objects, for kubectl apply -f -.",
)
@picture_option(
    "Write what runs where before and after into this HTML file, for any browser.", ".html"
)
@option(
    "--what-if",
    default="",
    help="What if something were else: `whatIf` of POST /plan as JSON, such as"
    ' {"lose": ["worker02"]}.',
)
@option(
    "--explain",
    is_flag=True,
    help="Explain the plan too, for at most another --time-limit; whyNot and pareto of the request"
    " are always answered.",
)
@async_to_sync
async def plan(*, output: str, picture: Path | None, explain: bool, **rest: Any) -> None:
    """Solve a placement for a hub, or offline from files; print the plan, write nothing there.

    Files hold ManagedClusters, Policies, ManifestWorkReplicaSets and AddOnPlacementScores. With a
    ManagedClusterSetBinding among them, only clusters of bound sets are used, as on a hub.
    """
    if explain and output == "manifests":
        raise click.UsageError("--explain: manifests have no place for it; choose another --output")
    page = "" if picture is None else _built_page()
    async with _planned(asked_plan(rest), rest, explain=explain) as (lister, made):
        drawn = await _picture(lister, made, page) if page else ""
    if picture is not None:
        draw(drawn, picture)
    show(_text(made, output))
    if not made.placements:
        raise click.exceptions.Exit(EXIT_NOTHING_PLACED)


@click.command()
@files_option
@request_options
@answer_options
@output_option("diff", "json", "yaml", default="diff")
@async_to_sync
async def diff(*, output: str, **rest: Any) -> None:
    """Show what applying a plan would change in the objects of a hub; write nothing.

    Without --objective or --request it plans again, with today's scores, what the plan in force was
    asked for. Exit code 0 if nothing would change, 1 if something would, 2 if it failed.
    """
    from dsf.kube.errors import KubeError
    from optimizer.plan.text.object_diffs import object_diffs
    from optimizer.service.observe import list_all

    try:
        async with _planned(asked_plan(rest), rest) as (lister, made):
            places = {(item.kind, item.namespace) for item in made.changes}
            current = {place: await list_all(lister, *place) for place in places}
        found = object_diffs(made.changes, current)
    except (KubeError, click.ClickException) as error:
        raise _NoDiff(error.message if hasattr(error, "message") else str(error)) from error
    if output == "diff":
        show(coloured_diff("".join(item.text() for item in found)))
    else:
        show(document([item.document() for item in found], output))
    if found:
        raise click.exceptions.Exit(EXIT_DIFFERENT)


@click.command()
@request_options
@option(
    "--rollout",
    "strategy",
    type=click.Choice(["AllAtOnce", "Stepwise"]),
    help="How the changes are made; default: as the request says. Stepwise needs a running `dsf"
    " optimizer`.",
)
@option(
    "--expected-digest",
    "expected",
    default="",
    help="Apply the plan only if it has this digest, which a dry run or the page showed.",
)
@option("--yes", "-y", is_flag=True, help="Apply without asking.")
@option("--dry-run", is_flag=True, help="Show the plan and write nothing.")
@history_option
@answer_options
@output_option()
@async_to_sync
async def optimize(
    *,
    strategy: "RolloutStrategy | None",
    expected: str,
    yes: bool,
    dry_run: bool,
    output: str,
    **rest: Any,
) -> None:
    """Plan, show the plan, ask, and apply it: exactly what POST /optimize writes.

    Start it with the options of the optimizer, because they shape the generated objects. Exit code
    0 if the hub has the plan then, 1 if not.
    """
    from optimizer.operations.access.shown_plans import not_as_shown
    from optimizer.plan.text.tables import render
    from optimizer.service.plan_writer import Writer

    applied = None
    asked = asked_plan(rest)
    async with _planned_hub(asked, rest, rollout=strategy, dry_run=dry_run) as found:
        made = usable(not_as_shown(found.plan, expected) or found.plan)
        if output == "table":
            show(render(made) + "\n")
        elif not yes:
            click.echo(render(made), err=True)
        writes = made.changes and not made.request.dry_run
        if writes and (yes or _is_confirmed(made, found.kube.server)):
            with Progress("Applying"):
                writer = Writer(user=await own_name(found.kube))
                applied = usable(await found.optimizer.service.apply(made, writer))
    _show_outcome(made, applied, output)


def _is_confirmed(made: "Plan", server: str) -> bool:
    from optimizer.plan.text.approval_questions import plan_question

    return click.confirm(f"{plan_question(made, server)}\nApply it?", err=True)


def _show_outcome(made: "Plan", applied: "Applied | None", output: str) -> None:
    """Print what was written; raises Exit or ClickException if the hub has not the plan then."""
    from optimizer.plan.plan import refused_writes, result

    dry_run = made.request.dry_run
    if output != "table":
        show(document_of(result(made, applied), output))
    elif made.changes and applied is not None:
        show(_applied_text(made, applied))
    elif not made.changes and made.placements:
        click.echo("Nothing is to be written: the hub has this plan.")
    elif dry_run:
        click.echo("Dry run: nothing was written.")
    else:
        click.echo("Nothing was written.")
    if not made.placements:
        raise click.exceptions.Exit(EXIT_NOTHING_PLACED)
    if applied is None:
        if made.changes and not dry_run:
            raise click.exceptions.Exit(EXIT_NOT_APPLIED)
    elif failed := refused_writes(applied.failed):
        raise click.ClickException(f"{failed.title}: {failed.detail}")


class _NoDiff(click.ClickException):
    exit_code = EXIT_NO_DIFF


class _PlannedHub(NamedTuple):
    kube: "Client"
    optimizer: "AuthorizedOptimizer"
    plan: "Plan"


@asynccontextmanager
async def _planned_hub(
    asked: AskedPlan, rest: dict[str, Any], **changes: Any
) -> AsyncIterator[_PlannedHub]:
    """Yield a hub and the plan that is asked for; `changes`: fields of the request."""
    named = named_request(asked)
    settings = settings_of(rest)
    async with connected(asked.kubeconfig, asked.context, settings) as (kube, optimizer):
        with Progress("Planning") as progress:
            question = _said(named) or _not_dry(await question_for(optimizer, asked))
            made = usable(
                await optimizer.service.plan(
                    _changed(question.request, changes),
                    pretended=question.pretended,
                    report=_shown_on(progress),
                )
            )
        yield _PlannedHub(kube, optimizer, made)


@asynccontextmanager
async def _planned(
    asked: AskedPlan, rest: dict[str, Any], **changes: Any
) -> "AsyncIterator[tuple[Lister, Plan]]":
    """Yield a hub or the objects of files, and the plan that is asked for."""
    if not asked.paths:
        async with _planned_hub(asked, rest, **changes) as found:
            yield found.kube, found.plan
        return
    from dsf.kube.clock import utc_now
    from optimizer.service.planner import Planner, pretended_hub

    files, named = asked_files(asked)
    settings = settings_of(rest)
    with Progress("Planning") as progress:
        question = _said(named) or _not_dry(await question_of_files(files, asked, settings))
        planner = Planner(pretended_hub(files, question.pretended), settings, now=utc_now)
        made = await planner.plan(
            _changed(question.request, changes), name_others=True, report=_shown_on(progress)
        )
    yield files, usable(made)


def _shown_on(progress: Progress) -> "Callable[[Solution], None]":
    """Return what shows each better decision on the line that says how long planning takes."""
    from optimizer.plan.text.approval_questions import best_so_far

    def show_best(solution: "Solution") -> None:
        progress.detail = best_so_far(solution)

    return show_best


def _said(request: "OptimizeRequest | None") -> "PlanningQuestion | None":
    from optimizer.follow.overview.question_completion import PlanningQuestion

    return PlanningQuestion(request) if request else None


def _not_dry(question: "PlanningQuestion") -> "PlanningQuestion":
    """Return a question, which is for a dry run, for a command that says that itself."""
    request = question.request.model_copy(update={"dry_run": False})
    return question._replace(request=request)


def _changed(request: "OptimizeRequest", changes: dict[str, Any]) -> "OptimizeRequest":
    return request.model_copy(update={name: value for name, value in changes.items() if value})


def _built_page() -> str:
    """Return the page that the optimizer serves. Raises ClickException."""
    from optimizer.api.page_picture import HEAD
    from optimizer.api.page_route import NOT_BUILT, PAGE

    with suppress(OSError):
        if HEAD in (page := PAGE.read_text(encoding="utf-8")):
            return page
    raise click.ClickException(f"{NOT_BUILT.title}: {NOT_BUILT.detail}")


async def _picture(lister: "Lister", plan: "Plan", page: str) -> str:
    """Return the page with a plan and its fleet inside."""
    from dsf.kube.clock import utc_now
    from dsf.kube.kinds import NODE_INVENTORY
    from optimizer.api.page_picture import page_of_plan
    from optimizer.follow.overview.fleet_matrix import fleet_matrix
    from optimizer.service.observe_fleet import observe_fleet

    place = plan.request.namespace
    facts = await observe_fleet(lister, place, now=utc_now, listed=(NODE_INVENTORY,))
    return page_of_plan(page, plan, fleet_matrix(facts))


def _applied_text(made: "Plan", applied: "Applied") -> str:
    said = f"The plan {made.digest[:12]} was applied: {len(applied.applied)} changes"
    if applied.record:
        said += f", recorded as PlacementPlan {applied.record}"
    follow = "`dsf rollout status`" if made.rollout else "`dsf status --namespace`"
    lines = [f"{said}; {follow} shows how far it is.", *(item.message for item in applied.issues)]
    return "\n".join(lines) + "\n"


def _text(made: "Plan", output: str) -> str:
    from optimizer.plan.plan import result

    match output:
        case "json" | "yaml":
            return document_of(result(made, None), output)
        case "manifests":
            return made.output_yaml
        case _:
            from optimizer.plan.text.tables import render

            return render(made)
