"""What commands share that plan for a namespace: options, the hub or files, and the request."""

import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from dsf.cli.options import Command, Namespace, cluster_options, option, options

if TYPE_CHECKING:
    from dsf.kube.client.kube_client import Client
    from dsf.kube.port import Kube, Lister
    from optimizer.domain.settings import OptimizerSettings
    from optimizer.follow.overview.plan_request import PartialRequest
    from optimizer.follow.overview.question_completion import PlanningQuestion
    from optimizer.follow.overview.what_if import WhatIf
    from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
    from optimizer.wire.request import Aggregation, OptimizeRequest
    from optimizer.wire.request_problem import RequestProblem

T = TypeVar("T")

workloads_option = option(
    "--namespace", "-n", type=Namespace(), default="default", help="Namespace of the workloads."
)

namespace_option = options(cluster_options("the hub"), workloads_option)


def optimization_option(what: str, default: str | None = "default") -> Callable[[Command], Command]:
    """Return `--optimization`; `what` it names, and without a default which ones are meant."""
    shown = default is not None
    return option(
        "--optimization", type=Namespace(), default=default, show_default=shown, help=what
    )


files_option = option(
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
    option(
        "--objective",
        default="",
        help="Scores to maximise, such as `performance:2,power:1`; parts of names are enough."
        " Default: plan again what the plan in force was asked for; with --cluster or --workload,"
        " its objective.",
    ),
    option(
        "--aggregation",
        type=click.Choice(["Max", "Min", "Mean"]),
        help="Which entry of the scores of --objective counts where several differ only in what a"
        " place does not have, such as the node; default: the best.",
    ),
    option(
        "--cluster", "-c", "clusters", multiple=True, help="Only this managed cluster; repeatable."
    ),
    option("--workload", "-w", "workloads", multiple=True, help="Only this workload; repeatable."),
    optimization_option(
        "Name of the optimization that the plan belongs to; default: the only one.", None
    ),
    option(
        "--request",
        "request_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="File with the body of POST /optimize, which names its own namespace.",
    ),
)


class AskedPlan(NamedTuple):
    """What the options of `request_options` and `files_option` ask for.

    `stated`: those of them that were typed, besides defaults.
    """

    kubeconfig: Path | None
    context: str | None
    namespace: str
    objective: str = ""
    aggregation: "Aggregation | None" = None
    clusters: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    optimization: str | None = None
    request_file: Path | None = None
    paths: tuple[Path, ...] = ()
    what_if: str = ""
    stated: frozenset[str] = frozenset()

    @property
    def says_something(self) -> bool:
        """Whether options say what to plan, so that it is not what the plan in force was for."""
        return bool(self.objective or self.clusters or self.workloads or self.what_if)


def asked_plan(flags: dict[str, Any]) -> AskedPlan:
    """Take what belongs to the question out of the flags of a command; raises UsageError."""
    source = click.get_current_context().get_parameter_source
    taken = {name: flags.pop(name) for name in AskedPlan._fields if name in flags}
    typed = (name for name in taken if source(name) is ParameterSource.COMMANDLINE)
    asked = AskedPlan(**taken, stated=frozenset(typed))
    if asked.request_file and asked.says_something:
        raise click.UsageError(
            "--request says all: give no --objective, --cluster, --workload or --what-if"
        )
    if asked.aggregation and not asked.objective:
        raise click.UsageError("--aggregation is of the scores of --objective: say that too")
    if asked.paths and asked.stated & {"kubeconfig", "context"}:
        raise click.UsageError("--filename is instead of a hub: give no --kubeconfig or --context")
    return asked


def _require_same(asked: AskedPlan, request: "OptimizeRequest") -> None:
    """Raise UsageError if options say something else than a request that says all."""
    from dsf.api.untrusted_text import UntrustedName

    if asked.clusters or asked.workloads or asked.what_if:
        raise click.UsageError(
            "the files have a request, which says all: give no --cluster, --workload or --what-if,"
            " or say --objective too"
        )
    for name in ("namespace", "optimization"):
        there = getattr(request, name)
        if name in asked.stated and getattr(asked, name) != there:
            raise click.UsageError(
                f"--{name}: the request says {UntrustedName(there)}; leave one of them out"
            )


def asked_files(asked: AskedPlan) -> "tuple[Lister, OptimizeRequest | None]":
    """Return the objects of files, and the request of a file, if there is one.

    Raises ClickException.
    """
    from dsf.api.untrusted_text import one_line
    from dsf.kube.yaml_documents import YamlFileError
    from optimizer.cli.object_files import read_object_files

    named = named_request(asked)
    # Files can have millions of values, none in a cycle: the collector need not look for any.
    gc.disable()
    try:
        read = read_object_files(asked.paths, named)
    except YamlFileError as error:
        raise click.ClickException(one_line(str(error))) from error
    finally:
        gc.freeze()
        gc.enable()
    for text in read.ignored:
        click.echo(f"Ignored: {one_line(text)}", err=True)
    if read.request and asked.objective:
        click.echo("Ignored: the request in the files, because --objective is said", err=True)
    elif read.request:
        _require_same(asked, read.request)
    if read.request is None and not asked.objective:
        raise click.ClickException(
            "no request found: add the body of POST /optimize as a YAML or JSON file, or name it"
            " with --request, or say --objective"
        )
    return read.hub, None if asked.objective else read.request


