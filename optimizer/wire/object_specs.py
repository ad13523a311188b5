"""Constraints and preferences of workloads, policies and clusters, besides the contract's labels.

Each field can be given in two ways: in the request, or as an annotation of the object that is named
after it (`moveCost`: `dynamic-scoring.open-cluster-management.io/move-cost`). The request wins.
Lists have a short form for annotations, which the request accepts too.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from dsf.api.invalid_input import InvalidInput
from dsf.kube.selectors import label_selector
from optimizer.domain.quantity import parse_pairs, parse_quantity, parse_resource
from optimizer.mig.mig_parted import LAYOUT_REGEX
from optimizer.wire.base import ObjectName, RequestPart

MAX_AMOUNT = 1e18
"""The largest quantity; sums of many stay far below the range of a float."""

MAX_NAMED_AMOUNTS = 20
"""Kinds or limits that one field names."""

_FIRST_ERROR_ONLY = Field(fail_fast=True)
"""Validation stops at the first wrong item. FailFast can't be used: unions need it hashable."""


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = parse_quantity(value)
    if found is None:
        raise ValueError(f"{value[:40]!r} is no quantity such as 4, 500m or 16Gi")
    return found


def _named(value: Any) -> Any:
    if isinstance(value, Mapping) and len(value) > MAX_NAMED_AMOUNTS:
        raise ValueError(f"must list at most {MAX_NAMED_AMOUNTS}")
    return dict(_pairs(value, "cpu=4,memory=16Gi")) if isinstance(value, str) else value


def _names(value: Any) -> Any:
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


def _supplies(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = _pairs(value, "gpu/3g.48gb=1,cpu=8")
    return [
        {"kind": kind, "device": device, "amount": amount}
        for name, amount in found
        for kind, device in [parse_resource(name)]
    ]


def _spreads(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return [{"key": key, "most": most} for key, most in _pairs(value, "topology/zone=1")]


def _pairs(text: str, example: str) -> list[tuple[str, str]]:
    found = parse_pairs(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} has not the form {example}")
    if len(dict(found)) < len(found):
        raise ValueError(f"{text[:40]!r} names one thing twice")
    return found


def _selector(text: str) -> str:
    match label_selector(text):
        case InvalidInput(_, message):
            raise ValueError(message)
    return text


Quantity = Annotated[
    float, BeforeValidator(_number, json_schema_input_type=float | str), Field(ge=0, le=MAX_AMOUNT)
]
Kind = Annotated[str, Field(min_length=1, max_length=253)]
Amounts = Annotated[
    dict[Kind, Quantity],
    BeforeValidator(_named, json_schema_input_type=dict[str, float | str] | str),
    Field(max_length=MAX_NAMED_AMOUNTS),
]
Names = Annotated[
    tuple[ObjectName, ...],
    _FIRST_ERROR_ONLY,
    BeforeValidator(_names, json_schema_input_type=list[str] | str),
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
    BeforeValidator(_supplies, json_schema_input_type=list[SupplySpec] | str),
    Field(min_length=1, max_length=50),
]


class GpuLayoutSpec(RequestPart):
    """What a GPU of a node is divided into: `2x3g.48gb`, `3x1g.12gb-1x4g.48gb`, or `off`."""

    node: Annotated[str, Field(max_length=253, description="Empty: the one that has GPUs.")] = ""
    gpu: Annotated[int, Field(ge=0, lt=64, description="Index of the GPU on its node.")]
    layout: Annotated[str, Field(pattern=f"^({LAYOUT_REGEX})$")]


def _layouts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = _pairs(value, "gpu-node-1/0=2x3g.48gb,gpu-node-1/1=off")
    parts = [(*name.rpartition("/"), layout) for name, layout in found]
    return [{"node": node, "gpu": gpu, "layout": layout} for node, _, gpu, layout in parts]


def _every_gpu(found: tuple[GpuLayoutSpec, ...]) -> tuple[GpuLayoutSpec, ...]:
    for node in dict.fromkeys(item.node for item in found):
        gpus = sorted(item.gpu for item in found if item.node == node)
        if gpus != list(range(len(gpus))):
            raise ValueError(f"{node or 'the node'}: name each of its GPUs once, from 0 on")
    return found


Layouts = Annotated[
    tuple[GpuLayoutSpec, ...],
    _FIRST_ERROR_ONLY,
    BeforeValidator(_layouts, json_schema_input_type=list[GpuLayoutSpec] | str),
    Field(min_length=1, max_length=1000),
    AfterValidator(_every_gpu),
]


class TopologySpreadSpec(RequestPart):
    """At most so many clusters per value of a label of the managed clusters."""

    key: Annotated[str, Field(min_length=1, max_length=317)]
    most: Annotated[int, Field(ge=1, le=100_000)]


class WorkloadSpec(RequestPart):
    """Constraints and preferences of a workload."""

    replicas: Annotated[
        int | None, Field(ge=1, le=20_000, description="Clusters to run on at most.")
    ] = None
    priority: Annotated[
        int | None,
        Field(
            ge=-(2**31),
            le=2**31,
            description="A higher one never loses anything to a lower one.",
        ),
    ] = None
    requests: Annotated[
        Amounts | None, Field(description="Further kinds that each replica takes: cpu, memory, ...")
    ] = None
    spread: Annotated[
        Annotated[
            tuple[TopologySpreadSpec, ...],
            _FIRST_ERROR_ONLY,
            BeforeValidator(_spreads, json_schema_input_type=list[TopologySpreadSpec] | str),
            Field(max_length=10),
        ]
        | None,
        Field(description="At most so many of its clusters per value of a cluster label."),
    ] = None
    spread_group: Annotated[
        str | None,
        Field(max_length=253, description="Workloads of one group count together for spread."),
    ] = None
    clusters: Annotated[Names | None, Field(description="It runs on these alone.")] = None
    excluded_clusters: Annotated[Names | None, Field(description="It never runs on these.")] = None
    affinity: Annotated[
        Selector | None, Field(description="Label selector that its clusters meet.")
    ] = None
    anti_affinity: Annotated[
        Selector | None, Field(description="Label selector that its clusters don't meet.")
    ] = None
    workload_affinity: Annotated[
        Selector | None,
        Field(description="Label selector of workloads of which one runs on the same cluster."),
    ] = None
    workload_anti_affinity: Annotated[
        Selector | None,
        Field(description="Label selector of workloads that never run on the same cluster."),
    ] = None
    minimum_score: Annotated[
        float | None, Field(description="A place worth less is not acceptable.")
    ] = None
    move_cost: Annotated[
        float | None,
        Field(ge=0, le=1e9, description="What leaving a cluster where it runs costs."),
    ] = None
    uses: Annotated[
        Amounts | None, Field(description="What each replica uses of the request's limits.")
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
        Supplies | None, Field(description="What it supplies, instead of what its labels say.")
    ] = None
    layouts: Annotated[
        Layouts | None,
        Field(description="What its GPUs become: those that stay as they are keep running."),
    ] = None
    change_cost: Annotated[
        float | None,
        Field(ge=0, le=1e9, description="What changing to it costs where it is not enforced."),
    ] = None
    uses: Annotated[Amounts | None, Field(description="What it uses of the request's limits.")] = (
        None
    )


class ClusterSpec(RequestPart):
    """What a managed cluster supplies without a policy."""

    allocatable: Annotated[
        Supplies | None,
        Field(description="What workloads can have without a policy; wins over the status."),
    ] = None
