"""Constraints and preferences of workloads, policies and clusters, besides the contract's labels.

Each is a field of the request, and an annotation of the object that is named after the field
(`moveCost`: `dynamic-scoring.open-cluster-management.io/move-cost`). The request wins. Lists have a
short form for annotations, which the request accepts too.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from dsf.api.invalid_input import InvalidInput
from dsf.kube.selectors import label_selector
from optimizer.domain.quantity import parse_pairs, parse_quantity, parse_resource
from optimizer.mig.mig_parted import LAYOUT_REGEX
from optimizer.wire.base import ObjectName, RequestPart

MAX_AMOUNT = 1e18
"""The largest quantity; sums of many stay within the range of a float."""

MAX_NAMED_AMOUNTS = 20
"""Kinds or limits that one field may name: more than any workload has."""

_FIRST_ERROR_ONLY = Field(fail_fast=True)
"""Validation stops at the first wrong item. FailFast can't be used: unions need it hashable."""


def _short_form(read: Callable[[str], Any], full: Any) -> BeforeValidator:
    """Return a validator that reads a text; other values pass, as the `full` form in JSON."""

    def validated(value: Any) -> Any:
        return read(value) if isinstance(value, str) else value

    return BeforeValidator(validated, json_schema_input_type=full | str)


def _number(text: str) -> float:
    found = parse_quantity(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no quantity such as 4, 500m or 16Gi")
    return found


def _named(value: Any) -> Any:
    if isinstance(value, Mapping) and len(value) > MAX_NAMED_AMOUNTS:
        raise ValueError(f"must list at most {MAX_NAMED_AMOUNTS}")
    return dict(_pairs(value, "cpu=4,memory=16Gi")) if isinstance(value, str) else value


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _supplies(text: str) -> list[dict[str, str]]:
    return [
        {"kind": kind, "device": device, "amount": amount}
        for name, amount in _pairs(text, "gpu/3g.48gb=1,cpu=8")
        for kind, device in [parse_resource(name)]
    ]


def _spreads(text: str) -> list[dict[str, str]]:
    return [{"key": key, "most": most} for key, most in _pairs(text, "topology/zone=1")]


def _pairs(text: str, example: str) -> list[tuple[str, str]]:
    found = parse_pairs(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} does not have the form {example}")
    if len(dict(found)) < len(found):
        raise ValueError(f"{text[:40]!r} has a name twice")
    return found


def _selector(text: str) -> str:
    match label_selector(text):
        case InvalidInput(_, message):
            raise ValueError(message)
    return text


Quantity = Annotated[float, _short_form(_number, float), Field(ge=0, le=MAX_AMOUNT)]
Kind = Annotated[str, Field(min_length=1, max_length=253)]
Amounts = Annotated[
    dict[Kind, Quantity],
    BeforeValidator(_named, json_schema_input_type=dict[str, float | str] | str),
    Field(max_length=MAX_NAMED_AMOUNTS),
]
Names = Annotated[
    tuple[ObjectName, ...],
    _FIRST_ERROR_ONLY,
    _short_form(_names, list[str]),
    Field(min_length=1, max_length=1000),
]
Selector = Annotated[str, Field(max_length=1024), AfterValidator(_selector)]


class SupplySpec(RequestPart):
    """An amount of a device of a kind; kinds that have no devices, such as cpu, name none."""

    kind: Kind
    device: Annotated[str, Field(max_length=253)] = ""
    amount: Quantity


Supplies = Annotated[
    tuple[SupplySpec, ...],
    _FIRST_ERROR_ONLY,
    _short_form(_supplies, list[SupplySpec]),
    Field(min_length=1, max_length=50),
]


class GpuLayoutSpec(RequestPart):
    """The layout of a GPU of a node: `2x3g.48gb`, `3x1g.12gb-1x4g.48gb`, or `off` for MIG off."""

    node: Annotated[
        str, Field(max_length=253, description="Name; empty: the only node with GPUs.")
    ] = ""
    gpu: Annotated[int, Field(ge=0, lt=64, description="Index of the GPU on its node.")]
    layout: Annotated[str, Field(pattern=f"^({LAYOUT_REGEX})$")]


def _layouts(text: str) -> list[dict[str, str]]:
    return [
        {"node": name.rpartition("/")[0], "gpu": name.rpartition("/")[2], "layout": layout}
        for name, layout in _pairs(text, "gpu-node-1/0=2x3g.48gb,gpu-node-1/1=off")
    ]


def _every_gpu(found: tuple[GpuLayoutSpec, ...]) -> tuple[GpuLayoutSpec, ...]:
    for node in dict.fromkeys(item.node for item in found):
        gpus = sorted(item.gpu for item in found if item.node == node)
        if gpus != list(range(len(gpus))):
            raise ValueError(f"{node or 'the node'}: name each of its GPUs once, from 0 on")
    return found


Layouts = Annotated[
    tuple[GpuLayoutSpec, ...],
    _FIRST_ERROR_ONLY,
    _short_form(_layouts, list[GpuLayoutSpec]),
    Field(min_length=1, max_length=1000),
    AfterValidator(_every_gpu),
]


class TopologySpreadSpec(RequestPart):
    """The most clusters with the same value of a label of the managed clusters."""

    key: Annotated[str, Field(min_length=1, max_length=317)]
    most: Annotated[int, Field(ge=1, le=100_000)]


class WorkloadSpec(RequestPart):
    """Constraints and preferences of a workload."""

    replicas: Annotated[
        int | None, Field(ge=1, le=20_000, description="The most clusters to run on.")
    ] = None
    priority: Annotated[
        int | None,
        Field(
            ge=-(2**31),
            le=2**31,
            description="A higher one loses nothing to a lower one.",
        ),
    ] = None
    requests: Annotated[
        Amounts | None,
        Field(description="Further kinds that each replica requests: cpu, memory, ..."),
    ] = None
    spread: Annotated[
        Annotated[
            tuple[TopologySpreadSpec, ...],
            _FIRST_ERROR_ONLY,
            _short_form(_spreads, list[TopologySpreadSpec]),
            Field(max_length=10),
        ]
        | None,
        Field(description="The most of its clusters with the same value of a cluster label."),
    ] = None
    spread_group: Annotated[
        str | None,
        Field(
            max_length=253, description="Workloads of one group are counted together for spread."
        ),
    ] = None
    clusters: Annotated[
        Names | None, Field(description="The only clusters that it may run on.")
    ] = None
    excluded_clusters: Annotated[
        Names | None, Field(description="Clusters that it never runs on.")
    ] = None
    affinity: Annotated[
        Selector | None, Field(description="Label selector that its clusters must match.")
    ] = None
    anti_affinity: Annotated[
        Selector | None, Field(description="Label selector that its clusters must not match.")
    ] = None
    workload_affinity: Annotated[
        Selector | None,
        Field(description="Label selector of workloads; one must run on the same cluster."),
    ] = None
    workload_anti_affinity: Annotated[
        Selector | None,
        Field(description="Label selector of workloads; none may run on the same cluster."),
    ] = None
    minimum_score: Annotated[
        float | None, Field(description="The least acceptable value of a place.")
    ] = None
    move_cost: Annotated[
        float | None,
        Field(ge=0, le=1e9, description="Cost of leaving a cluster where it runs."),
    ] = None
    uses: Annotated[
        Amounts | None, Field(description="Amounts of the request's limits that each replica uses.")
    ] = None


class PolicySpec(RequestPart):
    """Supplies, costs and layouts of a policy."""

    pool: Annotated[
        str | None,
        Field(max_length=63, description="At most one policy of a cluster's pool is enforced."),
    ] = None
    cluster: Annotated[
        ObjectName | None, Field(description="The only cluster that the policy is made for.")
    ] = None
    supplies: Annotated[
        Supplies | None, Field(description="What it supplies; replaces its labels.")
    ] = None
    layouts: Annotated[
        Layouts | None,
        Field(description="Layouts of its GPUs; GPUs whose layout stays keep running."),
    ] = None
    change_cost: Annotated[
        float | None,
        Field(ge=0, le=1e9, description="Cost of enforcing it where it is not enforced now."),
    ] = None
    uses: Annotated[
        Amounts | None, Field(description="Amounts of the request's limits that it uses.")
    ] = None


class ClusterSpec(RequestPart):
    """What a managed cluster supplies without a policy."""

    allocatable: Annotated[
        Supplies | None,
        Field(description="What it supplies without a policy; wins over the status."),
    ] = None
