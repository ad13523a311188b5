"""What commands share that plan for a namespace: options, the hub or files, and the request."""

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from dsf.cli.options import Namespace, cluster_options, options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dsf.kube.port import Kube
    from optimizer.service import Optimizer
    from optimizer.wire.request import OptimizeRequest
    from optimizer.wire.request_problem import RequestProblem

T = TypeVar("T")

namespace_option = options(
    cluster_options("the hub"),
    click.option(
        "--namespace",
        "-n",
        type=Namespace(),
        default="default",
        show_default=True,
        help="Namespace of the workloads.",
    ),
)

files_option = click.option(
    "--filename",
    "-f",
    "paths",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="File or folder with Kubernetes objects and the request, as YAML or JSON, instead of a"
    " hub; repeatable. Pipes and devices are refused, because they may have no end.",
)

request_options = options(
    namespace_option,
    click.option(
        "--objective",
        default="",
        help="Scores to maximise, such as `performance:2,power:1`; parts of names are enough."
        " Default: plan again what the plan in force was asked for.",
    ),
    click.option(
        "--cluster", "-c", "clusters", multiple=True, help="Only this managed cluster; repeatable."
    ),
    click.option(
        "--workload", "-w", "workloads", multiple=True, help="Only this workload; repeatable."
    ),
    click.option(
        "--optimization",
        type=Namespace(),
        default="default",
        show_default=True,
        help="Name of the optimization that the plan belongs to.",
    ),
    click.option(
        "--request",
        "request_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="File with the body of POST /optimize, which names its own namespace.",
    ),
)


class AskedPlan(NamedTuple):
    """What the options of `request_options` and `files_option` ask for."""

    kubeconfig: Path | None
    context: str | None
    namespace: str
    objective: str = ""
    clusters: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    optimization: str = ""
    request_file: Path | None = None
    paths: tuple[Path, ...] = ()


def asked_plan(flags: dict[str, Any]) -> AskedPlan:
    """Take what belongs to the question out of the flags of a command; raises UsageError."""
    asked = AskedPlan(**{name: flags.pop(name) for name in AskedPlan._fields if name in flags})
    said = bool(asked.objective or asked.clusters or asked.workloads)
    if asked.request_file and said:
        raise click.UsageError("--request says all: give no --objective, --cluster or --workload")
    return asked


@asynccontextmanager
async def asked_hub(asked: AskedPlan) -> "AsyncIterator[tuple[Kube, OptimizeRequest | None]]":
    """Yield the hub, or one with the objects of files, and the request of a file, if there is one.

    Raises ClickException.
    """
    from dsf.api.untrusted_text import escaped_lines
    from dsf.kube.client.connect import connect
    from dsf.kube.embedded.yaml_documents import YamlFileError
    from optimizer.cli.offline_hub import read_offline_hub, read_request

    try:
        named = read_request(asked.request_file) if asked.request_file else None
        read = await read_offline_hub(asked.paths, named) if asked.paths else None
    except YamlFileError as error:
        raise click.ClickException(str(error)) from error
    if read is None:
        async with connect(asked.kubeconfig, asked.context) as kube:
            yield kube, named
        return
    for text in read.ignored:
        click.echo(f"Ignored: {escaped_lines(text)}", err=True)
    if read.request is None and not asked.objective:
        raise click.ClickException(
            "no request found: add the body of POST /optimize as a YAML or JSON file, or name it"
            " with --request, or say --objective"
        )
    yield read.hub, None if asked.objective else read.request


async def request_for(
    optimizer: "Optimizer", asked: AskedPlan, workload: str = ""
) -> "OptimizeRequest":
    """Return the request that the options mean, or that of the plan in force, with the workload.

    Raises ClickException.
    """
    from optimizer.domain.issue import Issue
    from optimizer.overview.name_search import find_name
    from optimizer.overview.placement_answer import request_in_force
    from optimizer.overview.planning_request import (
        PlanningWish,
        complete_question,
        read_objective,
    )

    if not (asked.objective or asked.clusters or asked.workloads):
        records = await optimizer.plans(asked.namespace)
        kept = () if isinstance(records, Issue) else records
        same = (item for item in kept if asked.optimization in ("", item.spec.optimization))
        if found := request_in_force(same, workload):
            return usable(found)
    facts = await optimizer.fleet(asked.namespace)
    if workload:
        usable(find_name(workload, facts.workloads, field="workload", what="workload"))
    wish = PlanningWish(
        usable(read_objective(asked.objective)),
        asked.clusters,
        asked.workloads,
        further={"optimization": asked.optimization} if asked.optimization else {},
    )
    return usable(complete_question(facts, wish)).request


async def own_name(kube: "Kube") -> str:
    """Return the user of the kubeconfig; empty before Kubernetes 1.28, which does not tell it."""
    from dsf.kube.access_reviews import own_user_name
    from dsf.kube.errors import ApiError
    from dsf.kube.kinds import SELF_SUBJECT_REVIEW

    try:
        return own_user_name(await kube.create(SELF_SUBJECT_REVIEW, {}))
    except ApiError:
        return ""


def usable(found: "T | RequestProblem") -> T:
    """Return a value; raise ClickException if it is a problem."""
    from optimizer.wire.request_problem import RequestProblem

    if isinstance(found, RequestProblem):
        raise click.ClickException(f"{found.title}: {found.detail}")
    return found