def named_request(asked: AskedPlan) -> "OptimizeRequest | None":
    """Return the request of --request, None without it. Raises ClickException."""
    if asked.request_file is None:
        return None
    from dsf.api.untrusted_text import one_line
    from dsf.kube.yaml_documents import YamlFileError
    from optimizer.cli.object_files import read_request

    try:
        named = read_request(asked.request_file)
    except YamlFileError as error:
        raise click.ClickException(one_line(str(error))) from error
    _require_same(asked, named)
    return named


async def question_of_files(
    files: "Lister", asked: AskedPlan, settings: "OptimizerSettings"
) -> "PlanningQuestion":
    """Return the question that options ask of the objects of files. Raises ClickException."""
    from dsf.kube.clock import utc_now
    from optimizer.follow.overview.plan_request import with_optimization
    from optimizer.follow.overview.question_completion import complete_question
    from optimizer.service.observe_fleet import observe_fleet

    facts = await observe_fleet(
        files, asked.namespace, now=utc_now, cluster_label_key=settings.cluster_label_key
    )
    named = usable(with_optimization(facts, _partial_request(asked)))
    return usable(complete_question(facts, named))


async def question_for(
    optimizer: "AuthorizedOptimizer", asked: AskedPlan, workload: str = ""
) -> "PlanningQuestion":
    """Return the question that the options mean, or that of the plan in force, with the workload.

    Raises ClickException.
    """
    from optimizer.domain.issue import Issue
    from optimizer.follow.overview.name_search import find_name
    from optimizer.follow.overview.placement_answer import request_in_force
    from optimizer.follow.overview.question_completion import PlanningQuestion
    from optimizer.follow.record.plan_history import meant_optimization, optimizations_of
    from optimizer.operations.planning import question

    if not asked.says_something:
        records = await optimizer.service.plans(asked.namespace)
        kept = () if isinstance(records, Issue) else records
        of = asked.optimization or ""
        if not (of or workload):
            of = usable(meant_optimization(asked.namespace, optimizations_of(kept)))
        if found := request_in_force(kept, workload, of):
            return PlanningQuestion(usable(found).request)
    facts = await optimizer.service.fleet(asked.namespace)
    if workload:
        usable(find_name(workload, facts.workloads, field="workload", what="workload"))
    partial = _partial_request(asked)
    meant = usable(await question(optimizer, partial, facts, explains=bool(workload)))
    if meant.objective is not None:
        click.echo(meant.objective.message, err=True)
    for issue in meant.issues:
        click.echo(issue.message, err=True)
    # The gap of a command is that of its option.
    return meant._replace(request=meant.request.model_copy(update={"gap": None}))


def _partial_request(asked: AskedPlan) -> "PartialRequest":
    from optimizer.follow.overview.plan_request import PartialRequest, read_objective

    return PartialRequest(
        usable(read_objective(asked.objective)),
        asked.clusters,
        asked.workloads,
        _what_if(asked.what_if),
        further={"optimization": asked.optimization} if asked.optimization else {},
        namespace=asked.namespace,
        aggregation=asked.aggregation,
    )


def _what_if(text: str) -> "WhatIf":
    from pydantic import ValidationError

    from optimizer.follow.overview.what_if import WhatIf
    from optimizer.wire.request_problem import field_problems, invalid_request, known_fields

    try:
        return WhatIf.model_validate_json(text or "{}")
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        wrong = invalid_request(field_problems(found, known_fields(WhatIf)))
        raise click.UsageError(f"--what-if: {wrong.detail}") from error


@asynccontextmanager
async def connected(
    kubeconfig: Path | None, context: str | None, settings: "OptimizerSettings | None" = None
) -> "AsyncIterator[tuple[Client, AuthorizedOptimizer]]":
    """Yield a hub, and the optimizer that a command asks there with the user's own rights."""
    from dsf.kube.client.connect import connect
    from dsf.kube.clock import utc_now
    from optimizer.domain.settings import DEFAULTS
    from optimizer.operations.access.authorized_optimizer import AuthorizedOptimizer
    from optimizer.service.optimizer import Optimizer

    async with connect(kubeconfig, context) as kube:
        yield kube, AuthorizedOptimizer(Optimizer(kube, settings or DEFAULTS, now=utc_now))


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
