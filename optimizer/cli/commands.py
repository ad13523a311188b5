"""`dsf optimizer` and `dsf plan`."""

import importlib
import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dsf.cli.options import NumberRange, cluster_options, http_options, log_options, options
from optimizer.cli.access_options import access_of, access_options, certificate_of, check_auth
from optimizer.cli.connection_options import connection_limits, connection_options

if TYPE_CHECKING:
    from fastapi import FastAPI

    from optimizer.access.authorized_optimizer import Access
    from optimizer.domain.settings import OptimizerSettings
    from optimizer.plan.plan import Plan
    from optimizer.service import Optimizer

SERVICE_APP = "mcp_server.app:create_service_app"
EXIT_NOTHING_PLACED = 1

_log = logging.getLogger(__name__)

_POSITIVE = NumberRange(min=0, min_open=True, max=86_400)
_DNS = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class _MissingScore(click.ParamType[str | float]):
    name = "forbid|NUMBER"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | float:
        if value == "forbid":
            return "forbid"
        from optimizer.wire.request import MAX_MISSING_SCORE

        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not -MAX_MISSING_SCORE <= number <= MAX_MISSING_SCORE:
            limits = f"from {-MAX_MISSING_SCORE:.0f} to {MAX_MISSING_SCORE:.0f}"
            self.fail(f"{value!r} is neither 'forbid' nor a number {limits}", param, ctx)
        return number


class _ConfigMapName(click.ParamType[tuple[str, str]]):
    name = "NAMESPACE/NAME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        namespace, _, name = value.partition("/")
        if not (_DNS.fullmatch(namespace) and _DNS.fullmatch(name)):
            self.fail(f"{value!r} is not of the form namespace/name", param, ctx)
        return namespace, name


model_options = options(
    click.option(
        "--mig-config-map",
        type=_ConfigMapName(),
        default="gpu-operator/dsf-mig-parted-config",
        show_default=True,
        help="ConfigMap from which the MIG manager of managed clusters reads layouts.",
    ),
    click.option(
        "--mig-labels",
        type=click.Choice(["gpu-operator", "guide"]),
        default="gpu-operator",
        show_default=True,
        help="Node labels that generated MIG policies set: those of the GPU operator, or"
        " those of the development guide's mock.",
    ),
    click.option(
        "--prefer-no-select-cost",
        type=NumberRange(min=0, max=1e9),
        default=10.0,
        show_default=True,
        help="Cost of a place on a cluster with a taint PreferNoSelect, in units of the objective;"
        " at most the value of the place.",
    ),
    click.option(
        "--default-toleration-seconds",
        type=click.IntRange(0, 2**31),
        default=300,
        show_default=True,
        help="Seconds that workloads stay on a managed cluster that is lost; 0: they are moved at"
        " once.",
    ),
    click.option(
        "--missing-score",
        type=_MissingScore(),
        default="forbid",
        show_default=True,
        help="Value of a place without a usable score; 'forbid' excludes it.",
    ),
    click.option(
        "--max-places",
        type=click.IntRange(min=1),
        default=40_000_000,
        show_default=True,
        help="Largest request: workloads times devices of clusters. It determines the memory that a"
        " request takes. Places with limits, spread and the like count several times.",
    ),
    click.option(
        "--memory-limit",
        type=click.IntRange(min=0),
        default=8_192,
        show_default=True,
        help="MiB of address space of the solver's process; 0: no limit.",
    ),
    click.option(
        "--gap",
        type=NumberRange(0.0, 1.0),
        default=0.0,
        show_default=True,
        help="Optimality gap at which solving stops: (bound - objective) / |objective|. 0: it"
        " stops when the plan is proven best, or at --time-limit.",
    ),
    click.option(
        "--time-limit",
        type=_POSITIVE,
        default=30.0,
        show_default=True,
        help="Seconds for the solver; afterwards the best plan found is used.",
    ),
    click.option(
        "--solver", type=click.Choice(["highs", "cbc"]), default="highs", show_default=True
    ),
    click.option(
        "--claim-name",
        default="policy-watcher-claim",
        show_default=True,
        help="ClusterClaim that must be 'compliant' before a cluster gets workloads.",
    ),
    click.option(
        "--cluster-label-key",
        default="cluster-name",
        show_default=True,
        help="Label whose value is the managed cluster's name. Placements select others"
        " by the label `name`, or by metadata.name.",
    ),
)
"""The options that shape the optimizer's model; `settings_of` reads them."""

history_option = click.option(
    "--plan-history-limit",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="PlacementPlans kept for each optimization, the current one included. A rollback needs 2.",
)

