"""`dsf plan`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from optimizer.cli.model_options import model_options, settings_of

if TYPE_CHECKING:
    from optimizer.plan.plan import Plan

EXIT_NOTHING_PLACED = 1


@click.command()
@click.option(
    "--filename",
    "-f",
    "paths",
    multiple=True,
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="File or folder with Kubernetes objects and the request, as YAML or JSON; repeatable."
    " Pipes and devices are refused, because they may have no end.",
)
@click.option(
    "--request",
    "request_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the body of POST /optimize; default: the one request among the files.",
)
@model_options
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml", "manifests"]),
    default="table",
    show_default=True,
    help="manifests: only the generated objects, for kubectl apply -f -.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Explain the plan too, for at most another --time-limit; whyNot and pareto of the request"
    " are always answered.",
)
def plan(*, paths: tuple[Path, ...], request_file: Path | None, output: str, **rest: Any) -> None:
    """Solve a placement offline from files, print the plan, write nothing.

    The files hold ManagedClusters, Policies, ManifestWorkReplicaSets and AddOnPlacementScores.
    """
    import asyncio

    from dsf.kube.embedded.yaml_documents import YamlFileError

    try:
        made = asyncio.run(_plan(paths, request_file, rest))
    except YamlFileError as error:
        raise click.ClickException(str(error)) from error
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"`dsf plan` needs the module {error.name!r}; install it with"
            " pip install 'dynamic-scoring-framework[embedded]'"
        ) from error
    click.echo(_text(made, output), nl=False)
    if not made.placements:
        raise click.exceptions.Exit(EXIT_NOTHING_PLACED)


async def _plan(paths: tuple[Path, ...], request_file: Path | None, rest: dict[str, Any]) -> "Plan":
    from dsf.api.untrusted_text import escaped_lines
    from dsf.kube.clock import utc_now
    from optimizer.cli.offline_hub import read_offline_hub
    from optimizer.service import Optimizer
    from optimizer.wire.request_problem import RequestProblem

    read = await read_offline_hub(paths, request_file)
    for text in read.ignored:
        click.echo(f"Ignored: {escaped_lines(text)}", err=True)
    request = read.request.model_copy(update={"explain": read.request.explain or rest["explain"]})
    made = await Optimizer(read.hub, settings_of(rest), now=utc_now).plan(request)
    if isinstance(made, RequestProblem):
        raise click.ClickException(f"{made.title}: {made.detail}")
    return made


def _text(plan: "Plan", output: str) -> str:
    from dsf.api.untrusted_text import escaped_json
    from optimizer.plan.plan import result

    match output:
        case "json":
            return escaped_json(result(plan, None).model_dump_json(indent=2)) + "\n"
        case "yaml":
            import yaml

            return yaml.safe_dump(result(plan, None).model_dump(mode="json"), sort_keys=False)
        case "manifests":
            return plan.output_yaml
        case _:
            from optimizer.plan.text.tables import render

            return render(plan)
