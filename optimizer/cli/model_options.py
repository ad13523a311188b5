"""The options that shape the optimizer's model, with the same names and help everywhere."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

import click

from dsf.api.name_syntax import dns_label, dns_subdomain
from dsf.cli.options import Command, NumberRange, option, options
from optimizer.domain.settings import ANSWER_GAP, DEFAULTS, GPU_OPERATOR, GUIDE, OptimizerSettings

_POSITIVE = NumberRange(min=0, min_open=True, max=86_400)


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


class ObjectName(click.ParamType[tuple[str, str]]):
    """An option's value `namespace/name`, as a pair."""

    name = "NAMESPACE/NAME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return both names, or fail."""
        namespace, _, name = value.partition("/")
        if dns_label(namespace) or dns_subdomain(name):
            self.fail(f"{value!r} is not of the form namespace/name", param, ctx)
        return namespace, name


object_options = options(
    option(
        "--mig-config-map",
        type=ObjectName(),
        default="gpu-operator/dsf-mig-parted-config",
        help="ConfigMap from which the MIG manager of managed clusters reads layouts.",
    ),
    option(
        "--mig-labels",
        type=click.Choice(["gpu-operator", "guide"]),
        default="gpu-operator",
        help="Node labels that generated MIG policies set: those of the GPU operator, or"
        " those of the development guide's mock.",
    ),
    option(
        "--claim-name",
        default="policy-watcher-claim",
        help="ClusterClaim that must be 'compliant' before a cluster gets workloads.",
    ),
    option(
        "--cluster-label-key",
        default="cluster-name",
        help="Label whose value is the managed cluster's name. Placements select others"
        " by the label `name`, or by metadata.name.",
    ),
)
"""The options that shape the generated objects."""

formulation_options = options(
    option(
        "--prefer-no-select-cost",
        type=NumberRange(min=0, max=1e9),
        default=10.0,
        help="Cost of a place on a cluster with a taint PreferNoSelect, in units of the objective;"
        " at most the value of the place.",
    ),
    option(
        "--default-toleration-seconds",
        type=click.IntRange(0, 2**31),
        default=300,
        help="Seconds that workloads stay on a managed cluster that is lost; 0: they are moved at"
        " once.",
    ),
    option(
        "--pending-grace-seconds",
        type=click.IntRange(0, 2**31),
        default=300,
        help="Seconds that Pods may lack a node on a managed cluster, as its inventory tells; then"
        " plans avoid the cluster for their workload.",
    ),
    option(
        "--max-places",
        type=click.IntRange(min=1),
        default=40_000_000,
        help="Largest request: workloads times devices of clusters. It determines the memory that a"
        " request takes. Places with limits, spread and the like count several times.",
    ),
    option(
        "--time-limit",
        type=_POSITIVE,
        default=30.0,
        help="Seconds for the solver; afterwards the best plan found is used.",
    ),
)
"""The options that shape what a decision is worth, and how large a request may be."""


def _choice_options(gap: float) -> Callable[[Command], Command]:
    return options(
        option(
            "--missing-score",
            type=_MissingScore(),
            default="forbid",
            help="Value of a place without a usable score; 'forbid' excludes it.",
        ),
        option(
            "--memory-limit",
            type=click.IntRange(min=0),
            default=8_192,
            help="MiB of address space of the solver's process; 0: no limit.",
        ),
        option(
            "--gap",
            type=NumberRange(0.0, 1.0),
            default=gap,
            help="Optimality gap at which solving stops: (bound - objective) / |objective|. 0: it"
            " stops when the plan is proven best, or at --time-limit.",
        ),
        option("--solver", type=click.Choice(["highs", "cbc"]), default="highs"),
    )


choice_options = _choice_options(0.0)
"""The options that shape how a decision is found; one that is restored was found before."""

model_options = options(object_options, formulation_options, choice_options)
"""All options that shape a plan; `settings_of` reads them, or some of them."""

answer_options = options(object_options, formulation_options, _choice_options(ANSWER_GAP))
"""The same for commands whose answer a person waits for."""

key_option = option(
    "--record-key-secret",
    type=ObjectName(),
    default="open-cluster-management/dynamic-scoring-optimizer-record-key",
    help="Secret whose key signs the records of plans; made where there is none. What it did not"
    " sign is neither restored nor rolled out.",
)

history_option = options(
    option(
        "--plan-history-limit",
        type=click.IntRange(1, 1000),
        default=10,
        help="PlacementPlans kept for each optimization, the current one included. A rollback"
        " needs 2.",
    ),
    key_option,
)


def settings_of(rest: Mapping[str, Any]) -> OptimizerSettings:
    """Return the settings that options name; what a command has no option for is the default."""
    said = {_SETTINGS.get(name, name): value for name, value in rest.items()}
    known = {field.name: said[field.name] for field in fields(DEFAULTS) if field.name in said}
    if "mig_labels" in rest:
        namespace, name = rest["mig_config_map"]
        labels = {"gpu-operator": GPU_OPERATOR, "guide": GUIDE}[rest["mig_labels"]]
        known["mig"] = replace(labels, config_namespace=namespace, config_map=name)
    return replace(DEFAULTS, **known)


_SETTINGS = {
    "time_limit": "time_limit_seconds",
    "memory_limit": "memory_mib",
    "rollout_namespace": "rollout_namespaces",
}
"""The setting of each option that has another name."""