approval_option = click.option(
    "--when-client-cannot-ask",
    type=click.Choice(["deny", "digest"]),
    default="digest",
    show_default=True,
    help="Whether MCP tools write for a client that can't ask its user to confirm. deny: never."
    " digest: it may apply a plan by naming its digest, and reset a namespace by naming it.",
)


@click.command()
@cluster_options("the hub")
@http_options
@connection_options
@access_options
@model_options
@history_option
@click.option(
    "--read-only/--allow-writes",
    default=True,
    show_default=True,
    help="Whether callers may write, within their own rights: by POST /optimize, /rollback, /reset"
    " and those of rollouts, and by MCP tools, which exist only then.",
)
@approval_option
@click.option(
    "--rollout-namespace",
    multiple=True,
    help="Namespace whose Stepwise rollouts this server makes; repeatable. Default: all.",
)
@log_options
def optimizer(
    *,
    kubeconfig: Path | None,
    context: str | None,
    bind_address: str,
    port: int,
    log_level: str,
    log_format: Any,
    **rest: Any,
) -> None:
    """Serve the optimizer: HTTP API, its documentation at /docs, MCP at /mcp.

    Callers send a bearer token of the hub and need rights there; see --auth.
    """
    from dsf.kube.client.client_config import BadKubeconfig
    from dsf.runtime.endpoints import CannotListen
    from dsf.runtime.logs import set_up
    from dsf.runtime.process import run
    from optimizer.api.serving import listen

    set_up(log_level, log_format)
    try:
        with listen(bind_address, port) as listener:
            check_auth(rest, listener)
            run(_serve(kubeconfig, context, listener, rest))
    except (CannotListen, BadKubeconfig) as error:
        raise click.ClickException(str(error)) from error


async def _serve(
    kubeconfig: Path | None, context: str | None, listener: Any, rest: dict[str, Any]
) -> None:
    from prometheus_client import REGISTRY

    from dsf.kube.client.connect import connect
    from dsf.kube.clock import utc_now
    from optimizer.api.serving import serve, url
    from optimizer.service import Optimizer
    from optimizer.solve.supervised_process import start_fork_server

    certificate = certificate_of(rest)
    start_fork_server()
    async with connect(kubeconfig, context) as kube:
        service = Optimizer(kube, settings_of(rest), now=utc_now, registry=REGISTRY)
        app = _app(
            service,
            allowed_hosts=rest["allowed_host"],
            access=access_of(rest, kube),
            read_only=rest["read_only"],
            requests_per_second=rest["requests_per_second"],
            when_client_cannot_ask=rest["when_client_cannot_ask"],
        )
        _log.info("serving", extra={"url": url(listener, tls=bool(certificate))})
        await serve(app, listener, certificate, limits=connection_limits(rest))


def _app(
    service: "Optimizer",
    *,
    allowed_hosts: tuple[str, ...],
    access: "Access | None",
    read_only: bool,
    requests_per_second: float,
    **of_mcp: Any,
) -> "FastAPI":
    """Return the app with MCP where it is installed, else the HTTP API alone."""
    from optimizer.api.app import create_app

    both: dict[str, Any] = {
        "allowed_hosts": allowed_hosts,
        "access": access,
        "read_only": read_only,
        "requests_per_second": requests_per_second,
    }
    module, _, attribute = SERVICE_APP.partition(":")
    try:
        create = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        _log.warning(
            "/mcp is not served: install dynamic-scoring-framework[mcp]",
            extra={"missing": error.name},
        )
        return create_app(service, **both)
    app: FastAPI = create(service, **both, **of_mcp)
    return app


def settings_of(rest: Mapping[str, Any]) -> "OptimizerSettings":
    """Return the settings that the options of `model_options` and `history_option` name."""
    from optimizer.domain.mig_manager_settings import GPU_OPERATOR, GUIDE
    from optimizer.domain.settings import DEFAULTS, OptimizerSettings

    namespace, name = rest["mig_config_map"]
    labels = {"gpu-operator": GPU_OPERATOR, "guide": GUIDE}[rest["mig_labels"]]
    return OptimizerSettings(
        cluster_label_key=rest["cluster_label_key"],
        claim_name=rest["claim_name"],
        solver=rest["solver"],
        time_limit_seconds=rest["time_limit"],
        gap=rest["gap"],
        memory_mib=rest["memory_limit"],
        missing_score=rest["missing_score"],
        max_places=rest["max_places"],
        default_toleration_seconds=rest["default_toleration_seconds"],
        prefer_no_select_cost=rest["prefer_no_select_cost"],
        plan_history_limit=rest.get("plan_history_limit", DEFAULTS.plan_history_limit),
        rollout_namespaces=tuple(rest.get("rollout_namespace", ())),
        mig=replace(labels, config_namespace=namespace, config_map=name),
    )


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
